//! Turns validation errors into messages that a language model can act on.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::ArgumentProblem;
use super::constraints;
use super::messages::{self, ArgumentPath, expected, given, given_with_type};
use super::names;
use super::open_values::OpenValues;
use super::schema::{self, Node};

/// What a validator found.
pub(super) struct Explained {
    /// What is wrong.
    pub(super) problems: Vec<ArgumentProblem>,
    /// What is accepted although the schema does not list it.
    pub(super) notes: Vec<String>,
}

/// Returns everything that is wrong with `arguments`.
pub(super) fn problems<'s>(
    schema: &'s Value,
    validator: &Validator,
    arguments: &Value,
    open_values: OpenValues<'s>,
) -> Explained {
    let mut explainer = Explainer::new(schema, open_values);
    for error in validator.iter_errors(arguments) {
        explainer.explain(&error);
    }
    Explained {
        problems: explainer.problems,
        notes: explainer.notes,
    }
}

struct Explainer<'s> {
    schema: &'s Value,
    open_values: OpenValues<'s>,
    problems: Vec<ArgumentProblem>,
    notes: Vec<String>,
}

impl<'s> Explainer<'s> {
    fn new(schema: &'s Value, open_values: OpenValues<'s>) -> Self {
        Self {
            schema,
            open_values,
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn add(&mut self, path: &ArgumentPath, message: String) {
        let problem = ArgumentProblem {
            path: path.to_string(),
            message,
        };
        // A `$ref` and its target may report the same type error.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Returns the schema node that `error` is about.
    fn node(&self, error: &ValidationError<'_>) -> Node<'s> {
        let path = error.schema_path().as_str();
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let schema = self.schema.pointer(parent).unwrap_or(&Value::Null);
        Node::new(self.schema, schema)
    }

    fn explain(&mut self, error: &ValidationError<'_>) {
        let path = ArgumentPath::from(error.instance_path());
        let value = error.instance().as_ref();
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.union(error, context, &path, value);
            }
            Kind::OneOfMultipleValid { .. } if self.alternatives(error).is_some() => {
                let names = self.alternatives(error).unwrap_or_default();
                let given = |name: &&str| value.get(*name).is_some();
                let given = quoted(names.into_iter().filter(given), " and ");
                self.add(
                    &path,
                    format!("{given} cannot be combined; give one of them"),
                );
            }
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                self.missing(&self.node(error), name, &path, value);
            }
            Kind::AdditionalProperties { unexpected } => {
                for name in unexpected {
                    self.unknown(&self.node(error), name, &path);
                }
            }
            Kind::Type { .. } => self.wrong_type(&self.node(error), &path, value),
            Kind::Enum { .. } | Kind::Constant { .. } => {
                self.not_listed(&self.node(error).choices(), &path, value);
            }
            other => {
                let rule = constraints::violation(other, value).unwrap_or_else(|| {
                    format!("is not valid: {}", messages::short(&error.to_string()))
                });
                self.add(&path, format!("`{path}` {rule}"));
            }
        }
    }

    fn missing(&mut self, node: &Node<'_>, name: &str, path: &ArgumentPath, value: &Value) {
        let inner = path.property(name);
        let property = node.property(name);
        let expected = property.map_or(String::new(), |property| {
            format!(": {}", expected(&property))
        });
        let known = node.names();
        let given = value.as_object().into_iter().flat_map(|map| map.keys());
        let meant = names::nearest(
            name,
            given.map(String::as_str).filter(|it| !known.contains(it)),
        );
        let hint = meant.map_or(String::new(), |unknown| {
            format!("; `{unknown}` was given, did you mean `{name}`?")
        });
        self.add(&inner, format!("`{inner}` is required{expected}{hint}"));
    }

    fn unknown(&mut self, node: &Node<'_>, name: &str, path: &ArgumentPath) {
        let known = node.names();
        let hint = match names::nearest(name, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => "it takes no arguments".to_owned(),
            None => format!("it takes {}", known.join(", ")),
        };
        let inner = path.property(name);
        self.add(&inner, format!("there is no argument `{inner}`; {hint}"));
    }

    fn wrong_type(&mut self, node: &Node<'_>, path: &ArgumentPath, value: &Value) {
        let text = format!(
            "`{path}` must be {}; got {}",
            expected(node),
            given_with_type(value)
        );
        // A `$ref` and its target may both report the type error; the longer message wins.
        let path = path.to_string();
        let same = |problem: &&mut ArgumentProblem| {
            problem.path == path && problem.message.starts_with(&format!("`{path}` must be "))
        };
        match self.problems.iter_mut().find(same) {
            Some(problem) if problem.message.len() < text.len() => problem.message = text,
            Some(_) => {}
            None => self.problems.push(ArgumentProblem {
                path,
                message: text,
            }),
        }
    }

    fn not_listed(&mut self, choices: &[&Value], path: &ArgumentPath, value: &Value) {
        if let Some(note) = self.open_values.note(choices, path, value) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
            return;
        }
        let allowed = messages::one_of(choices.iter().copied());
        let hint = did_you_mean(choices, value);
        self.add(
            path,
            format!("`{path}` must be {allowed}; got {}{hint}", given(value)),
        );
    }

