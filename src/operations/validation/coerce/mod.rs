//! Corrects harmless mistakes, and notes each correction.
//!
//! The coercion follows the schema. It corrects only values that violate the schema, so valid values stay unchanged.

mod value;

use serde_json::{Map, Value};

use value::Coerced;

use super::ArgumentProblem;
use super::messages::ArgumentPath;
use super::names;
use super::open_values;
use super::schema::{self, Node};

/// The maximum depth of nested trial corrections. No schema of the API needs more than two; the limit ends the search
/// in recursive schemas.
const MAX_TRIALS: usize = 4;

/// What may be corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoercionScope {
    /// What an open schema accepts, but the API does not or takes for something else: names, numbers such as 5.0, and
    /// listed values in another spelling.
    Names,
    /// Values as well.
    Values,
}

/// Corrects arguments along their schema.
pub(super) struct Coercer<'b> {
    scope: CoercionScope,
    /// Top-level names that are handled elsewhere.
    extra_names: &'b [&'b str],
    trials: usize,
    /// The number of enclosing unions.
    unions: usize,
    /// One sentence per correction.
    pub(super) notes: Vec<String>,
    /// Misspelt names that an open schema accepts.
    pub(super) problems: Vec<ArgumentProblem>,
}

impl<'b> Coercer<'b> {
    /// Creates a coercer that may correct what `scope` allows.
    pub(super) fn new(scope: CoercionScope, extra_names: &'b [&'b str]) -> Self {
        Self {
            scope,
            extra_names,
            trials: 0,
            unions: 0,
            notes: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Corrects `value` at `path`.
    pub(super) fn value(&mut self, node: &Node<'_>, value: &mut Value, path: &ArgumentPath) {
        let branches = node.branches();
        if !branches.is_empty() {
            self.unions += 1;
            self.union(&branches, value, path);
            self.unions -= 1;
        }
        if self.scope == CoercionScope::Values {
            self.repair(node, value, path);
        } else if let Some(Coerced { value: right, how }) = value::listed_spelling(node, value) {
            self.notes.push(format!("`{path}`: {how}"));
            *value = right;
        }
        if let Some(note) = open_values::likely_mistake(node, value, path)
            && !self.notes.contains(&note)
        {
            self.notes.push(note);
        }
        if let Some(whole) = value::to_integer(node, value) {
            self.notes.push(format!(
                "`{path}`: read {value} as the whole number {whole}"
            ));
            *value = whole;
        }
        match value {
            Value::Object(map) => self.object(node, map, path),
            Value::Array(list) => {
                if let Some(items) = node.items() {
                    for (index, entry) in list.iter_mut().enumerate() {
                        self.value(&items, entry, &path.entry(index));
                    }
                }
            }
            _ => {}
        }
    }

    /// Corrects `value` by the variant of a union that it matches, or was meant to match.
    fn union(&mut self, branches: &[Node<'_>], value: &mut Value, path: &ArgumentPath) {
        let fitting: Vec<Node<'_>> = branches
            .iter()
            .filter(|branch| branch.fits(value))
            .cloned()
            .collect();
        match (fitting.as_slice(), &mut *value) {
            ([], _) if self.scope == CoercionScope::Values => {
                let meant = branches
                    .iter()
                    .find(|branch| self.trial(branch, value, path));
                if let Some(branch) = meant {
                    self.value(branch, value, path);
                }
            }
            ([only], _) => self.value(only, value, path),
            (several, Value::Object(map)) => {
                let known: Vec<&str> = several.iter().flat_map(Node::names).collect();
                names::rename(map, &known, path, &mut self.notes);
                if let Some(branch) = tagged(several, map) {
                    self.value(branch, value, path);
                }
            }
            _ => {}
        }
    }

    /// Returns whether `value` can be corrected into something that matches `node`.
    fn trial(&self, node: &Node<'_>, value: &Value, path: &ArgumentPath) -> bool {
        if self.trials >= MAX_TRIALS {
            return false;
        }
        let mut trial = Self {
            scope: self.scope,
            extra_names: self.extra_names,
            trials: self.trials + 1,
            unions: self.unions,
            notes: Vec::new(),
            problems: Vec::new(),
        };
        let mut value = value.clone();
        trial.value(node, &mut value, path);
        node.fits(&value)
    }

    fn repair(&mut self, node: &Node<'_>, value: &mut Value, path: &ArgumentPath) {
        let coerced = if node.accepts(value) {
            value::spelling(node, value, is_end(path))
        } else {
            let entry_fits = |entry: &Value| {
                node.items()
                    .is_none_or(|items| self.trial(&items, entry, path))
            };
            value::convert(node, value, path, &entry_fits)
        };
        if let Some(Coerced { value: right, how }) = coerced {
            self.notes.push(format!("`{path}`: {how}"));
            *value = right;
        }
    }

    fn object(&mut self, node: &Node<'_>, map: &mut Map<String, Value>, path: &ArgumentPath) {
        let known = node.names();
        // Before the names, so that a null does not block a misspelled value of the same name, and after them, because
        // the name of a null may be misspelled.
        self.drop_nulls(node, map, path);
        if !node.is_map() {
            names::rename(map, &known, path, &mut self.notes);
        }
        self.drop_nulls(node, map, path);
        self.fill_constants(node, map, path);
        let additional = node.additional();
        for (name, value) in map.iter_mut() {
            let inner = path.property(name);
            match (node.property(name), &additional) {
                (Some(property), _) => self.value(&property, value, &inner),
                (None, Some(entry)) => {
                    self.flag_in_map(entry, value, &inner);
                    self.value(entry, value, &inner);
                }
                (None, None) => self.unknown(node, &known, name, &inner),
            }
        }
    }

    /// Adds required fields that have a single possible value.
    ///
    /// Not inside a union, where the field selects the variant.
    fn fill_constants(
        &mut self,
        node: &Node<'_>,
        map: &mut Map<String, Value>,
        path: &ArgumentPath,
    ) {
        if self.scope != CoercionScope::Values || self.unions > 0 {
            return;
        }
        for name in node.required() {
            let Some(property) = node.property(name) else {
                continue;
            };
            if let ([only], false) = (property.choices().as_slice(), map.contains_key(name)) {
                let inner = path.property(name);
                self.notes
                    .push(format!("`{inner}`: added {only}, the only possible value"));
                map.insert(name.to_owned(), (*only).clone());
            }
        }
    }

    /// Removes nulls of optional fields that do not accept them.
    fn drop_nulls(&mut self, node: &Node<'_>, map: &mut Map<String, Value>, path: &ArgumentPath) {
        if self.scope != CoercionScope::Values {
            return;
        }
        let required = node.required();
        map.retain(|name, value| {
            let is_removable = value.is_null()
                && !required.contains(&name.as_str())
                && node.property(name).is_some_and(|it| !it.allows_null());
            if is_removable {
                let inner = path.property(name);
                self.notes
                    .push(format!("`{inner}`: left out, because null is not allowed"));
            }
            !is_removable
        });
    }

    /// Turns a boolean in a map of strings into a string. Elsewhere, a boolean instead of a string is a misunderstanding.
    fn flag_in_map(&mut self, entry: &Node<'_>, value: &mut Value, path: &ArgumentPath) {
        if self.scope == CoercionScope::Values
            && entry.types() == ["string"]
            && let Value::Bool(flag) = value
        {
            self.notes
                .push(format!("`{path}`: read {flag} as the string \"{flag}\""));
            *value = Value::String(flag.to_string());
        }
    }

    /// Reports an unknown name. An open schema accepts any name, because the API may know it by now; but Exa silently
    /// ignores a misspelled name, or one that belongs into a nested object.
    fn unknown(&mut self, node: &Node<'_>, known: &[&str], name: &str, path: &ArgumentPath) {
        // Without declared names, or with names declared by the variants of a union, any name is plausible.
        let has_names = !known.is_empty() && node.branches().is_empty();
        let is_extra = path.to_string() == name && self.extra_names.contains(&name);
        if node.is_closed() || node.is_map() || !has_names || is_extra || self.trials > 0 {
            return;
        }
        let candidates = || known.iter().copied();
        let meant = names::variant(name, candidates())
            .or_else(|| names::closest_spelling(name, candidates()))
            .map(str::to_owned)
            .or_else(|| nested_path(node, known, name));
        match meant {
            Some(meant) => self.problems.push(ArgumentProblem {
                path: path.to_string(),
                message: format!("there is no argument `{path}`; did you mean `{meant}`?"),
            }),
            None => self
                .notes
                .push(format!("`{path}` is not in the spec; it was sent as it is")),
        }
    }
}

/// Returns whether an argument is the end of a period, which includes its last day.
fn is_end(path: &ArgumentPath) -> bool {
    let path = path.to_string();
    let name = path.rsplit('.').next().unwrap_or_default();
    name.starts_with("end")
}

/// Returns the path of `name` in the only property that declares it.
fn nested_path(node: &Node<'_>, known: &[&str], name: &str) -> Option<String> {
    let mut paths = known.iter().filter_map(|outer| {
        let names = node.property(outer)?.names();
        let inner = names::variant(name, names)?;
        Some(format!("{outer}.{inner}"))
    });
    paths.next().filter(|_| paths.next().is_none())
}

/// Returns the variant whose tag `map` has, even if slightly misspelled.
fn tagged<'n, 's>(branches: &'n [Node<'s>], map: &Map<String, Value>) -> Option<&'n Node<'s>> {
    let tag = schema::tag(branches)?;
    let given = map.get(tag)?;
    branches.iter().find(|branch| {
        branch.property(tag).is_some_and(|property| {
            let choices = property.choices();
            choices.contains(&given) || value::spelling(&property, given, false).is_some()
        })
    })
}
