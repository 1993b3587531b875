//! A minimal rmcp server over HTTP: the same tool at `/mcp`, with sessions and JSON responses. Prints its
//! URL.

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
    // As in the product: otherwise a response of two packets waits for an acknowledgement.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, app).await?;
    Ok(())
}
