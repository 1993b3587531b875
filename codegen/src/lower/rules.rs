//! The lowering rules. Each has a fixture in `tests.rs` that fails without it.

macro_rules! rules {
    ($($id:ident $name:ident $reason:literal)*) => {
        /// A lowering rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum LoweringRule { $(#[doc = $reason] $name,)* }

        #[cfg(test)]
        impl LoweringRule {
            /// All rules, sorted by id.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the id used in the documentation.
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => stringify!($id),)* }
            }

            /// Returns why the rule exists.
            pub fn reason(self) -> &'static str {
                match self { $(Self::$name => $reason,)* }
            }
        }
    };
}

rules! {
    D01 OpenApi30 "The client generator reads only OpenAPI 3.0, so the copy declares version 3.0.3."
    D02 SingleTypeList "OpenAPI 3.0 has no `type: [T]`; it means `T`."
    D03 NullableTypeList "OpenAPI 3.0 has no `type: [T, null]`; an optional field represents null."
    D04 MultiTypeList "A list of several types has no Rust type, so any JSON is accepted."
    D05 NullBranch "A null branch of a union allows null and is not an alternative of its own."
    D06 ConstType "OpenAPI 3.0 has no `const` or untyped `enum`; the values determine the type."
    D07 ReferenceSiblings "An OpenAPI 3.0 reader ignores the siblings of `$ref`, so both are merged."
    D08 BooleanSchema "OpenAPI 3.0 has no `true` as a schema; any JSON is accepted."
    N01 OperationIds "Operation ids may be missing or clash in Rust, so they are derived from the operation names."
    N02 PathVariables "Path variables get the argument names, so that they do not clash with query or body."
    N03 UndeclaredErrors "Declared errors would be decoded by type; undeclared ones retain their body."
    N04 SingleSuccess "Several success codes, or one without content, fail to decode, so all 2xx share one response."
    N05 ImpliedType "A schema with `properties` but no `type` would be read as any value."
    N06 NamedInlineObjects "Inline objects get their own names, otherwise they clash with components in Rust."
    N07 TextParameters "Joined lists and JSON parameters are text to the client generator."
    N08 UniqueParameters "Two parameters with one Rust name do not compile; the second is sent through the call context."
    N09 AsciiVersion "The spec version is sent in a header, which must be ASCII."
    N10 UniqueFields "Two fields with one Rust name do not compile; the second is passed with the unknown fields."
    R01 NoBounds "Formats and bounds would reject or rewrite values before the API sees them."
    R02 ExactNumbers "Numbers retain their form: 10 stays 10 and 0.005 stays 0.005."
    R03 NoDefaults "Defaults would be added to requests that omit them."
    R04 RawResponses "Declared response schemas would be decoded by type; responses pass through as JSON."
    R05 OpenEnums "Enums are open, so that new values of the API are accepted."
    R06 OpenUnions "A union has no lossless Rust type, so any JSON is accepted and the schema validates it."
    R07 RequestTypesOnly "Only the types of requests are copied, so that response types cannot break the client."
    R08 OpenObjects "Objects are open, so that unknown fields reach the API."
    R09 NullableCollections "Optional lists and maps are nullable, to distinguish empty from absent."
    R10 MergedAllOf "`allOf` of objects becomes one object, because the client generator loses fields otherwise."
    R11 TypedResponses "A response has a type of ours, which reads the JSON and keeps it."
}

/// The enabled rules. Only tests disable one.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoweringRules {
    disabled: Option<LoweringRule>,
}

impl LoweringRules {
    /// Returns all rules except one.
    #[cfg(test)]
    pub fn without(rule: LoweringRule) -> Self {
        Self {
            disabled: Some(rule),
        }
    }

    /// Returns whether the rule is enabled.
    pub fn has(self, rule: LoweringRule) -> bool {
        self.disabled != Some(rule)
    }
}
