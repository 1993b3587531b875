//! Names of operations, arguments and Rust items.

use heck::{ToLowerCamelCase, ToPascalCase, ToSnakeCase};

/// Returns the dotted name of an operation, for example `items.list`.
///
/// Dashes of the operationId become dots, camel case becomes snake case. `namespace` is the first
/// word that upstream puts before every nested resource; it is dropped.
pub fn operation_name(
    operation_id: Option<&str>,
    namespace: Option<&str>,
    method: &str,
    path: &str,
) -> String {
    let id = match operation_id.map(str::trim).filter(|id| !id.is_empty()) {
        Some(id) => controller_method(id).to_owned(),
        None => name_from_path(method, path),
    };
    let mut words: Vec<String> = id
        .split(['-', '.', '/', ' '])
        .map(|word| word.to_snake_case())
        .filter(|word| !word.is_empty())
        .collect();
    if words.len() > 2 && words.first().map(String::as_str) == namespace {
        words.remove(0);
    }
    if words.is_empty() {
        name_from_path(method, path).to_snake_case()
    } else {
        words.join(".")
    }
}

/// Returns the method part of an operationId such as `FooControllerV1_doIt`, which some frameworks
/// generate.
fn controller_method(id: &str) -> &str {
    match id.split_once('_') {
        Some((class, method)) if class.contains("Controller") && !method.is_empty() => method,
        _ => id,
    }
}

/// Builds a name for an operation without operationId from the segments of its path and a verb.
fn name_from_path(method: &str, path: &str) -> String {
    let mut words: Vec<String> = path
        .split('/')
        .filter(|segment| !segment.is_empty() && !is_variable(segment) && !is_version(segment))
        .map(|segment| segment.to_snake_case())
        .collect();
    let ends_in_variable = path.trim_end_matches('/').ends_with('}');
    let verb = match (method, ends_in_variable) {
        ("get", true) => "get",
        ("get", false) => "list",
        ("post", false) => "create",
        ("put" | "patch" | "post", _) => "update",
        (other, _) => other,
    };
    words.push(verb.to_owned());
    words.join("-")
}

/// Returns the argument name of a path parameter: `id` after `/websets` becomes `websetId`.
pub fn path_argument(parameter: &str, path: &str) -> String {
    let variable = format!("{{{parameter}}}");
    let resource = path
        .split('/')
        .take_while(|segment| *segment != variable)
        .filter(|segment| !segment.is_empty() && !is_variable(segment) && !is_version(segment))
        .last()
        .map(|segment| singular(&segment.to_lower_camel_case()));
    let name = parameter.to_lower_camel_case();
    match resource {
        Some(resource) if name == "id" || name == resource => format!("{resource}Id"),
        _ => name,
    }
}

/// Returns the argument name of a header: `Idempotency-Key` becomes `idempotencyKey`.
pub fn header_argument(header: &str) -> String {
    let lower = header.to_ascii_lowercase();
    let bare = lower.strip_prefix("x-").unwrap_or(&lower);
    let bare = bare.strip_prefix("exa-").unwrap_or(bare);
    bare.to_lower_camel_case()
}

/// Returns the singular of an English plural, as far as resource names need it.
fn singular(word: &str) -> String {
    let ends = |suffix: &str| word.len() > suffix.len() && word.ends_with(suffix);
    let without_last = |n: usize| {
        word.chars()
            .take(word.chars().count() - n)
            .collect::<String>()
    };
    if ends("ies") {
        return format!("{}y", without_last(3));
    }
    if ["ches", "shes", "sses", "xes", "zes", "uses"]
        .iter()
        .any(|s| ends(s))
    {
        return without_last(2);
    }
    if ends("s") && !ends("ss") && !ends("us") {
        return without_last(1);
    }
    word.to_owned()
}

fn is_variable(segment: &str) -> bool {
    segment.starts_with('{')
}

/// Returns whether a path segment is a version such as `v0` or `v12`.
pub fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix('v')
        .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
}

/// Returns a Rust function name that is not in `taken`, and adds it.
pub fn function_name(name: &str, taken: &mut Vec<String>) -> String {
    unique(identifier(&name.replace('.', "_").to_snake_case()), taken)
}

/// Returns a Rust type name that is not in `taken`, and adds it.
pub fn type_name(name: &str, taken: &mut Vec<String>) -> String {
    let pascal = name.to_pascal_case();
    let pascal = match pascal.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => pascal,
        _ => format!("Type{pascal}"),
    };
    unique(pascal, taken)
}

/// Returns the name that the client generator gives a parameter.
pub fn parameter_identifier(name: &str) -> String {
    let cleaned: String = name
        .replace('\'', "")
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect();
    identifier(&cleaned.to_snake_case())
}

