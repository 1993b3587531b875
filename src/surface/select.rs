//! Which tools are offered: sets and single tools by name.

use super::SelectError;
use crate::generated::tools::{SETS, TOOLS};

/// The tools of a list of names such as `default,items,answer_exa`, without repetition, in the
/// order of the list.
pub fn select(list: &str) -> Result<Vec<&'static str>, SelectError> {
    let mut chosen: Vec<&'static str> = Vec::new();
    let mut unknown = Vec::new();
    for name in list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let found: &[&'static str] = match (set(name), tool(name)) {
            (Some(tools), _) => tools,
            (None, Some(tool)) => &[tool],
            (None, None) => {
                unknown.push(name.to_owned());
                continue;
            }
        };
        for tool in found {
            if !chosen.contains(tool) {
                chosen.push(tool);
            }
        }
    }
    if !unknown.is_empty() {
        return Err(SelectError::Unknown {
            names: unknown,
            sets: SETS.iter().map(|(name, _)| (*name).to_owned()).collect(),
            tools: TOOLS.iter().map(|(name, _)| (*name).to_owned()).collect(),
        });
    }
    match chosen.is_empty() {
        true => Err(SelectError::Nothing),
        false => Ok(chosen),
    }
}

/// A set goes before a tool of the same name: `search` is a domain as well as an operation.
fn set(name: &str) -> Option<&'static [&'static str]> {
    let index = SETS
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    SETS.get(index).map(|(_, tools)| *tools)
}

fn tool(name: &str) -> Option<&'static str> {
    let index = TOOLS
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    TOOLS.get(index).map(|(name, _)| *name)
}
