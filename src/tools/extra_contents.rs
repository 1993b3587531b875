//! Contents that a request has for the same price, so that a higher level can be read from the cache.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::cache::CachedResult;
use super::options::Options;
use super::path;
use crate::operations::price;
use crate::render::{ContentLevel, ExtraContents, View};
use exa_mcp_model::{NamedToolPlan, Operation};

/// The contents that a tool requests for the levels above the requested one, by dotted path.
#[derive(Debug, Clone, Default)]
pub(super) struct HigherLevels {
    /// The arguments of each level, by its name.
    pub(super) arguments: BTreeMap<String, Map<String, Value>>,
    /// The tool shows more than its namesake at Exa, so more may be requested than is shown.
    requests_more: bool,
}

impl HigherLevels {
    /// Returns the levels above the requested one; none if the caller chose the contents.
    pub(super) fn new(
        plan: &NamedToolPlan,
        arguments: &Map<String, Value>,
        level: ContentLevel,
    ) -> Self {
        let mut own = Map::new();
        if let Some(wanted) = plan.levels.get(level.name()) {
            path::fill(&mut own, wanted);
        }
        let paths = plan.levels.values().flat_map(Map::keys);
        let mut roots = paths.filter_map(|path| path.split('.').next());
        if !roots.all(|root| arguments.get(root) == own.get(root)) {
            return Self::default();
        }
        let is_higher = |name: &str| ContentLevel::from_name(name).is_some_and(|it| it > level);
        let higher = plan.levels.iter().filter(|(name, _)| is_higher(name));
        Self {
            arguments: higher
                .map(|(name, it)| (name.clone(), it.clone()))
                .collect(),
            requests_more: !plan.brief,
        }
    }
}

/// Adds the arguments of higher levels that do not raise the price of a call. Returns the fields that results get by
/// them.
pub(super) fn add(
    operation: &'static Operation,
    arguments: &mut Value,
    levels: &HigherLevels,
) -> Vec<String> {
    let (Value::Object(arguments), true) = (arguments, levels.requests_more) else {
        return Vec::new();
    };
    let mut fields = Vec::new();
    for (path, value) in levels.arguments.values().flatten() {
        if path::has(arguments, path) || !price::is_included(operation, path) {
            continue;
        }
        let mut more = arguments.clone();
        path::set(&mut more, path, value.clone());
        if price::estimate(operation, &more) == price::estimate(operation, arguments) {
            *arguments = more;
            let field = path.rsplit('.').next().unwrap_or(path);
            fields.push(field.to_owned());
        }
    }
    fields
}

/// Returns which of these contents a view hides: all, unless the caller asks for them by level, number or name.
pub(super) fn shown(
    fields: Vec<String>,
    options: &Options,
    view: &View,
    requested_level: Option<ContentLevel>,
) -> ExtraContents {
    let is_asked = options.level().is_some() || view.index.is_some() || !view.fields.is_empty();
    ExtraContents {
        hidden_above: requested_level.filter(|_| !is_asked && !fields.is_empty()),
        fields,
    }
}

/// Returns a view of a cached result.
pub(super) fn view_of_cached(view: &View, options: &Options, cached: &CachedResult) -> View {
    View {
        extract: cached.extract,
        extra: shown(cached.extra.clone(), options, view, cached.requested_level),
        ..view.clone()
    }
}
