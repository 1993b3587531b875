//! The address of an operation: that of its own servers, its path's or its document's.

use serde_json::Value;

use crate::error::Result;
use crate::load::Document;

/// Where an operation is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// Scheme and host.
    pub(super) base_url: String,
    /// The path before that of the operation, empty or with a leading slash.
    pub(super) prefix: String,
}

/// Returns the first server of the first node that declares servers, or the one at `default`.
pub(super) fn find(document: &Document, nodes: &[(&Value, &str)], default: &str) -> Result<Server> {
    for (node, pointer) in nodes {
        if let Some(server) = node.get("servers").and_then(|servers| servers.get(0)) {
            return parse(&url(server, default), default)
                .map_err(|message| document.error(&format!("{pointer}/servers/0/url"), message));
        }
    }
    parse(default, default).map_err(|message| document.error("/servers", message))
}

/// Returns the URL with its variables replaced by their defaults.
fn url(server: &Value, default: &str) -> String {
    let url = server.get("url").and_then(Value::as_str);
    let variables = server.get("variables").and_then(Value::as_object);
    let all = variables.into_iter().flatten();
    all.fold(
        url.unwrap_or(default).to_owned(),
        |url, (name, variable)| {
            let value = variable.get("default").and_then(Value::as_str);
            url.replace(&format!("{{{name}}}"), value.unwrap_or_default())
        },
    )
}

fn parse(url: &str, default: &str) -> std::result::Result<Server, String> {
    let url = if url.contains("://") {
        url.to_owned()
    } else {
        let default = default.trim_end_matches('/');
        format!("{default}/{}", url.trim_start_matches('/'))
    };
    let (scheme, address) = url.split_once("://").unwrap_or_default();
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let is_host = !host.is_empty() && !host.contains(|c: char| "{}@\\".contains(c) || c <= ' ');
    if !is_host || !matches!(scheme, "http" | "https") {
        return Err(format!("`{url}` is not an HTTP(S) address"));
    }
    let path = path.trim_matches('/');
    if path.contains(['{', '}']) {
        return Err(format!("`{url}` has a variable without a default"));
    }
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("/{path}")
    };
    Ok(Server {
        base_url: format!("{scheme}://{host}"),
        prefix,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(nodes: &[Value]) -> std::result::Result<(String, String), String> {
        let document = Document {
            file: "spec.yaml".into(),
            root: json!({}),
        };
        let nodes: Vec<(&Value, &str)> = nodes.iter().map(|node| (node, "/x")).collect();
        let found = find(&document, &nodes, "https://api.exa.ai");
        let found = found.map_err(|error| error.to_string())?;
        Ok((found.base_url, found.prefix))
    }

    fn servers(url: &str) -> Value {
        json!({"servers": [{"url": url}]})
    }

    #[test]
    fn the_nearest_servers_count() {
        let pair = |host: &str, prefix: &str| Ok((format!("https://{host}"), prefix.to_owned()));
        let [admin, websets] = ["https://admin.exa.ai/team/", "https://api.exa.ai/websets"];
        assert_eq!(
            server(&[servers(admin), servers(websets)]),
            pair("admin.exa.ai", "/team")
        );
        assert_eq!(
            server(&[json!({}), servers(websets)]),
            pair("api.exa.ai", "/websets")
        );
        assert_eq!(server(&[json!({"servers": []})]), pair("api.exa.ai", ""));
        assert_eq!(server(&[servers("/v1")]), pair("api.exa.ai", "/v1"));
    }

    #[test]
    fn variables_have_their_defaults() {
        let node = json!({"servers": [{"url": "https://{region}.exa.ai/{version}",
            "variables": {"region": {"default": "eu"}, "version": {"default": "v2"}}}]});
        assert_eq!(
            server(&[node]),
            Ok(("https://eu.exa.ai".into(), "/v2".into()))
        );
    }

    #[test]
    fn rejects_other_addresses_with_their_location() {
        for url in [
            "ftp://x",
            "https://{host}/",
            "https://x/{version}",
            "https://a@b",
            "https://",
        ] {
            let error = server(&[servers(url)]).unwrap_err();
            assert!(
                error.contains("spec.yaml#/x/servers/0/url"),
                "{url}: {error}"
            );
        }
    }
}
