//! Examples are valid, and the commands in them run.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use serde_json::Value;

use super::pages;

/// A fenced code block.
struct CodeBlock {
    page: String,
    language: String,
    text: String,
}

fn code_blocks() -> Vec<CodeBlock> {
    let mut blocks = Vec::new();
    for (page, text) in pages() {
        let mut current: Option<CodeBlock> = None;
        for event in Parser::new(&text) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    current = Some(CodeBlock {
                        page: page.display().to_string(),
                        language: language.to_string(),
                        text: String::new(),
                    });
                }
                Event::Text(text) => {
                    if let Some(block) = &mut current {
                        block.text.push_str(&text);
                    }
                }
                Event::End(TagEnd::CodeBlock) => blocks.extend(current.take()),
                _ => {}
            }
        }
    }
    blocks
}

#[test]
fn json_blocks_are_valid() {
    let mut checked = 0;
    for block in code_blocks().iter().filter(|it| it.language == "json") {
        for value in serde_json::Deserializer::from_str(&block.text).into_iter::<Value>() {
            checked += 1;
            let problem = value.err().map(|error| error.to_string());
            assert_eq!(problem, None, "{}:\n{}", block.page, block.text);
        }
    }
    assert!(checked > 10, "only {checked} values were checked");
}

#[cfg(unix)]
mod commands {
    use std::path::Path;
    use std::process::{Command, Output};

    use super::code_blocks;

    /// Runs a command in a shell that finds the program under its name.
    fn run(command: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_exa-mcp-server"));
        let folder = program.parent().unwrap().display();
        Command::new("/bin/sh")
            .args(["-c", command])
            .env_clear()
            .env("PATH", format!("{folder}:/usr/local/bin:/usr/bin:/bin"))
            .env("NO_PROXY", "127.0.0.1")
            .output()
            .unwrap()
    }

    /// Returns whether the lines match the recording; a recorded line `…` stands for any number of lines.
    fn matches(recorded: &[&str], lines: &[&str]) -> bool {
        match recorded.split_first() {
            None => lines.is_empty(),
            Some((&"…", rest)) => (0..=lines.len()).any(|skip| matches(rest, &lines[skip..])),
            Some((first, rest)) => lines.first() == Some(first) && matches(rest, &lines[1..]),
        }
    }

    #[test]
    fn recordings_show_the_real_output() {
        let mut checked = 0;
        for block in code_blocks().iter().filter(|it| it.language == "console") {
            for session in block.text.split("$ ").skip(1) {
                checked += 1;
                let (command, recorded) = session.split_once('\n').unwrap();
                let output = run(command);
                let text = String::from_utf8(output.stdout).unwrap();
                let recorded: Vec<&str> = recorded.lines().collect();
                let lines: Vec<&str> = text.lines().collect();
                let page = &block.page;
                assert!(matches(&recorded, &lines), "{page}: {command}\n{text}");
            }
        }
        assert!(checked > 1, "only {checked} commands were checked");
    }

    #[test]
    fn documented_calls_are_made() {
        let mut checked = 0;
        let blocks = code_blocks();
        let shell = blocks.iter().filter(|it| it.language.ends_with("sh"));
        for (page, line) in shell.flat_map(|it| it.text.lines().map(|line| (&it.page, line))) {
            let commands = [
                "call",
                "tools",
                "search",
                "fetch",
                "answer",
                "research",
                "websets",
                "operations",
                "capabilities",
                "whoami",
            ];
            if !commands
                .iter()
                .any(|name| line.contains(&format!("exa-mcp-server {name}")))
            {
                continue;
            }
            checked += 1;
            let output = run(&line.replacen("exa-mcp-server", "exa-mcp-server --sandbox", 1));
            // The sandbox does not know the ids of the examples, so the call may fail with 1.
            let status = output.status.code();
            assert!(matches!(status, Some(0 | 1)), "{page}: {line}\n{output:?}");
        }
        assert!(checked > 4, "only {checked} commands were checked");
    }

    #[test]
    fn an_ellipsis_stands_for_any_number_of_lines() {
        assert!(matches(&["a", "…", "d"], &["a", "b", "c", "d"]));
        assert!(matches(&["a", "…"], &["a"]));
        assert!(!matches(&["a", "…", "d"], &["a", "b"]));
        assert!(!matches(&["a"], &["a", "b"]));
    }
}
