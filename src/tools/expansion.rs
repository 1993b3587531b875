//! Gets the contents of a higher level for a cached result that does not have them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cache::CachedResult;
use super::call::OperationCall;
use super::extra_contents::HigherLevels;
use super::operation_runner::OperationRunner;
use super::outcome::ToolResult;
use super::{elicitation, path};
use crate::operations::{self, input_schema, price};
use crate::render::{self, ContentLevel, Envelope, RenderInput, View};
use exa_mcp_model::{ArgumentCheck, MicroDollars, Operation};

/// How to get the contents of a higher level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Expansion {
    /// The arguments of the request.
    arguments: Map<String, Value>,
    /// The contents of the higher levels, by dotted path.
    levels: BTreeMap<String, Map<String, Value>>,
    /// The pages that have the contents of a higher level already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    expanded: BTreeMap<usize, String>,
}

impl Expansion {
    /// Returns the expansion of a request; `None` if there is no higher level, or its contents are requested already.
    pub(super) fn new(
        arguments: &Map<String, Value>,
        levels: HigherLevels,
        extra: &[String],
    ) -> Option<Self> {
        (extra.is_empty() && !levels.arguments.is_empty()).then(|| Self {
            arguments: arguments.clone(),
            levels: levels.arguments,
            expanded: BTreeMap::new(),
        })
    }

    /// Returns the approximate size in memory.
    pub(super) fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(0, |text| text.len())
    }

    /// Returns whether a page has the contents of a level.
    fn has(&self, index: usize, level: ContentLevel) -> bool {
        let known = self.expanded.get(&index);
        known.and_then(|name| ContentLevel::from_name(name)) >= Some(level)
    }

    /// Returns the arguments of the same request with the contents of a level.
    fn request(&self, level: ContentLevel) -> Option<Map<String, Value>> {
        let mut arguments = self.arguments.clone();
        for (path, value) in self.levels.get(level.name())? {
            path::set(&mut arguments, path, value.clone());
        }
        Some(arguments)
    }
}

/// A call that gets the missing contents.
struct Purchase {
    operation: &'static Operation,
    arguments: Map<String, Value>,
    cost: MicroDollars,
}

impl Purchase {
    /// Returns a call with a known price.
    fn new(operation: &'static Operation, arguments: Map<String, Value>) -> Option<Self> {
        let estimate = price::estimate(operation, &arguments);
        (!estimate.unpriced).then_some(Self {
            operation,
            arguments,
            cost: estimate.worst,
        })
    }

    /// Returns a call that reads the contents of these pages.
    fn of_pages(urls: &[&str], contents: &Map<String, Value>) -> Option<Self> {
        let reader = operations::all()
            .iter()
            .find(|operation| operation.behavior.contents.is_some())?;
        let is_address = |check: &&ArgumentCheck| {
            matches!(check, ArgumentCheck::WebAddress { or_id: false, .. })
        };
        let addresses = reader.behavior.checks.iter().find(is_address)?.argument()?;
        let mut arguments = Map::from_iter([(addresses.to_owned(), json!(urls))]);
        for (path, value) in contents {
            let properties = input_schema(reader).get("properties")?;
            let is_own = |path: &str| {
                let root = path.split('.').next().unwrap_or(path);
                properties.get(root).is_some()
            };
            // What one operation groups in an object may stand beside the addresses in the other.
            let own = match path.split_once('.') {
                Some((_, rest)) if !is_own(path) => rest,
                _ => path,
            };
            if !is_own(own) {
                return None;
            }
            path::set(&mut arguments, own, value.clone());
        }
        Self::new(reader, arguments)
    }
}

impl CachedResult {
    /// Returns whether more pages of this copy have the contents of a higher level than those of another copy.
    pub(super) fn has_more_than(&self, other: &Self) -> bool {
        let pages = |copy: &Self| copy.expansion.as_ref().map_or(0, |it| it.expanded.len());
        pages(self) > pages(other)
    }
}

