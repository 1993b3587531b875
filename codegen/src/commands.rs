//! Checks that the commands of `surface.yaml` refer only to existing operations, arguments and fields.

use std::collections::BTreeSet;

use exa_mcp_model::{
    BatchPlan, CommandArgument, CommandColumn, CommandFile, CommandPlan, CommandValue, RemoteBatch,
};
use serde_json::{Value, json};

use crate::error::Findings;
use crate::model::{Model, Operation};
use crate::surface_check::{Place, Report, listed, locate, value_problem};

/// Omits and reports what needs an operation, an argument or a field that does not exist.
pub fn check(commands: &CommandFile, model: &Model, findings: &mut Findings) -> CommandFile {
    let mut commands = commands.clone();
    let mut names: BTreeSet<String> = BTreeSet::new();
    commands.plans.retain_mut(|plan| {
        let mut report = Report::new(findings, format!("command {}", plan.name));
        if !names.insert(plan.name.clone()) {
            report.omit("a second command has this name; omitted");
            return false;
        }
        check_plan(plan, model, &mut report)
    });
    let mut report = Report::new(findings, "commands".to_owned());
    commands.account.take_if(|name| {
        let missing = model.find(name).is_none();
        if missing {
            report.omit(format!("`{name}` no longer exists; `account` omitted"));
        }
        missing
    });
    if let Some(batch) = &mut commands.batch {
        check_batch(batch, model, &mut report);
    }
    let is_used = |group: &String| {
        let plans = &commands.plans;
        let mut groups = plans.iter().filter_map(|plan| plan.split_name().0);
        groups.any(|used| used == group)
    };
    commands.groups.retain(|group, _| {
        let used = is_used(group);
        if !used {
            report.omit(format!("no command is in the group `{group}`; omitted"));
        }
        used
    });
    commands
}

/// Returns whether the command can be offered.
fn check_plan(plan: &mut CommandPlan, model: &Model, report: &mut Report<'_>) -> bool {
    let Some(operation) = model.find(&plan.operation) else {
        report.omit(format!(
            "`{}` no longer exists; command omitted",
            plan.operation
        ));
        return false;
    };
    let owner = format!("`{}`", operation.name);
    let schema = &operation.input_schema;
    plan.fixed.retain(|path, value| {
        let problem = value_problem(schema, &owner, path, value);
        keep(problem, "fixed value omitted", report)
    });
    plan.defaults.retain(|default| {
        let problem = value_problem(schema, &owner, &default.path, &default.value);
        keep(problem, "default omitted", report)
    });
    for arguments in [&mut plan.arguments, &mut plan.flags] {
        arguments.retain_mut(|argument| check_argument(argument, operation, model, report));
    }
    omit_repeated_names(plan, report);
    if let Some(missing) = unfilled(operation, plan) {
        report.omit(format!(
            "`{}` requires `{missing}`, which the command never sends; command omitted",
            operation.name
        ));
        return false;
    }
    check_response(plan, operation, report);
    true
}

/// Omits flags and short forms that a command has already: its parser would reject the second one.
fn omit_repeated_names(plan: &mut CommandPlan, report: &mut Report<'_>) {
    let mut names = BTreeSet::new();
    let mut letters = BTreeSet::new();
    for arguments in [&mut plan.arguments, &mut plan.flags] {
        arguments.retain_mut(|argument| {
            let name = &argument.name;
            if !names.insert(name.clone()) {
                report.omit(format!("a second argument is called `{name}`; omitted"));
                return false;
            }
            argument.short.take_if(|letter| {
                let repeated = !letters.insert(*letter);
                if repeated {
                    let message =
                        format!("`{name}` is not the first with the short form `{letter}`");
                    report.omit(format!("{message}; short form omitted"));
                }
                repeated
            });
            true
        });
    }
}

/// Reports a problem. Returns whether there is none.
fn keep(problem: Option<String>, consequence: &str, report: &mut Report<'_>) -> bool {
    if let Some(problem) = &problem {
        report.omit(format!("{problem}; {consequence}"));
    }
    problem.is_none()
}

