//! Harmless slips are put right, each with a note.
//!
//! The walk follows the schema. Every correction answers a violation at exactly its place, so a value
//! that the schema accepts is never touched.

mod value;

use serde_json::{Map, Value};

use value::Coerced;

use super::Problem;
use super::messages::Place;
use super::names;
use super::schema::{self, Node};

/// How often a correction may depend on another one that is tried first. No schema of the API needs
/// more than two; the limit ends the search in schemas that contain themselves.
const MAX_TRIALS: usize = 4;

/// What may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Names, and numbers like 5.0: open schemas accept them, the API does not.
    Form,
    /// Values, too.
    Values,
}

/// One walk over the arguments.
pub(super) struct Coercer<'b> {
    reach: Reach,
    /// Names at the top that are known elsewhere.
    beyond: &'b [&'b str],
    trials: usize,
    /// How many unions the walk is inside of.
    unions: usize,
    /// One sentence per correction.
    pub(super) notes: Vec<String>,
    /// Names that must be a slip, though an open schema takes them.
    pub(super) problems: Vec<Problem>,
}

impl<'b> Coercer<'b> {
    /// A walk that may change as much as `reach` says.
    pub(super) fn new(reach: Reach, beyond: &'b [&'b str]) -> Self {
        Self {
            reach,
            beyond,
            trials: 0,
            unions: 0,
            notes: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Puts `value`, which stands at `place`, right.
    pub(super) fn value(&mut self, node: &Node<'_>, value: &mut Value, place: &Place) {
        let branches = node.branches();
        if !branches.is_empty() {
            self.unions += 1;
            self.union(&branches, value, place);
            self.unions -= 1;
        }
        if self.reach == Reach::Values {
            self.repair(node, value, place);
        }
        if let Some(whole) = value::whole(node, value) {
            self.notes.push(format!(
                "`{place}`: read {value} as the whole number {whole}"
            ));
            *value = whole;
        }
        match value {
            Value::Object(map) => self.object(node, map, place),
            Value::Array(list) => {
                if let Some(items) = node.items() {
                    for (index, entry) in list.iter_mut().enumerate() {
                        self.value(&items, entry, &place.entry(index));
                    }
                }
            }
            _ => {}
        }
    }

    /// Follows the form of a union that `value` has, or was meant to have.
    fn union(&mut self, branches: &[Node<'_>], value: &mut Value, place: &Place) {
        let fitting: Vec<Node<'_>> = branches
            .iter()
            .filter(|branch| branch.fits(value))
            .cloned()
            .collect();
        match (fitting.as_slice(), &mut *value) {
            ([], _) if self.reach == Reach::Values => {
                let meant = branches
                    .iter()
                    .find(|branch| self.trial(branch, value, place));
                if let Some(branch) = meant {
                    self.value(branch, value, place);
                }
            }
            ([only], _) => self.value(only, value, place),
            (several, Value::Object(map)) => {
                let known: Vec<&str> = several.iter().flat_map(Node::names).collect();
                names::rename(map, &known, place, &mut self.notes);
                if let Some(branch) = tagged(several, map) {
                    self.value(branch, value, place);
                }
            }
            _ => {}
        }
    }

    /// Whether `value` could be corrected into something that fits `node`.
    fn trial(&self, node: &Node<'_>, value: &Value, place: &Place) -> bool {
        if self.trials >= MAX_TRIALS {
            return false;
        }
        let mut trial = Self {
            reach: self.reach,
            beyond: self.beyond,
            trials: self.trials + 1,
            unions: self.unions,
            notes: Vec::new(),
            problems: Vec::new(),
        };
        let mut value = value.clone();
        trial.value(node, &mut value, place);
        node.fits(&value)
    }

    fn repair(&mut self, node: &Node<'_>, value: &mut Value, place: &Place) {
        let coerced = if node.takes(value) {
            value::spelling(node, value)
        } else {
            let entry_fits = |entry: &Value| {
                node.items()
                    .is_none_or(|items| self.trial(&items, entry, place))
            };
            value::kind(node, value, place, &entry_fits)
        };
        if let Some(Coerced { value: right, how }) = coerced {
            self.notes.push(format!("`{place}`: {how}"));
            *value = right;
        }
    }

    fn object(&mut self, node: &Node<'_>, map: &mut Map<String, Value>, place: &Place) {
        let known = node.names();
        // Before the names, so that a null does not keep its name from a misspelt value, and after
        // them, because a null may be misspelt itself.
        self.drop_nulls(node, map, place);
        if !node.is_map() {
            names::rename(map, &known, place, &mut self.notes);
        }
        self.drop_nulls(node, map, place);
        self.fill_constants(node, map, place);
        let additional = node.additional();
        for (name, value) in map.iter_mut() {
            let inner = place.property(name);
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

    /// A required field with a single possible value says nothing, so it may be left out.
    ///
    /// Not inside a union: there it tells which form is meant.
    fn fill_constants(&mut self, node: &Node<'_>, map: &mut Map<String, Value>, place: &Place) {
        if self.reach != Reach::Values || self.unions > 0 {
            return;
        }
        for name in node.required() {
            let Some(property) = node.property(name) else {
                continue;
            };
            if let ([only], false) = (property.choices().as_slice(), map.contains_key(name)) {
                let inner = place.property(name);
                self.notes
                    .push(format!("`{inner}`: added {only}, the only possible value"));
                map.insert(name.to_owned(), (*only).clone());
            }
        }
    }

    /// Null in an optional place means that nothing was given.
    fn drop_nulls(&mut self, node: &Node<'_>, map: &mut Map<String, Value>, place: &Place) {
        if self.reach != Reach::Values {
            return;
        }
        let required = node.required();
        map.retain(|name, value| {
            let optional = value.is_null()
                && !required.contains(&name.as_str())
                && node.property(name).is_some_and(|it| !it.allows_null());
            if optional {
                let inner = place.property(name);
                self.notes
                    .push(format!("`{inner}`: left out, because null is not allowed"));
            }
            !optional
        });
    }

    /// The caller's own key-value pairs are strings; `true` among them is one that forgot its
    /// quotes. Anywhere else a truth value in place of text is a misunderstanding.
    fn flag_in_map(&mut self, entry: &Node<'_>, value: &mut Value, place: &Place) {
        if self.reach == Reach::Values
            && entry.kinds() == ["string"]
            && let Value::Bool(flag) = value
        {
            self.notes
                .push(format!("`{place}`: read {flag} as the string \"{flag}\""));
            *value = Value::String(flag.to_string());
        }
    }

    /// An open schema takes any name, because the API may have learnt it since; but one that is nearly a
    /// known name, or stands beside the object that has it, would get lost at Exa without a word.
    fn unknown(&mut self, node: &Node<'_>, known: &[&str], name: &str, place: &Place) {
        // Where no names are told, or the forms of a union tell them, nothing can be said of others.
        let is_told = !known.is_empty() && node.branches().is_empty();
        let is_beyond = place.to_string() == name && self.beyond.contains(&name);
        if node.is_closed() || node.is_map() || !is_told || is_beyond || self.trials > 0 {
            return;
        }
        let candidates = || known.iter().copied();
        let meant = names::variant(name, candidates())
            .or_else(|| names::closest_spelling(name, candidates()))
            .map(str::to_owned)
            .or_else(|| further_in(node, known, name));
        match meant {
            Some(meant) => self.problems.push(Problem {
                place: place.to_string(),
                text: format!("there is no argument `{place}`; did you mean `{meant}`?"),
            }),
            None => self.notes.push(format!(
                "`{place}` is not in the spec; it was sent as it is"
            )),
        }
    }
}

/// Where `name` would have been known: in the only property that has one of that name.
fn further_in(node: &Node<'_>, known: &[&str], name: &str) -> Option<String> {
    let mut places = known.iter().filter_map(|outer| {
        let names = node.property(outer)?.names();
        let inner = names::variant(name, names)?;
        Some(format!("{outer}.{inner}"))
    });
    places.next().filter(|_| places.next().is_none())
}

/// The form whose tag `map` bears, even if slightly misspelt.
fn tagged<'n, 's>(branches: &'n [Node<'s>], map: &Map<String, Value>) -> Option<&'n Node<'s>> {
    let tag = schema::tag(branches)?;
    let given = map.get(tag)?;
    branches.iter().find(|branch| {
        branch.property(tag).is_some_and(|property| {
            let choices = property.choices();
            choices.contains(&given) || value::spelling(&property, given).is_some()
        })
    })
}
