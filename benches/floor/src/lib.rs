//! A minimal rmcp server: one tool with a fixed result.

use std::sync::{Arc, LazyLock};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};

/// The minimal server.
pub struct Floor;

/// "hello", or as many bytes as `FLOOR_BYTES` says, half as text and half as structured content, like the
/// results of the product.
static RESULT: LazyLock<CallToolResult> = LazyLock::new(|| {
    let bytes = std::env::var("FLOOR_BYTES").ok();
    match bytes.and_then(|bytes| bytes.parse::<usize>().ok()) {
        None => CallToolResult::success(vec![ContentBlock::text("hello")]),
        Some(bytes) => {
            let half = "hello, ".repeat(bytes / 14);
            let mut result = CallToolResult::success(vec![ContentBlock::text(half.clone())]);
            result.structured_content =
                Some(JsonObject::from_iter([("text".to_owned(), half.into())]).into());
            result
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
        Ok(RESULT.clone().into())
    }
}
