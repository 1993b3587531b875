//! What the validator found, in sentences a language model can act on.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::Problem;
use super::messages::{self, Place, given, given_kind, wanted};
use super::names;
use super::rules;
use super::schema::{self, Node};

/// Everything that is wrong with `arguments`.
pub(super) fn problems(schema: &Value, validator: &Validator, arguments: &Value) -> Vec<Problem> {
    let mut explainer = Explainer {
        schema,
        problems: Vec::new(),
    };
    for error in validator.iter_errors(arguments) {
        explainer.explain(&error);
    }
    explainer.problems
}

struct Explainer<'s> {
    schema: &'s Value,
    problems: Vec<Problem>,
}

impl<'s> Explainer<'s> {
    fn add(&mut self, place: &Place, text: String) {
        let problem = Problem {
            place: place.to_string(),
            text,
        };
        // A reference and its target both say what kind they want.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The place of the schema that `error` is about.
    fn node(&self, error: &ValidationError<'_>) -> Node<'s> {
        let path = error.schema_path().as_str();
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let schema = self.schema.pointer(above).unwrap_or(&Value::Null);
        Node::new(self.schema, schema)
    }

    fn explain(&mut self, error: &ValidationError<'_>) {
        let place = Place::from(error.instance_path());
        let value = error.instance().as_ref();
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.union(error, context, &place, value);
            }
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                self.missing(&self.node(error), name, &place, value);
            }
            Kind::AdditionalProperties { unexpected } => {
                for name in unexpected {
                    self.unknown(&self.node(error), name, &place);
                }
            }
            Kind::Type { .. } => self.wrong_kind(&self.node(error), &place, value),
            Kind::Enum { .. } | Kind::Constant { .. } => {
                self.not_listed(&self.node(error).choices(), &place, value);
            }
            other => {
                let rule = rules::broken(other, value).unwrap_or_else(|| {
                    format!("is not valid: {}", messages::short(&error.to_string()))
                });
                self.add(&place, format!("`{place}` {rule}"));
            }
        }
    }

    fn missing(&mut self, node: &Node<'_>, name: &str, place: &Place, value: &Value) {
        let inner = place.property(name);
        let property = node.property(name);
        let wish = property.map_or(String::new(), |property| format!(": {}", wanted(&property)));
        let known = node.names();
        let strangers = value.as_object().into_iter().flat_map(|map| map.keys());
        let meant = names::nearest(
            name,
            strangers
                .map(String::as_str)
                .filter(|it| !known.contains(it)),
        );
        let hint = meant.map_or(String::new(), |stranger| {
            format!("; `{stranger}` was given, did you mean `{name}`?")
        });
        self.add(&inner, format!("`{inner}` is required{wish}{hint}"));
    }

    fn unknown(&mut self, node: &Node<'_>, name: &str, place: &Place) {
        let known = node.names();
        let hint = match names::nearest(name, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => "none are taken".to_owned(),
            None => format!("it takes {}", known.join(", ")),
        };
        let inner = place.property(name);
        self.add(&inner, format!("there is no argument `{inner}`; {hint}"));
    }

    fn wrong_kind(&mut self, node: &Node<'_>, place: &Place, value: &Value) {
        let text = format!(
            "`{place}` must be {}; got {}",
            wanted(node),
            given_kind(value)
        );
        // The reference and its target differ in how much they tell: the longer text is kept.
        let place = place.to_string();
        let same = |problem: &&mut Problem| {
            problem.place == place && problem.text.starts_with(&format!("`{place}` must be "))
        };
        match self.problems.iter_mut().find(same) {
            Some(problem) if problem.text.len() < text.len() => problem.text = text,
            Some(_) => {}
            None => self.problems.push(Problem { place, text }),
        }
    }

    fn not_listed(&mut self, choices: &[&Value], place: &Place, value: &Value) {
        let allowed = messages::one_of(choices.iter().copied());
        let hint = did_you_mean(choices, value);
        self.add(
            place,
            format!("`{place}` must be {allowed}; got {}{hint}", given(value)),
        );
    }

    /// Explains a value that has none of the allowed forms by the form it comes closest to.
    fn union(
        &mut self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        place: &Place,
        value: &Value,
    ) {
        let branches = self.node(error).branches();
        if let Some(tag) = schema::tag(&branches) {
            return self.tagged(&branches, tag, context, place, value);
        }
        let closest = context
            .iter()
            .filter(|errors| !is_other_kind(errors, error))
            .min_by_key(|errors| errors.len());
        match closest {
            Some(errors) => errors.iter().for_each(|error| self.explain(error)),
            None => self.wrong_kind(&self.node(error), place, value),
        }
    }

    /// A union whose forms bear a tag, such as the `type` of an entity.
    fn tagged(
        &mut self,
        branches: &[Node<'s>],
        tag: &str,
        context: &[Vec<ValidationError<'static>>],
        place: &Place,
        value: &Value,
    ) {
        let choices = |branch: &Node<'s>| branch.property(tag).map(|it| it.choices());
        let all: Vec<&Value> = branches.iter().filter_map(choices).flatten().collect();
        let inner = place.property(tag);
        let Some(map) = value.as_object() else {
            let text = format!(
                "`{place}` must be an object whose `{tag}` is {}; got {}{}",
                messages::one_of(all.iter().copied()),
                given_kind(value),
                did_you_mean(&all, value),
            );
            return self.add(place, text);
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

/// Whether the value is not even of the kind that this form of a union wants.
fn is_other_kind(errors: &[ValidationError<'_>], union: &ValidationError<'_>) -> bool {
    errors.iter().any(|error| {
        matches!(error.kind(), Kind::Type { .. })
            && error.instance_path().as_str() == union.instance_path().as_str()
    })
}

fn did_you_mean(choices: &[&Value], value: &Value) -> String {
    let listed = choices.iter().filter_map(|choice| choice.as_str());
    let meant = value.as_str().and_then(|text| names::nearest(text, listed));
    meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"))
}