/// Returns type names that Rust or the generated code uses.
pub fn reserved_types() -> Vec<String> {
    let names = [
        "Box",
        "ByteStream",
        "Client",
        "Default",
        "Err",
        "Error",
        "None",
        "Ok",
        "Option",
        "Result",
        "Self",
        "Some",
        "String",
        "ToString",
        "Vec",
    ];
    names.map(str::to_owned).to_vec()
}

/// Returns whether a name has a letter or digit and starts with neither `+` nor `-`, which the client generator
/// spells out.
pub fn is_word(name: &str) -> bool {
    name.is_ascii()
        && name.contains(|c: char| c.is_ascii_alphanumeric())
        && !name.starts_with(['+', '-'])
}

/// Returns whether an identifier is an ASCII word that Rust does not reserve.
pub fn is_plain_identifier(identifier: &str) -> bool {
    let mut characters = identifier.chars();
    characters.next().is_some_and(|c| c.is_ascii_lowercase())
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !identifier.ends_with('_')
}

fn identifier(snake: &str) -> String {
    let prefixed = match snake.chars().next() {
        None => "x".to_owned(),
        Some(first) if first.is_alphabetic() => snake.to_owned(),
        Some(_) => format!("_{snake}"),
    };
    match syn::parse_str::<syn::Ident>(&prefixed) {
        Ok(_) => prefixed,
        Err(_) => format!("{prefixed}_"),
    }
}

fn unique(base: String, taken: &mut Vec<String>) -> String {
    let mut name = base.clone();
    let mut number = 2;
    while taken.contains(&name) {
        name = format!("{base}{number}");
        number += 1;
    }
    taken.push(name.clone());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_operation_ids_to_dotted_names() {
        let name = |id| operation_name(Some(id), Some("websets"), "get", "/x");
        assert_eq!(name("websets-create"), "websets.create");
        assert_eq!(name("websets-items-list"), "items.list");
        assert_eq!(name("monitors-runs-get"), "monitors.runs.get");
        assert_eq!(name("findSimilar"), "find_similar");
        assert_eq!(
            name("searchMonitors-runs-list"),
            "search_monitors.runs.list"
        );
        assert_eq!(
            name("ResearchControllerV0_getResearchTask"),
            "get_research_task"
        );
    }

    #[test]
    fn names_operations_without_id_after_their_path() {
        let name = |method, path| operation_name(None, None, method, path);
        assert_eq!(name("get", "/v0/teams"), "teams.list");
        assert_eq!(name("get", "/v0/teams/{id}"), "teams.get");
        assert_eq!(name("post", "/v0/teams"), "teams.create");
        assert_eq!(name("delete", "/v0/teams/{id}"), "teams.delete");
    }

    #[test]
    fn path_parameters_are_named_after_their_resource() {
        let cases = [
            ("id", "/v0/websets/{id}", "websetId"),
            ("webset", "/v0/websets/{webset}/items/{id}", "websetId"),
            ("id", "/v0/websets/{webset}/items/{id}", "itemId"),
            (
                "id",
                "/v0/websets/{webset}/searches/{id}/cancel",
                "searchId",
            ),
            (
                "id",
                "/v0/websets/{webset}/enrichments/{id}",
                "enrichmentId",
            ),
            ("monitor", "/v0/monitors/{monitor}/runs/{id}", "monitorId"),
            ("id", "/v0/monitors/{monitor}/runs/{id}", "runId"),
            ("runId", "/monitors/{id}/runs/{runId}", "runId"),
            ("id", "/research/v1/{id}", "researchId"),
            ("id", "/agent/monitors/backtest/{id}", "backtestId"),
            ("id", "/entities/{id}", "entityId"),
            ("team_slug", "/teams/{team_slug}", "teamSlug"),
        ];
        for (parameter, path, expected) in cases {
            assert_eq!(path_argument(parameter, path), expected, "{path}");
        }
    }

    #[test]
    fn strips_vendor_prefixes_from_headers() {
        assert_eq!(header_argument("Idempotency-Key"), "idempotencyKey");
        assert_eq!(header_argument("x-exa-websets-priority"), "websetsPriority");
    }

    #[test]
    fn rust_names_are_valid_and_unique() {
        let mut taken = Vec::new();
        assert_eq!(
            function_name("monitors.runs.list", &mut taken),
            "monitors_runs_list"
        );
        assert_eq!(
            function_name("monitors.runs_list", &mut taken),
            "monitors_runs_list2"
        );
        assert_eq!(parameter_identifier("type"), "type_");
        assert_eq!(parameter_identifier("x-exa-beta"), "x_exa_beta");
        assert_eq!(parameter_identifier("1st"), "_1st");
    }
}
