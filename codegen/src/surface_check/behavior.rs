//! Checks the behavior of one operation.

use exa_mcp_model::{
    ArgumentCheck, DefaultContents, ExampleCall, OperationBehavior, StreamResumption,
};
use serde_json::{Value, json};

use super::hints::Vocabulary;
use super::places::{Place, locate};
use super::{Catalog, Report, long_running, misfit, value_problem};
use crate::model::Operation;

/// The units that a duration may have.
const UNITS: &str = "mhdw";

/// Removes what needs arguments, fields or operations that do not exist.
pub(super) fn check(
    behavior: &mut OperationBehavior,
    operation: &Operation,
    catalog: &Catalog<'_>,
    filters: &[&str],
    report: &mut Report<'_>,
) {
    check_example(&mut behavior.example, operation, report);
    let vocabulary = Vocabulary::new(&[&operation.input_schema, &operation.output_schema]);
    behavior.hints.retain(|hint| {
        let unknown = vocabulary.unknown_word(hint);
        if let Some(word) = &unknown {
            report.omit(format!(
                "the hint “{hint}” names `{word}`, which the operation does not have; hint omitted"
            ));
        }
        unknown.is_none()
    });
    behavior.checks.retain(|check| {
        let problem = check_problem(check, operation);
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; check omitted"));
        }
        problem.is_none()
    });
    behavior.filters.retain(|filter, name| {
        let problem = if filters.contains(&filter.as_str()) {
            missing_argument(operation, name)
        } else {
            Some(format!("there is no filter `{filter}`"))
        };
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; filter omitted"));
        }
        problem.is_none()
    });
    if let Some(contents) = &mut behavior.contents {
        check_contents(contents, operation, report);
    }
    behavior.stream.take_if(|stream| {
        let problem = missing_argument(operation, stream.argument());
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; streaming omitted"));
        }
        problem.is_some()
    });
    if behavior.probe
        && let Some(problem) = probe_problem(operation)
    {
        report.omit(format!("{problem}; it is not used as a health check"));
        behavior.probe = false;
    }
    check_operations(behavior, operation, catalog, report);
}

/// Removes arguments of the default content that do not exist, and values that do not fit.
fn check_contents(contents: &mut DefaultContents, operation: &Operation, report: &mut Report<'_>) {
    contents.unless.retain(|name| {
        let problem = missing_argument(operation, name);
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; omitted from `unless`"));
        }
        problem.is_none()
    });
    let levels = [
        &mut contents.summary,
        &mut contents.standard,
        &mut contents.full,
    ];
    for level in levels {
        level.retain(|path, value| {
            let problem = value_problem(&operation.input_schema, "the operation", path, value);
            if let Some(problem) = &problem {
                report.omit(format!("{problem}; default content omitted"));
            }
            problem.is_none()
        });
    }
}

fn missing_argument(operation: &Operation, name: &str) -> Option<String> {
    let missing = !operation.has_argument(name);
    missing.then(|| format!("the operation has no argument `{name}`"))
}

/// Removes arguments from an example that do not exist, and texts that do not fit.
fn check_example(example: &mut ExampleCall, operation: &Operation, report: &mut Report<'_>) {
    example.with.retain(|name| {
        let problem = missing_argument(operation, name);
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; example omitted"));
        }
        problem.is_none()
    });
    example.texts.retain(|name, text| {
        let schema = &operation.input_schema;
        let problem = match locate(schema, name) {
            Place::Missing => missing_argument(operation, name),
            Place::Open => None,
            Place::Declared(fields) => misfit(schema, &fields, name, &json!(text)),
        };
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; example omitted"));
        }
        problem.is_none()
    });
}

/// Returns why a check cannot be made, if so.
fn check_problem(check: &ArgumentCheck, operation: &Operation) -> Option<String> {
    let expect =
        |path: &str, example: Value, kind: &str| match locate(&operation.input_schema, path) {
            Place::Missing => missing_path(path),
            Place::Open => None,
            Place::Declared(fields) => {
                let accepts = |field: &super::places::Field<'_>| {
                    accepts_kind(&operation.input_schema, field.schema, &example)
                };
                (!fields.iter().any(accepts)).then(|| format!("`{path}` is no {kind}"))
            }
        };
    let fields = |path: &str, names: &[&str]| {
        names.iter().find_map(|name| {
            let path = format!("{path}.{name}");
            let path = path.trim_start_matches('.');
            let exists = locate(&operation.input_schema, path).exists();
            (!exists).then(|| missing_path(path)).flatten()
        })
    };
    match check {
        ArgumentCheck::EnrichmentOptions { argument } => fields(argument, &["format", "options"]),
        ArgumentCheck::Schedule { argument } => fields(argument, &["cron", "timezone"]),
        ArgumentCheck::Duration {
            argument,
            at_least,
            units,
            ..
        } => expect(argument, json!("text"), "text").or_else(|| duration_problem(at_least, units)),
        ArgumentCheck::Count { argument } => expect(argument, json!(1), "number"),
        ArgumentCheck::WebAddress { argument, .. } => expect(argument, json!("text"), "text"),
        ArgumentCheck::ImportContent => fields("", &["size", "count"]),
    }
}