    /// Returns the names of which a union demands one, if its variants do nothing else than require one each.
    fn alternatives(&self, error: &ValidationError<'_>) -> Option<Vec<&'s str>> {
        let branches = self.node(error).branches();
        let names = branches.iter().map(|branch| {
            let required = branch.required();
            let is_plain = branch.types().is_empty() && branch.names().is_empty();
            match required.as_slice() {
                [only] if is_plain => Some(*only),
                _ => None,
            }
        });
        let names: Option<Vec<&str>> = names.collect();
        names.filter(|names| names.len() > 1)
    }

    /// Explains a value that matches no variant of a union by the closest variant.
    fn union(
        &mut self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        path: &ArgumentPath,
        value: &Value,
    ) {
        if let Some(names) = self.alternatives(error) {
            let names = quoted(names.into_iter(), " or ");
            return self.add(path, format!("{names} is required"));
        }
        let branches = self.node(error).branches();
        if let Some(tag) = schema::tag(&branches) {
            return self.tagged(&branches, tag, context, path, value);
        }
        // Several lists of texts are one.
        let takes_text = |branch: &&Node<'s>| branch.accepts(value);
        let lists = branches.iter().filter(takes_text).map(Node::choices);
        let lists: Vec<Vec<&Value>> = lists.collect();
        if value.is_string() && lists.len() > 1 && lists.iter().all(|list| !list.is_empty()) {
            return self.not_listed(&lists.concat(), path, value);
        }
        // A variant that the value matches but for new enum values was meant.
        let accepting = context
            .iter()
            .filter_map(|errors| {
                let mut trial = Explainer::new(self.schema, self.open_values);
                errors.iter().for_each(|error| trial.explain(error));
                trial.problems.is_empty().then_some(trial.notes)
            })
            .min_by_key(Vec::len);
        if let Some(notes) = accepting {
            return self.notes.extend(notes);
        }
        let closest = context
            .iter()
            .filter(|errors| !is_other_type(errors, error))
            .min_by_key(|errors| errors.len());
        match closest {
            Some(errors) => errors.iter().for_each(|error| self.explain(error)),
            None => self.wrong_type(&self.node(error), path, value),
        }
    }

    /// Explains a union whose variants have a tag, such as the `type` of an entity.
    fn tagged(
        &mut self,
        branches: &[Node<'s>],
        tag: &str,
        context: &[Vec<ValidationError<'static>>],
        path: &ArgumentPath,
        value: &Value,
    ) {
        let choices = |branch: &Node<'s>| branch.property(tag).map(|it| it.choices());
        let all: Vec<&Value> = branches.iter().filter_map(choices).flatten().collect();
        let inner = path.property(tag);
        let Some(map) = value.as_object() else {
            let text = format!(
                "`{path}` must be an object whose `{tag}` is {}; got {}{}",
                messages::one_of(all.iter().copied()),
                given_with_type(value),
                did_you_mean(&all, value),
            );
            return self.add(path, text);
        };
        let Some(given) = map.get(tag) else {
            let allowed = messages::one_of(all.into_iter());
            return self.add(&inner, format!("`{inner}` is required: {allowed}"));
        };
        let meant = branches
            .iter()
            .position(|branch| choices(branch).is_some_and(|it| it.contains(&given)));
        match meant.and_then(|index| context.get(index)) {
            Some(errors) => errors.iter().for_each(|error| self.explain(error)),
            None => self.not_listed(&all, &inner, given),
        }
    }
}

/// Returns whether the value has another type than this variant of a union.
fn is_other_type(errors: &[ValidationError<'_>], union: &ValidationError<'_>) -> bool {
    errors.iter().any(|error| {
        matches!(error.kind(), Kind::Type { .. })
            && error.instance_path().as_str() == union.instance_path().as_str()
    })
}

/// Joins names for a sentence.
fn quoted<'n>(names: impl Iterator<Item = &'n str>, separator: &str) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(separator)
}

fn did_you_mean(choices: &[&Value], value: &Value) -> String {
    let listed = choices.iter().filter_map(|choice| choice.as_str());
    let meant = value.as_str().and_then(|text| names::nearest(text, listed));
    meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"))
}