/// Returns whether the operation takes the argument. Adds the values that its schema lists.
fn check_argument(
    argument: &mut CommandArgument,
    operation: &Operation,
    model: &Model,
    report: &mut Report<'_>,
) -> bool {
    let path = match &argument.entry {
        Some(entry) => format!("{}[].{entry}", argument.to),
        None => argument.to.clone(),
    };
    let schema = &operation.input_schema;
    let problem = match (locate(schema, &path), argument.takes) {
        (Place::Missing, _) => Some(format!("`{}` has no argument `{path}`", operation.name)),
        (Place::Declared(fields), CommandValue::Text) => {
            let values = listed(schema, &fields).into_iter();
            let texts = values.filter_map(|value| value.as_str().map(str::to_owned));
            argument.values = texts.collect();
            None
        }
        (_, CommandValue::Switch) => {
            let value = argument.value.clone().unwrap_or(json!(true));
            value_problem(schema, &format!("`{}`", operation.name), &path, &value)
        }
        _ => None,
    };
    argument.ids.take_if(|list| {
        let missing = model.find(list).is_none();
        if missing {
            report.omit(format!("`{list}` no longer exists; completion omitted"));
        }
        missing
    });
    keep(problem, &format!("`{}` omitted", argument.name), report)
}

/// Returns a required argument of the operation that the command never sends.
fn unfilled(operation: &Operation, plan: &CommandPlan) -> Option<String> {
    let required = operation.input_schema.get("required")?.as_array()?;
    let arguments = plan.arguments.iter().chain(&plan.flags);
    let paths = arguments.map(|argument| argument.to.as_str());
    let paths = paths.chain(plan.fixed.keys().map(String::as_str));
    let paths = paths.chain(plan.defaults.iter().map(|default| default.path.as_str()));
    let filled: BTreeSet<&str> = paths.filter_map(|path| path.split('.').next()).collect();
    let mut names = required.iter().filter_map(Value::as_str);
    names.find(|name| !filled.contains(name)).map(str::to_owned)
}

/// Removes columns and texts that no response has.
fn check_response(plan: &mut CommandPlan, operation: &Operation, report: &mut Report<'_>) {
    let schema = &operation.output_schema;
    let exists = |path: &str| locate(schema, path).exists();
    let in_entry = |path: &str| {
        let lists = ["data", "results"];
        exists(path) || lists.iter().any(|list| exists(&format!("{list}[].{path}")))
    };
    plan.columns.retain_mut(|column: &mut CommandColumn| {
        column.paths.retain(|path| in_entry(path));
        let problem = column.paths.is_empty();
        let problem = problem.then(|| format!("no response has the column `{}`", column.title));
        keep(problem, "omitted", report)
    });
    plan.text.retain(|path| {
        let problem = (!exists(path)).then(|| format!("no response has `{path}`"));
        keep(problem, "text omitted", report)
    });
    plan.sources.take_if(|path| {
        let problem = (!exists(path)).then(|| format!("no response has `{path}`"));
        !keep(problem, "sources omitted", report)
    });
}

fn check_batch(batch: &mut BatchPlan, model: &Model, report: &mut Report<'_>) {
    batch.operation.take_if(|name| {
        let problem = model.find(name).is_none();
        let problem = problem.then(|| format!("`{name}` no longer exists"));
        !keep(problem, "lines have no default operation", report)
    });
    batch.remote.take_if(|remote| {
        let problem = remote_problem(remote, model);
        !keep(problem, "remote batches omitted", report)
    });
}

/// Returns why Exa cannot run the requests of a batch, if so.
fn remote_problem(remote: &RemoteBatch, model: &Model) -> Option<String> {
    let Some(operation) = model.find(&remote.operation) else {
        return Some(format!("`{}` no longer exists", remote.operation));
    };
    let fields = [&remote.id, &remote.method, &remote.url, &remote.body];
    let paths = fields.map(|field| format!("{}[].{field}", remote.requests));
    let mut paths = paths.into_iter().chain([remote.metadata.clone()]);
    let missing = paths.find(|path| !locate(&operation.input_schema, path).exists());
    if let Some(path) = missing {
        return Some(format!("`{}` has no argument `{path}`", operation.name));
    }
    let has_results = locate(&operation.output_schema, &remote.results).exists();
    (!has_results).then(|| format!("no response has `{}`", remote.results))
}
