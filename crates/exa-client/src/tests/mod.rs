//! Tests over real sockets, with the hooks of a generated client.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod basics;
mod bodies;
mod redirects;
mod retries;
mod streams;
mod uploads;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};
use progenitor_client::{ClientHooks, ClientInfo, Error, OperationInfo, ResponseValue};
use serde_json::{Value, json};

use super::{
    ApiKey, CallContext, ExaConfig, ExaError, ExaHttp, ExaResponse, KeyKind, RetryPolicy,
    Unguarded, prepare, send,
};

const KEY: &str = "secret-key-0815";

/// Settings with short waits.
fn quick() -> ExaConfig {
    ExaConfig {
        retry: RetryPolicy {
            base_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(5),
            ..RetryPolicy::default()
        },
        ..ExaConfig::default()
    }
}

fn context(config: ExaConfig) -> CallContext {
    let http = ExaHttp::new(config).unwrap();
    let key = ApiKey::new(KEY).unwrap();
    CallContext::new(http, key, Duration::from_secs(10), Arc::new(Unguarded))
}

/// A client as progenitor generates it, for operations that accept any success status.
struct Client {
    baseurl: String,
    client: reqwest::Client,
    inner: CallContext,
}

impl Client {
    fn new(base: &str, inner: CallContext) -> Self {
        Self {
            baseurl: inner.http().base_url(KeyKind::Api, base),
            client: inner.http().client().unwrap().clone(),
            inner,
        }
    }

    async fn operation(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ResponseValue<Value>, Error<()>> {
        let url = format!("{}{path}", self.baseurl);
        let mut header_map = HeaderMap::with_capacity(1);
        header_map.append("api-version", HeaderValue::from_static("1.0"));
        let mut builder = self.client.request(method, url);
        builder = builder.header("accept", "application/json");
        if let Some(body) = body {
            builder = builder.json(body);
        }
        let mut request = builder.headers(header_map).build()?;
        let info = OperationInfo {
            operation_id: "operation",
        };
        self.pre(&mut request, &info).await?;
        let result = self.exec(request, &info).await;
        self.post(&result, &info).await?;
        let response = result?;
        match response.status().as_u16() {
            200..=299 => ResponseValue::from_response(response).await,
            _ => Err(Error::UnexpectedResponse(response)),
        }
    }
}

impl ClientInfo<CallContext> for Client {
    fn api_version() -> &'static str {
        "1.0"
    }
    fn baseurl(&self) -> &str {
        &self.baseurl
    }
    fn client(&self) -> &reqwest::Client {
        &self.client
    }
    fn inner(&self) -> &CallContext {
        &self.inner
    }
}

impl ClientHooks<CallContext> for Client {
    async fn pre<E>(
        &self,
        request: &mut reqwest::Request,
        _info: &OperationInfo,
    ) -> Result<(), Error<E>> {
        Ok(prepare(self.inner(), request)?)
    }

    async fn exec(
        &self,
        request: reqwest::Request,
        _info: &OperationInfo,
    ) -> reqwest::Result<reqwest::Response> {
        send(self.client(), self.inner(), request).await
    }
}

/// Calls `/thing`, with a small body if the method allows one.
async fn call_with(
    base: &str,
    context: CallContext,
    method: Method,
) -> Result<ExaResponse, ExaError> {
    let body = json!({"query": "x"});
    let body = matches!(method, Method::POST | Method::PUT | Method::PATCH).then_some(&body);
    let client = Client::new(base, context);
    let response = client.operation(method, "/thing", body).await;
    let response = response.map(ExaResponse::from).map_err(ExaError::from);
    if let Err(error) = &response {
        // No error may contain the key or the query.
        for text in [
            format!("{error:?}"),
            error.to_string(),
            error.detail_lines().join("\n"),
        ] {
            assert!(!text.contains(KEY), "{text}");
            assert!(!text.contains("hidden-query"), "{text}");
        }
    }
    response
}

async fn call(base: &str, method: Method) -> Result<ExaResponse, ExaError> {
    call_with(base, context(quick()), method).await
}
