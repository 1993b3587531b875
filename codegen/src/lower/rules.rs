//! The lowering rules by id. Each has a fixture in `tests.rs` that fails without it.

macro_rules! rules {
    ($($id:ident $why:literal)*) => {
        /// One lowering rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule { $(#[doc = $why] $id,)* }

        impl Rule {
            /// All rules in the order of their ids.
            pub const ALL: &[Rule] = &[$(Rule::$id,)*];

            /// The id as written in messages and documentation.
            pub fn id(self) -> &'static str {
                match self { $(Rule::$id => stringify!($id),)* }
            }

            /// Why the rule exists.
            pub fn why(self) -> &'static str {
                match self { $(Rule::$id => $why,)* }
            }
        }
    };
}

rules! {
    D01 "The client generator reads OpenAPI 3.0 only, so the copy says it is 3.0.3."
    D02 "`type: [T]` is not 3.0; it means `T`."
    D03 "`type: [T, null]` is not 3.0; null is carried by an optional field."
    D04 "Several types in one list have no Rust type; any JSON is taken."
    D05 "A null branch of a union says that null is allowed and is no branch of its own."
    D06 "`const` and value lists without a type are not 3.0; the value tells the type."
    D07 "`$ref` with siblings hides the siblings from a 3.0 reader; both parts are put together."
    D08 "`true` as a schema is not 3.0; any JSON is taken."
    N01 "Operation ids may be missing, odd or clash in Rust; ours come from the operation names."
    N02 "Path variables get the argument names, so they cannot clash with query or body."
    N03 "Declared errors would be decoded by type; without them every error keeps its body."
    N04 "Several success codes, or one without content, would fail to decode; all 2xx are one."
    N05 "An implied type (`properties` without `type`) would be read as any value."
    N06 "Inline objects get names of their own, or they clash with components in Rust."
    N07 "Parameters that are joined lists or JSON are text to the client generator."
    N08 "Two parameters with one Rust name do not compile; the later one travels with the call."
    N09 "The spec's version goes into a header and must be plain ASCII there."
    R01 "Formats and bounds would refuse or rewrite values before the API sees them."
    R02 "Numbers keep their form: 10 stays 10 and 0.005 stays 0.005."
    R03 "Defaults would be written into requests that left them out."
    R04 "Answers pass through as JSON, so that new fields and values survive."
    R05 "Enums are open: a value that the API learned yesterday must pass."
    R06 "A union has no lossless Rust type; any JSON is taken and the schema checks it."
    R07 "Only what requests need is copied, so answers cannot break the client."
    R08 "Objects are open: an unknown field must reach the API."
    R09 "Optional lists and maps must tell empty from absent, so they are nullable."
    R10 "`allOf` of objects becomes one object; the client generator loses fields otherwise."
}

/// The rules in force. Only tests switch one off.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    off: Option<Rule>,
}

impl Rules {
    /// All rules but one.
    pub fn without(rule: Rule) -> Self {
        Self { off: Some(rule) }
    }

    /// Whether the rule holds.
    pub fn has(self, rule: Rule) -> bool {
        self.off != Some(rule)
    }
}
