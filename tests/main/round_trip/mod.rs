//! What goes in at the command line arrives at the API, and what the API answers comes out.

mod generated;
mod numbers;
mod table;

pub(crate) use table::covered;
