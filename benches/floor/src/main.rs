//! A minimal rmcp server over stdio: one tool with a fixed result.
//!
//! A single thread and non-blocking pipes give the fastest start that rmcp offers.

use std::error::Error;

use floor::Floor;
use rmcp::{ServiceExt, transport::stdio_pipes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    Floor.serve(stdio_pipes()).await?.waiting().await?;
    Ok(())
}
