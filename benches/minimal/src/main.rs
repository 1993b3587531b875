//! An ordinary small rmcp server over stdio: two tools, the default runtime and the transport of rmcp.

use std::error::Error;

use rmcp::{
    ServiceExt,
    handler::server::wrapper::Parameters,
    schemars::{self, JsonSchema},
    tool, tool_router,
    transport::stdio,
};
use serde::Deserialize;

struct Minimal;

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Whom to greet.
    name: String,
}

#[tool_router(server_handler)]
impl Minimal {
    #[tool(description = "Says hello.")]
    fn hello(&self) -> String {
        "hello".to_owned()
    }

    #[tool(description = "Greets somebody.")]
    fn greet(&self, Parameters(Name { name }): Parameters<Name>) -> String {
        format!("hello, {name}")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Minimal.serve(stdio()).await?.waiting().await?;
    Ok(())
}
