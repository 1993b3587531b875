//! Where the key of an operation is sent, from its security requirements.

use serde_json::Value;

use crate::load::Document;
use crate::model::KeyPlacement;

/// The header that carries the key unless the spec says otherwise.
const DEFAULT_HEADER: &str = "x-api-key";

/// Returns where the key is sent, or `None` for `x-api-key`.
///
/// # Errors
/// Returns the names of the schemes if none of the alternatives is supported.
pub(super) fn key_placement(
    document: &Document,
    operation: &Value,
) -> Result<Option<KeyPlacement>, String> {
    let requirements = operation
        .get("security")
        .or_else(|| document.root.get("security"))
        .and_then(Value::as_array);
    let Some(requirements) = requirements.filter(|list| !list.is_empty()) else {
        return Ok(None);
    };
    let alternatives: Vec<Vec<&String>> = requirements
        .iter()
        .filter_map(|requirement| Some(requirement.as_object()?.keys().collect()))
        .collect();
    // Without a key is an alternative, too, and the key does no harm.
    if alternatives.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    let supported: Vec<KeyPlacement> = alternatives
        .iter()
        .filter_map(|schemes| match schemes.as_slice() {
            [single] => placement(document, single),
            _ => None,
        })
        .collect();
    let is_default = |it: &KeyPlacement| matches!(it, KeyPlacement::Header(name) if name.eq_ignore_ascii_case(DEFAULT_HEADER));
    if supported.iter().any(is_default) {
        return Ok(None);
    }
    let names = || {
        let texts = alternatives.iter().map(|schemes| {
            let names = schemes.iter().map(|name| name.as_str());
            names.collect::<Vec<_>>().join(" with ")
        });
        texts.collect::<Vec<_>>().join(", ")
    };
    supported.into_iter().next().map(Some).ok_or_else(names)
}

fn placement(document: &Document, scheme: &str) -> Option<KeyPlacement> {
    let schemes = document.root.pointer("/components/securitySchemes")?;
    let (scheme, _) = document.resolve(schemes.get(scheme)?, "").ok()?;
    let text = |key: &str| scheme.get(key).and_then(Value::as_str);
    match (text("type")?, text("in"), text("name")) {
        ("apiKey", Some("header"), Some(name)) if !name.eq_ignore_ascii_case("cookie") => {
            Some(KeyPlacement::Header(name.to_ascii_lowercase()))
        }
        ("apiKey", Some("query"), Some(name)) => Some(KeyPlacement::Query(name.to_owned())),
        ("http", _, _) if text("scheme")?.eq_ignore_ascii_case("bearer") => {
            Some(KeyPlacement::Bearer)
        }
        ("oauth2" | "openIdConnect", _, _) => Some(KeyPlacement::Bearer),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn placed(security: Value) -> Result<Option<KeyPlacement>, String> {
        let document = Document {
            file: "spec.yaml".into(),
            root: json!({"security": [{"key": []}], "components": {"securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "other": {"type": "apiKey", "in": "header", "name": "X-Token"},
                "query": {"type": "apiKey", "in": "query", "name": "token"},
                "bearer": {"type": "http", "scheme": "Bearer"},
                "basic": {"type": "http", "scheme": "basic"}}}}),
        };
        key_placement(&document, &json!({ "security": security }))
    }

    #[test]
    fn the_usual_header_is_preferred() {
        assert_eq!(placed(json!([{"bearer": []}, {"key": []}])), Ok(None));
        assert_eq!(placed(json!([])), Ok(None));
        assert_eq!(placed(json!([{"bearer": []}, {}])), Ok(None));
    }

    #[test]
    fn other_schemes_are_supported() {
        let header = KeyPlacement::Header("x-token".into());
        assert_eq!(placed(json!([{"other": []}])), Ok(Some(header)));
        assert_eq!(
            placed(json!([{"basic": []}, {"bearer": []}])),
            Ok(Some(KeyPlacement::Bearer))
        );
        assert_eq!(
            placed(json!([{"query": []}])),
            Ok(Some(KeyPlacement::Query("token".into())))
        );
    }

    #[test]
    fn unsupported_schemes_are_named() {
        let error = placed(json!([{"basic": []}, {"key": [], "other": []}, {"gone": []}]));
        assert_eq!(error, Err("basic, key with other, gone".to_owned()));
    }
}