impl OperationRunner<'_> {
    /// Returns whether a cached result may lack contents of the requested level.
    pub(super) fn lacks_contents(&self, cached: &CachedResult) -> bool {
        let level = self.call.options.level();
        cached.expansion.is_some() && level > cached.requested_level
    }

    /// Gets what the requested level of a cached result lacks, by the cheaper of reading the pages and repeating the
    /// request; `None` if nothing is missing or can be had.
    pub(super) async fn expand(&self, cached: &CachedResult, view: &View) -> Option<ToolResult> {
        let expansion = cached.expansion.as_ref()?;
        let level = self.call.options.level()?;
        let level = Some(level).filter(|level| Some(*level) > cached.requested_level)?;
        let response: Value = serde_json::from_str(&cached.response).ok()?;
        let envelope = Envelope::from(response.clone());
        let url = |index: &usize| {
            let page = envelope.results.get(*index)?;
            page.get("url").and_then(Value::as_str)
        };
        let selected = render::selected_indexes(&envelope.results, view);
        let lacking: Vec<usize> = selected
            .into_iter()
            .filter(|index| !expansion.has(*index, level))
            .collect();
        if lacking.is_empty() {
            return Some(self.render_expanded(cached, envelope, view, None).await);
        }
        let urls: Option<Vec<&str>> = lacking.iter().map(url).collect();
        let contents = expansion.levels.get(level.name())?;
        let pages = urls.and_then(|urls| Purchase::of_pages(&urls, contents));
        let operation = operations::find(&cached.operation)?;
        let again = Purchase::new(operation, expansion.request(level)?);
        match (pages, again) {
            (Some(pages), again) if again.as_ref().is_none_or(|it| pages.cost <= it.cost) => {
                self.buy_pages(cached, view, level, pages, (response, lacking))
                    .await
            }
            (_, Some(again)) => Some(self.buy_again(view, level, again).await),
            _ => None,
        }
    }

    /// Repeats the request with the contents of the level.
    async fn buy_again(&self, view: &View, level: ContentLevel, call: Purchase) -> ToolResult {
        let operation = call.operation;
        let again = OperationCall {
            tool: Arc::clone(&self.call.tool),
            operation,
            options: self.call.options.clone(),
            view: view.clone(),
            requested_level: Some(level),
            expansion: None,
            entry: self.call.entry,
            corrections: self.call.corrections.clone(),
        };
        let runner = OperationRunner::new(self.tools, self.context, &again);
        if let Some(cached) = runner.find_cached(&call.arguments).await {
            return runner
                .render_cached(&cached, view.clone(), Vec::new())
                .await;
        }
        elicitation::prepare(self.tools, self.context, operation, &call.arguments).await?;
        let mut output = runner.call_exa(call.arguments, &[]).await?;
        let cost = price::actual(&output.response).unwrap_or(call.cost);
        output.warnings.push(format!(
            "the contents of this level were not cached: Exa was asked again, for {cost}"
        ));
        runner.render_new(Vec::new(), output).await
    }

    /// Reads the pages that lack contents and adds these to the cached result.
    async fn buy_pages(
        &self,
        cached: &CachedResult,
        view: &View,
        level: ContentLevel,
        call: Purchase,
        (mut response, lacking): (Value, Vec<usize>),
    ) -> Option<ToolResult> {
        let expansion = cached.expansion.as_deref()?;
        let prepared =
            elicitation::prepare(self.tools, self.context, call.operation, &call.arguments);
        if let Err(error) = prepared.await {
            return Some(Err(error));
        }
        let reader = OperationCall {
            tool: Arc::clone(&self.call.tool),
            operation: call.operation,
            options: super::options::Options::default(),
            view: View::default(),
            requested_level: None,
            expansion: None,
            entry: None,
            corrections: Vec::new(),
        };
        let runner = OperationRunner::new(self.tools, self.context, &reader);
        let output = match runner.call_exa(call.arguments, &[]).await {
            Ok(output) => output,
            Err(error) => return Some(Err(error)),
        };
        let cost = price::actual(&output.response).unwrap_or(call.cost);
        let read = Envelope::from(output.response);
        let list = Envelope::from(response.clone()).list;
        let results = response.get_mut(list)?.as_array_mut()?;
        let mut expanded = expansion.clone();
        let mut failed = 0;
        for index in lacking {
            let page = results.get_mut(index).and_then(Value::as_object_mut);
            match page.map(|page| add_contents(page, &read.results)) {
                Some(true) => {
                    expanded.expanded.insert(index, level.name().to_owned());
                }
                _ => failed += 1,
            }
        }
        let count = expanded.expanded.len() - expansion.expanded.len();
        let mut note = format!(
            "the contents of this level were not cached: {count} {} read from Exa, for {cost}",
            if count == 1 { "page was" } else { "pages were" }
        );
        if failed > 0 {
            note.push_str(&format!("; {failed} could not be read"));
        }
        self.store_expanded(cached, response.to_string(), expanded)
            .await;
        let envelope = Envelope::from(response);
        let bought = Some((cost, note));
        Some(self.render_expanded(cached, envelope, view, bought).await)
    }

    /// Replaces a cached result by one with more contents, here and on other servers.
    async fn store_expanded(&self, cached: &CachedResult, response: String, expansion: Expansion) {
        let expanded = CachedResult {
            bytes: response.len(),
            response: response.into(),
            expansion: Some(Arc::new(expansion)),
            ..cached.clone()
        };
        self.tools.cache().replace(self.owner, &expanded);
        let store = self.tools.store();
        if let (Some(shared), Some(expansion)) = (self.shared(&*store), &expanded.expansion) {
            shared
                .insert(self.owner, &expansion.arguments, &expanded)
                .await;
        }
    }

    /// Renders a cached result whose pages have the contents of the requested level.
    async fn render_expanded(
        &self,
        cached: &CachedResult,
        mut envelope: Envelope,
        view: &View,
        bought: Option<(MicroDollars, String)>,
    ) -> ToolResult {
        let cached_input = cached.to_render_input();
        let (cost, warnings) = match bought {
            Some((cost, note)) => (Some(cost), vec![note]),
            None => (None, Vec::new()),
        };
        if let Some(cost) = cost {
            let total = json!({"total": cost.dollars()});
            envelope.rest.insert("costDollars".to_owned(), total);
        }
        let input = RenderInput {
            envelope,
            requested_level: None,
            is_expandable: false,
            cached: cost.is_none(),
            corrections: self.call.corrections.clone(),
            warnings,
            ..cached_input
        };
        render::render(input, view).map_err(|error| {
            super::error::ToolError::invalid(
                &cached.operation,
                super::options::view_problem(&error),
            )
        })
    }
}

/// Adds the contents of the page with the same address. Returns whether it was read.
fn add_contents(page: &mut Map<String, Value>, read: &[Value]) -> bool {
    let address = |page: &Map<String, Value>, name: &str| {
        page.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    let own = [address(page, "url"), address(page, "id")];
    let is_same = |other: &&Map<String, Value>| {
        let names = ["url", "id"].iter();
        names
            .filter_map(|name| address(other, name))
            .any(|it| own.contains(&Some(it)))
    };
    let Some(found) = read.iter().filter_map(Value::as_object).find(is_same) else {
        return false;
    };
    for (name, value) in found.iter().filter(|(_, value)| !value.is_null()) {
        if !["id", "url", "title"].contains(&name.as_str()) {
            page.insert(name.clone(), value.clone());
        }
    }
    true
}
