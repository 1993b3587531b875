//! The least that an rmcp server can be: one tool with a fixed answer.

use std::sync::{Arc, LazyLock};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};

/// The server.
pub struct Floor;

/// Says hello; or as many bytes as `FLOOR_BYTES` wants, half of them as text and half as data, the way
/// the product answers.
static ANSWER: LazyLock<CallToolResult> = LazyLock::new(|| {
    let bytes = std::env::var("FLOOR_BYTES").ok();
    match bytes.and_then(|bytes| bytes.parse::<usize>().ok()) {
        None => CallToolResult::success(vec![ContentBlock::text("hello")]),
        Some(bytes) => {
            let half = "hello, ".repeat(bytes / 14);
            let mut answer = CallToolResult::success(vec![ContentBlock::text(half.clone())]);
            answer.structured_content =
                Some(JsonObject::from_iter([("text".to_owned(), half.into())]).into());
            answer
        }
    }
});

impl ServerHandler for Floor {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = JsonObject::from_iter([("type".to_owned(), "object".into())]);
        let tool = Tool::new("hello", "Says hello.", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(ANSWER.clone().into())
    }
}
