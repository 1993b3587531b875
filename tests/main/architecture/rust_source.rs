//! A minimal Rust parser that finds which layers a file uses.

/// A use of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LayerUse {
    /// The name of the module, or that of the package without `exa-mcp-`.
    pub(super) layer: String,
    /// Counted from 1.
    pub(super) line: usize,
}

/// A word or a punctuation mark of the source.
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Returns the source without comments, the contents of literals, and items for tests. Lines keep their numbers.
pub(super) fn production_code(source: &str) -> String {
    without_test_items(&without_comments_and_literals(source))
}

/// Returns the uses of top-level modules of the crate and of other crates of the workspace.
/// `depth` is the number of modules around the file's items: 1 for `src/mcp/mod.rs`, 2 for `src/mcp/handler.rs`.
pub(super) fn layer_uses(source: &str, depth: usize) -> Vec<LayerUse> {
    let code = production_code(source);
    let tokens = tokens(&code);
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text);
    let mut uses = Vec::new();
    // For each open brace, whether it is that of a module.
    let mut braces = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        match token.text {
            "{" => braces.push(index >= 2 && text(index - 2) == "mod"),
            "}" => {
                braces.pop();
            }
            "crate" if text(index + 1) == "::" => {
                uses.extend(first_names(&tokens, index + 2));
            }
            "super" if index == 0 || text(index - 1) != "::" => {
                let mut after = index;
                while text(after) == "super" && text(after + 1) == "::" {
                    after += 2;
                }
                let around = depth + braces.iter().filter(|is_module| **is_module).count();
                if (after - index) / 2 >= around {
                    uses.extend(first_names(&tokens, after));
                }
            }
            name => {
                if let Some(package) = name.strip_prefix("exa_mcp_") {
                    uses.push(LayerUse {
                        layer: package.replace('_', "-"),
                        line: token.line,
                    });
                }
            }
        }
        index += 1;
    }
    uses
}

/// Returns the first names of the path at `index`, or of all paths in the group there.
fn first_names(tokens: &[Token<'_>], index: usize) -> Vec<LayerUse> {
    let named = |token: &Token<'_>| LayerUse {
        layer: token.text.to_owned(),
        line: token.line,
    };
    let rest = tokens.get(index..).unwrap_or_default();
    if rest.first().is_none_or(|token| token.text != "{") {
        return rest.first().map(named).into_iter().collect();
    }
    let mut names = Vec::new();
    let mut open = 0;
    let mut begins = false;
    for token in rest {
        match token.text {
            "{" => open += 1,
            "}" => open -= 1,
            _ if begins => names.push(named(token)),
            _ => {}
        }
        if open == 0 {
            break;
        }
        begins = open == 1 && ["{", ","].contains(&token.text);
    }
    names
}

fn is_word(char: char) -> bool {
    char == '_' || char.is_alphanumeric()
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|char| !is_word(char)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (text, after) = rest.split_at(length);
            let line = number + 1;
            tokens.push(Token { text, line });
            rest = after.trim_start();
        }
    }
    tokens
}

/// Replaces comments and the contents of literals by spaces; line breaks stay.
pub(super) fn without_comments_and_literals(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            'r' if !is_word(before) || before == 'b' => raw_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        if length == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let (skipped, after) = rest.split_at(length);
            code.extend(skipped.chars().map(|char| match char {
                '\n' => '\n',
                _ => ' ',
            }));
            rest = after;
        }
        before = first;
    }
    code
}

/// Returns the length of the comment at the beginning; such comments can be nested.
fn block_comment(text: &str) -> usize {
    let mut open = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            open += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            open -= 1;
            at += 2;
            if open == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of the string at the beginning.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the raw string at the beginning, 0 if there is none.
fn raw_string(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|char| *char == '#').count();
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = hashes + 2;
    let found = text[start..].find(&end);
    found.map_or(text.len(), |at| start + at + end.len())
}

/// Returns the length of the character literal at the beginning, 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        // The first character after the backslash may be a quote itself.
        Some((_, '\\')) => {
            let mut rest = chars.skip(1);
            rest.find(|(_, char)| *char == '\'')
                .map_or(0, |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// Replaces items marked with `#[cfg(test)]` by spaces; line breaks stay.
fn without_test_items(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut remaining = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        let (before, item) = rest.split_at(at);
        let (skipped, after) = item.split_at(MARK.len() + item_length(&item[MARK.len()..]));
        remaining.push_str(before);
        remaining.extend(skipped.chars().filter(|char| *char == '\n'));
        rest = after;
    }
    remaining + rest
}

/// Returns the length of an item with its attributes: up to its semicolon or its closing brace.
fn item_length(code: &str) -> usize {
    let is_import = code.lines().map(str::trim_start).find_map(|line| {
        let is_attribute = line.is_empty() || line.starts_with('#');
        (!is_attribute).then(|| line.starts_with("use ") || line.contains(" use "))
    });
    let is_import = is_import.unwrap_or(false);
    let (mut braces, mut brackets) = (0, 0);
    for (at, char) in code.char_indices() {
        match char {
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                // The end of what is around a last field or statement.
                if braces < 0 {
                    return at;
                }
                if braces == 0 && !is_import {
                    return at + 1;
                }
            }
            '[' | '(' => brackets += 1,
            ']' | ')' => brackets -= 1,
            ';' if braces == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn finds_all_forms_of_use_paths() {
    let source = "\
use crate::accounts::Token;
use crate::{
    operations::{Caller, client::Form},
    render,
};
use super::super::tools::ToolCall;
use exa_mcp_exa_client::KeyPool;
pub(crate) fn run() -> crate::telemetry::Gauges {
    super::here::local()
}
mod inner {
    use super::super::own;
    use super::super::super::store;
}
";
    let found = layer_uses(source, 2);
    let found: Vec<(&str, usize)> = found
        .iter()
        .map(|found| (found.layer.as_str(), found.line))
        .collect();
    let expected = [
        ("accounts", 1),
        ("operations", 3),
        ("render", 4),
        ("tools", 6),
        ("exa-client", 7),
        ("telemetry", 8),
        ("store", 13),
    ];
    assert_eq!(found, expected);
}

#[test]
fn ignores_comments_literals_and_tests() {
    let source = r###"
//! See [`crate::tools`].
/* crate::tools /* crate::tools */ crate::tools */
fn text<'a>(quote: char) -> &'a str {
    let _ = (quote == '"', '\'', "\"crate::tools", r#"crate::tools " crate::tools"#);
    "crate::tools"
}
#[cfg(test)]
use crate::{tools, tools::ToolCall};
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod test_server;
#[cfg(test)]
const SIZES: [usize; 2] = crate::tools::SIZES;
#[cfg(test)]
mod tests {
    use crate::tools::ToolCall;
    fn nothing() {}
}
use crate::render::Level;
"###;
    let found = layer_uses(source, 1);
    let expected = LayerUse {
        layer: "render".to_owned(),
        line: 20,
    };
    assert_eq!(found, [expected]);
}
