//! A missing API key is requested on a page, never in a form, because the content of a form passes through the client
//! and its model.

use std::time::Duration;

use tokio::time::timeout;

use super::super::context::ToolContext;
use super::super::error::ToolError;
use super::super::executor::ToolExecutor;
use super::super::outcome::ToolResult;
use crate::operations::interaction::UrlRequest;

/// How long a call waits for the key after the user opened the page. Many clients time out after a minute; the page
/// stays open longer.
const MAX_WAIT: Duration = Duration::from_secs(45);

const MESSAGE: &str = "The server needs your Exa API key. Enter it on this page of your own computer; neither the client \
                       nor its model sees it.";

/// Succeeds if there is a key, or once the user has entered one.
pub(in super::super) async fn require_key(
    tools: &ToolExecutor,
    context: &ToolContext,
) -> ToolResult<()> {
    let keys = tools.operation_executor().keys();
    if !keys.is_empty() {
        return Ok(());
    }
    let client = &context.client;
    let Some(prompt) = tools.key_prompt().filter(|_| client.capabilities().urls) else {
        return Err(ToolError::NoKey(keys.owner()).into());
    };
    let _turn = prompt.lock().await;
    // Another call may have obtained it meanwhile.
    if !keys.is_empty() {
        return Ok(());
    }
    let page = prompt.page().await;
    let page = page.map_err(|error| ToolError::KeyNotProvided(error.to_string()))?;
    let request = UrlRequest {
        message: MESSAGE.to_owned(),
        url: page.url.clone(),
        id: page.id.clone(),
    };
    if let Err(error) = client.open_url(request.clone()).await {
        page.close();
        let reason = format!("Asked for it, but {error}.");
        return Err(ToolError::KeyNotProvided(reason).into());
    }
    let wait = tools
        .prompt_policy()
        .timeout
        .unwrap_or(MAX_WAIT)
        .min(MAX_WAIT);
    match timeout(wait, page.wait()).await {
        Ok(true) => {
            client.url_completed(&page.id);
            Ok(())
        }
        Ok(false) => {
            let reason = "The page to enter it is closed; call again for a new one.";
            Err(ToolError::KeyNotProvided(reason.to_owned()).into())
        }
        Err(_) => Err(ToolError::KeyRequired(request).into()),
    }
}