fn missing_path(path: &str) -> Option<String> {
    Some(format!("the operation has no argument `{path}`"))
}

fn duration_problem(at_least: &str, units: &str) -> Option<String> {
    if units.is_empty() || !units.chars().all(|unit| UNITS.contains(unit)) {
        return Some(format!("`{units}` are no units; they are of `{UNITS}`"));
    }
    let number = at_least.trim_end_matches(|c| units.contains(c));
    let is_duration = number.parse::<u64>().is_ok() && at_least.len() == number.len() + 1;
    (!is_duration).then(|| format!("`{at_least}` is no number with one of the units `{units}`"))
}

/// Returns whether some value of the same type as the example may be there.
fn accepts_kind(root: &Value, schema: &Value, example: &Value) -> bool {
    let kinds: &[&str] = if example.is_string() {
        &["string"]
    } else {
        &["number", "integer"]
    };
    let mut visited = std::collections::BTreeSet::new();
    let mut pending = vec![schema];
    while let Some(schema) = pending.pop() {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if types.iter().any(|name| kinds.contains(name)) {
            return true;
        }
        let before = pending.len();
        let reference = schema.get("$ref").and_then(Value::as_str);
        let reference = reference.filter(|it| visited.insert((*it).to_owned()));
        pending.extend(reference.and_then(|it| root.pointer(it.trim_start_matches('#'))));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let branches = schema.get(keyword).and_then(Value::as_array);
            pending.extend(branches.into_iter().flatten());
        }
        if types.is_empty() && pending.len() == before && schema.get("$ref").is_none() {
            // Without a type, any value is possible.
            return true;
        }
    }
    false
}

fn probe_problem(operation: &Operation) -> Option<String> {
    let required = operation.input_schema.get("required");
    let required = required.and_then(Value::as_array);
    if operation.method != "get" {
        return Some(format!(
            "{} changes something",
            operation.method.to_uppercase()
        ));
    }
    let first = required.and_then(|names| names.first()?.as_str())?;
    Some(format!("the operation requires `{first}`"))
}

/// Returns why a broken stream of `operation` cannot be continued, if so.
fn resumption_problem(
    resume: &StreamResumption,
    operation: &Operation,
    catalog: &Catalog<'_>,
) -> Option<String> {
    let name = &resume.operation;
    let Some(other) = catalog.get(name.as_str()) else {
        return Some(format!("`{name}` no longer exists"));
    };
    let mut arguments = resume.arguments.keys().chain([&resume.after]);
    if let Some(missing) = arguments.find(|argument| !other.has_argument(argument)) {
        return Some(format!("`{name}` has no argument `{missing}`"));
    }
    let mut fields = resume.arguments.values();
    let missing = fields.find(|field| !locate(&operation.output_schema, field).exists())?;
    Some(format!("the response has no field `{missing}`"))
}

/// Removes behavior that needs operations that no longer exist.
fn check_operations(
    behavior: &mut OperationBehavior,
    operation: &Operation,
    catalog: &Catalog<'_>,
    report: &mut Report<'_>,
) {
    if let Some(stream) = &mut behavior.stream {
        stream.get.take_if(|name| {
            let missing = !catalog.contains_key(name.as_str());
            if missing {
                report.omit(format!("`{name}` no longer exists; polling omitted"));
            }
            missing
        });
        stream.resume.take_if(|resume| {
            let problem = resumption_problem(resume, operation, catalog);
            if let Some(problem) = &problem {
                report.omit(format!("{problem}; resuming omitted"));
            }
            problem.is_some()
        });
    }
    behavior.upload.take_if(|upload| {
        let problem = [&upload.get, &upload.delete].into_iter().find_map(|name| {
            match catalog.get(name.as_str()) {
                None => Some(format!("`{name}` no longer exists")),
                Some(other) if !other.has_argument(&upload.id) => {
                    Some(format!("`{name}` has no argument `{}`", upload.id))
                }
                Some(_) => None,
            }
        });
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; upload omitted"));
        }
        problem.is_some()
    });
    behavior.replaced_by.take_if(|name| {
        let missing = !catalog.contains_key(name.as_str());
        if missing {
            report.omit(format!("`{name}` no longer exists; replacement omitted"));
        }
        missing
    });
    let marker = behavior.long_running.take();
    behavior.long_running =
        marker.and_then(|marker| long_running::check(marker, operation, catalog, report));
}
