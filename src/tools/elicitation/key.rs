//! A missing key: asked for on a page, never in a form, because whatever stands in a form passes through
//! the client and its model.

use std::time::Duration;

use tokio::time::timeout;

use super::super::context::ToolContext;
use super::super::error::ToolError;
use super::super::executor::ToolExecutor;
use super::super::outcome::ToolResult;
use crate::operations::client::UrlRequest;

/// How long a call waits for the key after the user went to the page. Many clients give a call up after
/// a minute; the page stays open longer.
const WAIT: Duration = Duration::from_secs(45);

const MESSAGE: &str = "The server needs your Exa API key. Enter it on this page of your own computer; neither the client \
                       nor its model sees it.";

/// Goes on if there is a key, or once there is one.
pub(in super::super) async fn require_key(
    tools: &ToolExecutor,
    context: &ToolContext,
) -> ToolResult<()> {
    let keys = tools.caller().keys();
    if !keys.is_empty() {
        return Ok(());
    }
    let client = &context.client;
    let Some(desk) = tools.key_desk().filter(|_| client.capabilities().urls) else {
        return Err(ToolError::NoKey(keys.owner()).into());
    };
    let _turn = desk.lock().await;
    // Another call may have asked meanwhile.
    if !keys.is_empty() {
        return Ok(());
    }
    let page = desk.page().await;
    let page = page.map_err(|error| ToolError::KeyNotProvided(error.to_string()))?;
    let visit = UrlRequest {
        message: MESSAGE.to_owned(),
        url: page.url.clone(),
        id: page.id.clone(),
    };
    if let Err(why) = client.open_url(visit.clone()).await {
        page.close();
        let why = format!("Asked for it, but {why}.");
        return Err(ToolError::KeyNotProvided(why).into());
    }
    let wait = tools.prompt_policy().patience.unwrap_or(WAIT).min(WAIT);
    match timeout(wait, page.is_done()).await {
        Ok(true) => {
            client.url_completed(&page.id);
            Ok(())
        }
        Ok(false) => {
            let why = "The page where it can be entered is closed; call again for a new one.";
            Err(ToolError::KeyNotProvided(why.to_owned()).into())
        }
        Err(_) => Err(ToolError::KeyRequired(visit).into()),
    }
}
