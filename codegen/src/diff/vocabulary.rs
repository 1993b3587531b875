//! The keywords of JSON Schema, by what they do.

/// Keywords that tell people something and accept or refuse nothing.
const DOCUMENTATION: [&str; 10] = [
    "default",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "readOnly",
    "title",
    "writeOnly",
];

/// Keywords that this module resolves itself.
const RESOLVED: [&str; 10] = [
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "nullable",
    "oneOf",
    "properties",
    "required",
    "type",
];

/// Keywords that say nothing about values.
const SILENT: [&str; 6] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "definitions",
];

/// Keywords that limit values of one type only.
const NUMERIC: [&str; 5] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maximum",
    "minimum",
    "multipleOf",
];
const TEXTUAL: [&str; 5] = [
    "contentEncoding",
    "contentMediaType",
    "maxLength",
    "minLength",
    "pattern",
];
const LISTED: [&str; 9] = [
    "contains",
    "items",
    "maxContains",
    "maxItems",
    "minContains",
    "minItems",
    "prefixItems",
    "unevaluatedItems",
    "uniqueItems",
];
const KEYED: [&str; 8] = [
    "additionalProperties",
    "dependentRequired",
    "dependentSchemas",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
];

/// Keywords whose greater value accepts less.
pub(super) const LOWER: [&str; 5] = [
    "exclusiveMinimum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
];
/// Keywords whose smaller value accepts less.
pub(super) const UPPER: [&str; 5] = [
    "exclusiveMaximum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
];

/// Whether a keyword only tells people something.
pub(super) fn is_documentation(key: &str) -> bool {
    DOCUMENTATION.contains(&key) || key.starts_with("x-")
}

/// Whether a keyword is known here and compared in its own way.
pub(super) fn is_resolved(key: &str) -> bool {
    RESOLVED.contains(&key) || says_nothing(key)
}

/// Whether a keyword neither limits values nor describes them.
pub(super) fn says_nothing(key: &str) -> bool {
    SILENT.contains(&key)
}

/// Whether a keyword of JSON Schema limits values of some type.
pub(super) fn is_keyword(key: &str) -> bool {
    let groups: [&[&str]; 4] = [&NUMERIC, &TEXTUAL, &LISTED, &KEYED];
    key == "format" || groups.iter().any(|group| group.contains(&key))
}

/// Whether a keyword can refuse values of a JSON type.
pub(super) fn concerns(key: &str, kind: &str) -> bool {
    let (numeric, listed) = (NUMERIC.contains(&key), LISTED.contains(&key));
    let (textual, keyed) = (TEXTUAL.contains(&key), KEYED.contains(&key));
    match kind {
        "string" => !numeric && !listed && !keyed,
        "integer" | "number" => !textual && !listed && !keyed,
        "array" => !numeric && !textual && !keyed,
        "object" => !numeric && !textual && !listed,
        "boolean" | "null" => !numeric && !textual && !listed && !keyed,
        _ => true,
    }
}
