//! Typed views of JSON.
//!
//! A response is parsed once, into JSON, and keeps it. Its type reads fields out of that JSON when asked: an
//! accessor returns `None` if a field is absent, null or of another type. Nothing is rejected, and unknown fields
//! and values stay where they are.

mod collections;
mod macros;

use serde_json::Value;

pub use collections::{Entries, EntriesIter, List, ListIter};

/// A type that reads a JSON value without copying it.
pub trait View<'a>: Sized {
    /// Returns the value as this type, or `None` if it is of another type.
    fn read(json: &'a Value) -> Option<Self>;
}

/// A typed value that gives access to the JSON that it reads, unknown fields included.
///
/// A trait and not a method of each type, because methods have the names of fields.
pub trait AsJson<'a> {
    /// Returns the JSON behind the type.
    fn json(self) -> &'a Value;
}

/// What the macros for generated types refer to.
#[doc(hidden)]
pub mod macro_support {
    pub use serde::{Deserialize, Deserializer, Serialize, Serializer};
    pub use serde_json::Value;

    use super::View;

    /// Reads a field of an object. An absent field and null are the same.
    #[inline]
    pub fn read_field<'a, T: View<'a>>(json: &'a Value, name: &str) -> Option<T> {
        T::read(json.get(name).filter(|value| !value.is_null())?)
    }
}

impl<'a> View<'a> for &'a Value {
    fn read(json: &'a Value) -> Option<Self> {
        Some(json)
    }
}

impl<'a> View<'a> for &'a str {
    fn read(json: &'a Value) -> Option<Self> {
        json.as_str()
    }
}

impl<'a> View<'a> for bool {
    fn read(json: &'a Value) -> Option<Self> {
        json.as_bool()
    }
}

impl<'a> View<'a> for f64 {
    fn read(json: &'a Value) -> Option<Self> {
        json.as_f64()
    }
}

