//! The parts of the documentation that follow from the tools: the sizes of tool sets, and recordings of
//! `exa-mcp-server tools`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Notice, Result};
use crate::load;
use crate::tools::{Tool, ToolRegistry};

/// Starts a table of tool sets. Its last two columns, tools and tokens, are generated.
const SETS_START: &str = "<!-- tool sets: numbers written by codegen -->";
const SETS_END: &str = "<!-- end of tool sets -->";

/// Returns the pages below `root` that have generated parts, with these parts up to date.
///
/// A folder without documentation, such as a copy of `data-design/`, has none.
pub(crate) fn generate(
    root: &Path,
    registry: &ToolRegistry,
    notices: &mut Vec<Notice>,
) -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for name in page_names(root)? {
        let text = load::load_text(root, &name)?;
        let mut page = Page::new(registry);
        let current = page.update(&text);
        if page.has_generated_parts {
            notices.extend(page.problems.into_iter().map(|(line, message)| Notice {
                file: name.clone(),
                location: format!("line {line}"),
                message,
            }));
            pages.insert(name, current);
        }
    }
    Ok(pages)
}

/// Returns the README and the pages of `docs/`, relative to `root`.
fn page_names(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if root.join("README.md").is_file() {
        names.push("README.md".to_owned());
    }
    let docs = root.join("docs");
    if docs.is_dir() {
        let fail = |source| Error::Read {
            path: docs.clone(),
            source,
        };
        for entry in std::fs::read_dir(&docs).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            let name = name.to_string_lossy();
            if name.ends_with(".md") {
                names.push(format!("docs/{name}"));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// What the lines at the current position are.
enum Part<'a> {
    Prose,
    /// A table of tool sets.
    Sets,
    /// A block of recorded commands with their output.
    Recording,
    /// The output of a command that is generated, with the line ending of the page.
    Output(Vec<&'a Tool>),
}

/// Replaces the generated parts of one page.
struct Page<'a> {
    registry: &'a ToolRegistry,
    has_generated_parts: bool,
    /// Problems with their line numbers.
    problems: Vec<(usize, String)>,
}

impl<'a> Page<'a> {
    fn new(registry: &'a ToolRegistry) -> Self {
        Self {
            registry,
            has_generated_parts: false,
            problems: Vec::new(),
        }
    }

    fn update(&mut self, text: &str) -> String {
        let mut part = Part::Prose;
        let mut updated = String::with_capacity(text.len());
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let content = line.trim_end_matches(['\r', '\n']);
            let ending = line.get(content.len()..).unwrap_or_default();
            if matches!(part, Part::Output(_)) && !is_end_of_output(content) {
                continue;
            }
            if let Part::Output(tools) = &part {
                for line in listing(tools) {
                    updated.push_str(&format!("{line}{ending}"));
                }
                part = Part::Recording;
            }
            part = self.next_part(part, content, index + 1);
            match &part {
                Part::Sets => updated.push_str(&self.set_row(content, index + 1)),
                _ => updated.push_str(content),
            }
            updated.push_str(ending);
        }
        updated
    }

    /// Returns what a line belongs to, or what follows it if it is a marker or a command.
    fn next_part(&mut self, part: Part<'a>, line: &str, number: usize) -> Part<'a> {
        match part {
            Part::Prose if line == SETS_START => {
                self.has_generated_parts = true;
                Part::Sets
            }
            Part::Prose if line == "```console" => Part::Recording,
            Part::Sets if line == SETS_END => Part::Prose,
            Part::Recording if line == "```" => Part::Prose,
            Part::Recording => match tools_argument(line) {
                Some(list) => {
                    self.has_generated_parts = true;
                    match self.select(list) {
                        Ok(tools) => Part::Output(tools),
                        Err(name) => {
                            let problem = format!("no tool or set is called `{name}`; output kept");
                            self.problems.push((number, problem));
                            Part::Recording
                        }
                    }
                }
                None => Part::Recording,
            },
            other => other,
        }
    }

    /// Returns a row of a table of tool sets with the current numbers.
    fn set_row(&mut self, row: &str, number: usize) -> String {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [first, description, _, _] = cells.as_slice() else {
            return row.to_owned();
        };
        let Some(set) = first
            .strip_prefix("| `")
            .and_then(|it| it.strip_suffix('`'))
        else {
            return row.to_owned();
        };
        let Some(size) = self.registry.set_size(set) else {
            let problem = format!("no set is called `{set}`; numbers kept");
            self.problems.push((number, problem));
            return row.to_owned();
        };
        let (tools, tokens) = (size.tools, size.tokens);
        format!("{first} | {description} | {tools} | {tokens} |")
    }

    /// Returns the tools of a list of sets and tools, like the server, or the name that does not exist.
    fn select(&self, list: &str) -> std::result::Result<Vec<&'a Tool>, String> {
        let mut chosen: Vec<&str> = Vec::new();
        for name in list.split(',').map(str::trim) {
            let names = match self.registry.sets.get(name) {
                Some(names) => names.iter().map(String::as_str).collect(),
                None => vec![name],
            };
            for name in names {
                if !chosen.contains(&name) {
                    chosen.push(name);
                }
            }
        }
        let tools = chosen.into_iter();
        let tools = tools.map(|name| self.registry.tools.get(name).ok_or(name.to_owned()));
        tools.collect()
    }
}

/// Returns the list of tools of a recorded command if its output is generated.
fn tools_argument(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.strip_prefix("$ exa-mcp-server ")?.split(' ').collect();
    let words = match words.as_slice() {
        ["--sandbox", rest @ ..] => rest,
        all => all,
    };
    match words {
        ["tools"] => Some("default"),
        ["tools", "--tools", list] => Some(list),
        _ => None,
    }
}

/// Returns whether the output of a command ends before this line.
fn is_end_of_output(line: &str) -> bool {
    line == "```" || line.starts_with("$ ")
}

/// Returns what `exa-mcp-server tools` prints for these tools.
fn listing(tools: &[&Tool]) -> Vec<String> {
    let definitions = tools.iter().map(|tool| &tool.definition);
    let width = definitions.clone().map(|it| it.name.len()).max();
    let width = width.unwrap_or_default();
    let mut lines: Vec<String> = definitions
        .map(|it| format!("{:width$}  {}", it.name, it.title))
        .collect();
    let tokens: usize = tools.iter().map(|tool| tool.tokens).sum();
    lines.push(String::new());
    lines.push(format!("{} tools, {tokens} tokens (o200k)", tools.len()));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn registry() -> ToolRegistry {
        let tool = |name: &str, title: &str, tokens: usize| -> Tool {
            serde_json::from_value(json!({
                "definition": {
                    "name": name, "title": title, "description": "d", "inputSchema": {},
                    "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true},
                },
                "plan": {"kind": "note"},
                "tokens": tokens,
            }))
            .unwrap()
        };
        let tools = [tool("a", "First", 3), tool("long_name", "Second", 4)];
        ToolRegistry {
            tools: tools
                .into_iter()
                .map(|it| (it.definition.name.clone(), it))
                .collect(),
            sets: BTreeMap::from([(
                "both".to_owned(),
                vec!["long_name".to_owned(), "a".to_owned()],
            )]),
            ..ToolRegistry::default()
        }
    }

    fn update(text: &str) -> (String, Vec<(usize, String)>) {
        let registry = registry();
        let mut page = Page::new(&registry);
        (page.update(text), page.problems)
    }

    #[test]
    fn replaces_the_output_of_the_command_only() {
        let text = "a\n```console\n$ exa-mcp-server tools --tools both\nold\n\n1 tools, 9 tokens (o200k)\n\
                    $ exa-mcp-server call x\n{}\n```\nb\n";
        let expected = "a\n```console\n$ exa-mcp-server tools --tools both\nlong_name  Second\na          First\n\n\
                        2 tools, 7 tokens (o200k)\n$ exa-mcp-server call x\n{}\n```\nb\n";
        assert_eq!(update(text), (expected.to_owned(), Vec::new()));
        assert_eq!(update(expected).0, expected);
    }

    #[test]
    fn replaces_numbers_of_sets_between_the_markers() {
        let row = "| `both` | `a` and more | 9 | 9 |\n";
        let text =
            format!("{row}{SETS_START}\n| set | what | tools | tokens |\n{row}{SETS_END}\n{row}");
        let (updated, problems) = update(&text);
        assert_eq!(updated.matches(row).count(), 2, "{updated}");
        assert!(
            updated.contains("\n| `both` | `a` and more | 2 | "),
            "{updated}"
        );
        assert_eq!(problems, []);
    }

    #[test]
    fn reports_names_that_do_not_exist_and_keeps_their_text() {
        let text = format!(
            "{SETS_START}\n| `gone` | x | 1 | 2 |\n{SETS_END}\n```console\n$ exa-mcp-server tools --tools gone\n1 tools\n```\n"
        );
        let (updated, problems) = update(&text);
        assert_eq!(updated, text);
        let lines: Vec<usize> = problems.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 5]);
    }
}
