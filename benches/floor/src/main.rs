//! The least that an rmcp server over stdio can be: one tool with a fixed answer.
//!
//! One thread and the non-blocking pipes, because that is the fastest start that rmcp offers.

use std::error::Error;

use floor::Floor;
use rmcp::{ServiceExt, transport::stdio_pipes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    Floor.serve(stdio_pipes()).await?.waiting().await?;
    Ok(())
}
