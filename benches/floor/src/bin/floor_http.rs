//! The least that an rmcp server over HTTP can be: the same tool, at `/mcp`, with sessions and answers
//! in JSON. Prints its address.

use std::{error::Error, sync::Arc};

use axum::{Router, serve::ListenerExt};
use floor::Floor;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(|| Ok(Floor), sessions, config);
    let app = Router::new().route_service("/mcp", service);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    // As the product does: an answer of two packets would wait for the client's word otherwise.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, app).await?;
    Ok(())
}