/// Integers are also read from `3.0`. The JSON has those above `i64::MAX`.
impl<'a> View<'a> for i64 {
    fn read(json: &'a Value) -> Option<Self> {
        /// Above this, not every integer is a floating-point number.
        const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
        let exact = |number: &f64| number.fract() == 0.0 && number.abs() <= LARGEST_EXACT;
        json.as_i64().or_else(|| {
            let number = json.as_f64().filter(|_| json.is_f64()).filter(exact)?;
            Some(number as Self)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    crate::response_object! {
        /// A page.
        Page<'a> {
            /// Its title.
            title: &'a str = "title",
            count: i64 = "count",
            score: f64 = "score",
            is_new: bool = "isNew",
            kind: Kind<&'a str> = "kind",
            tags: List<'a, &'a str> = "tags",
            rows: List<'a, List<'a, i64>> = "rows",
            subpages: List<'a, Page<&'a Value>> = "subpages",
            parent: Page<&'a Value> = "parent",
            links: Entries<'a, Page<&'a Value>> = "links",
            event: Event<'a> = "event",
            any: &'a Value = "any",
            json: &'a str = "json",
            read: &'a str = "read",
            clone: &'a str = "clone",
        }
    }

    crate::open_enum! {
        /// The kind of a page.
        Kind {
            Plain = "plain",
            Empty = "",
        }
    }

    crate::response_union! {
        /// Something that happened.
        Event<'a> by "type" {
            Added(Page<&'a Value>) = "added" | "created",
            Removed(Page<&'a Value>) = "removed",
        }
    }

    crate::response_value! {
        /// A list of pages.
        Pages<'a>(List<'a, Page<&'a Value>>)
    }

    fn page(json: Value) -> Page {
        Page::from(json)
    }

    #[test]
    fn reads_what_fits_and_nothing_else() {
        let page = page(
            json!({"title": "T", "count": 3.0, "score": 1, "isNew": true, "kind": "plain",
            "tags": ["a", null, "b"], "rows": [[1, 2], [3]], "any": {"x": 1}}),
        );
        assert_eq!(page.title(), Some("T"));
        assert_eq!((page.count(), page.score()), (Some(3), Some(1.0)));
        assert_eq!(page.is_new(), Some(true));
        assert_eq!(page.kind(), Some(Kind::Plain));
        let tags: Vec<&str> = page.tags().unwrap().into_iter().collect();
        assert_eq!(tags, ["a", "b"]);
        let rows = page.rows().unwrap().into_iter();
        assert_eq!(rows.map(|row| row.iter().sum::<i64>()).sum::<i64>(), 6);
        assert_eq!(page.any(), Some(&json!({"x": 1})));
        for wrong in [json!(null), json!(7), json!([]), json!({"title": 5})] {
            let wrong = Page::from(
                json!({"title": wrong, "count": "3", "tags": {}, "parent": [], "any": null}),
            );
            assert_eq!(
                (wrong.title(), wrong.count(), wrong.any()),
                (None, None, None)
            );
            assert!(wrong.tags().is_none() && wrong.parent().is_none());
        }
        for other in [json!(null), json!("text"), json!([1])] {
            assert_eq!(Page::from(other).title(), None);
        }
    }

    #[test]
    fn views_outlive_the_value_they_come_from() {
        let page =
            page(json!({"subpages": [{"title": "A", "parent": {"title": "P"}}, {"title": "B"}]}));
        let titles: Vec<&str> = page
            .subpages()
            .unwrap_or_default()
            .into_iter()
            .filter_map(|page| page.title())
            .collect();
        assert_eq!(titles, ["A", "B"]);
        let parent = page
            .subpages()
            .and_then(|list| list.get(0)?.parent()?.title());
        assert_eq!(parent, Some("P"));
    }

    #[test]
    fn fields_may_have_the_names_of_helpers() {
        let page = page(json!({"json": "x", "read": "y", "clone": "z", "new": 1}));
        assert_eq!(
            (page.json(), page.read(), page.clone()),
            (Some("x"), Some("y"), Some("z"))
        );
        assert_eq!(AsJson::json(&page)["new"], 1);
        assert_eq!(Clone::clone(&page), page);
    }

    #[test]
    fn enums_and_unions_keep_values_they_do_not_know() {
        let page = page(json!({"kind": "wild", "event": {"type": "moved", "to": 3}}));
        assert_eq!(page.kind(), Some(Kind::Other("wild")));
        assert_eq!(page.kind().unwrap().as_str(), "wild");
        assert!(matches!(page.event(), Some(Event::Other(json)) if json["to"] == 3));
        let created = Page::from(json!({"event": {"type": "created", "title": "N"}}));
        assert!(matches!(created.event(), Some(Event::Added(page)) if page.title() == Some("N")));
        assert_eq!(Kind::from("plain"), Kind::<String>::Plain);
        let text = serde_json::to_string(&[Kind::from(""), Kind::Other("new")]).unwrap();
        assert_eq!(text, r#"["","new"]"#);
        assert_eq!(
            serde_json::from_str::<Vec<Kind>>(&text).unwrap(),
            [Kind::Empty, Kind::Other("new".into())]
        );
    }

    #[test]
    fn maps_have_typed_entries() {
        let page = page(json!({"links": {"a": {"title": "A"}, "b": 7}}));
        let links = page.links().unwrap();
        assert_eq!((links.len(), links.is_empty()), (2, false));
        assert_eq!(links.get("a").and_then(Page::<&Value>::title), Some("A"));
        assert_eq!(
            links.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            ["a"]
        );
        assert!(links.json().unwrap().contains_key("b"));
    }

    #[test]
    fn encodes_what_it_decoded() {
        let text = r#"{"z":18446744073709551615,"a":-9223372036854775808,"title":[0.005,1e+300,null,""],"":{}}"#;
        let page: Page = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&page).unwrap(), text);
        assert_eq!(Value::from(page).to_string(), text);
        let pages: Pages = serde_json::from_str("[{\"title\":\"A\"}]").unwrap();
        let view = pages.view().and_then(|pages| pages.get(0)).unwrap();
        assert_eq!(serde_json::to_string(&view).unwrap(), "{\"title\":\"A\"}");
        assert_eq!(Page::<Value>::from(view).title(), Some("A"));
    }
}
