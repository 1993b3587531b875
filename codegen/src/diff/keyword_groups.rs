//! The keywords of JSON Schema, grouped by purpose.

/// Keywords that document a schema without restricting values.
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

/// Keywords with a comparison rule of their own.
const HANDLED: [&str; 10] = [
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

/// Keywords that neither restrict nor describe values.
const METADATA: [&str; 6] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "definitions",
];

/// Keywords that restrict values of one type only.
const NUMBER_KEYWORDS: [&str; 5] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maximum",
    "minimum",
    "multipleOf",
];
const STRING_KEYWORDS: [&str; 5] = [
    "contentEncoding",
    "contentMediaType",
    "maxLength",
    "minLength",
    "pattern",
];
const ARRAY_KEYWORDS: [&str; 9] = [
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
const OBJECT_KEYWORDS: [&str; 8] = [
    "additionalProperties",
    "dependentRequired",
    "dependentSchemas",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
];

/// Keywords where a greater value is stricter.
pub(super) const LOWER_BOUNDS: [&str; 5] = [
    "exclusiveMinimum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
];
/// Keywords where a smaller value is stricter.
pub(super) const UPPER_BOUNDS: [&str; 5] = [
    "exclusiveMaximum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
];

/// Returns whether a keyword only documents.
pub(super) fn is_documentation(key: &str) -> bool {
    DOCUMENTATION.contains(&key) || key.starts_with("x-")
}

/// Returns whether a keyword has a comparison rule of its own.
pub(super) fn is_handled(key: &str) -> bool {
    HANDLED.contains(&key) || is_metadata(key)
}

/// Returns whether a keyword neither restricts nor describes values.
pub(super) fn is_metadata(key: &str) -> bool {
    METADATA.contains(&key)
}

/// Returns whether a keyword restricts values of some type.
pub(super) fn is_constraint(key: &str) -> bool {
    let groups: [&[&str]; 4] = [
        &NUMBER_KEYWORDS,
        &STRING_KEYWORDS,
        &ARRAY_KEYWORDS,
        &OBJECT_KEYWORDS,
    ];
    key == "format" || groups.iter().any(|group| group.contains(&key))
}

/// Returns whether a keyword can restrict values of a JSON type.
pub(super) fn applies_to(key: &str, kind: &str) -> bool {
    let (numeric, listed) = (
        NUMBER_KEYWORDS.contains(&key),
        ARRAY_KEYWORDS.contains(&key),
    );
    let (textual, keyed) = (
        STRING_KEYWORDS.contains(&key),
        OBJECT_KEYWORDS.contains(&key),
    );
    match kind {
        "string" => !numeric && !listed && !keyed,
        "integer" | "number" => !textual && !listed && !keyed,
        "array" => !numeric && !textual && !keyed,
        "object" => !numeric && !textual && !listed,
        "boolean" | "null" => !numeric && !textual && !listed && !keyed,
        _ => true,
    }
}
