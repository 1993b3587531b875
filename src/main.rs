//! The command line of the server.
fn main() {}
