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

    use serde_json::Value;

    use super::code_blocks;
    use crate::support::Sandbox;

    /// Returns a shell that finds the program under its name.
    fn shell(command: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_exa-mcp-server"));
        let folder = program.parent().unwrap().display();
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", command])
            .env_clear()
            .env("PATH", format!("{folder}:/usr/local/bin:/usr/bin:/bin"))
            .env("NO_PROXY", "127.0.0.1");
        shell
    }

    fn run(command: &str) -> Output {
        shell(command).output().unwrap()
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

    /// Returns whether a line of a shell runs the program, and not as a server.
    fn runs_the_program(line: &str) -> bool {
        let is_assignment = |word: &&str| word.contains('=');
        line.split(['|', ';', '&']).any(|command| {
            let mut words = command.split_whitespace().skip_while(is_assignment);
            words.next() == Some("exa-mcp-server") && words.all(|word| word != "http")
        })
    }

    /// Every documented command, as it is written, in a home directory of its own and with a sandbox as Exa.
    #[test]
    fn documented_commands_run() {
        let sandbox = Sandbox::start();
        let mut checked = 0;
        for block in code_blocks() {
            if !matches!(block.language.as_str(), "sh" | "bash") {
                continue;
            }
            let home = tempfile::tempdir().unwrap();
            let questions = "{\"query\": \"Who founded Exa?\"}\n{\"query\": \"When?\"}\n";
            std::fs::write(home.path().join("questions.jsonl"), questions).unwrap();
            let text = block.text.replace("\\\n", " ");
            for line in text.lines() {
                let is_preparation = line.starts_with("mkdir -p ~");
                if !is_preparation && !runs_the_program(line) {
                    continue;
                }
                checked += usize::from(!is_preparation);
                let output = shell(line)
                    .current_dir(home.path())
                    .env("HOME", home.path())
                    .env("EXA_BASE_URL", sandbox.url())
                    .env("EXA_API_KEY", "a-key")
                    .stdin(questions_or_key(line, home.path()))
                    .output()
                    .unwrap();
                let stderr = String::from_utf8_lossy(&output.stderr);
                // The ids of the examples exist in no account.
                let expected = if line.contains("ws_123") { 1 } else { 0 };
                let is_right = output.status.code() == Some(expected)
                    && stderr.contains("404 Not Found") == (expected == 1);
                assert!(is_right, "{}: {line}\n{output:?}", block.page);
            }
        }
        assert!(checked > 25, "only {checked} commands were checked");
    }

    /// Returns what somebody would type.
    fn questions_or_key(line: &str, home: &Path) -> std::process::Stdio {
        if !line.ends_with(" login") {
            return std::process::Stdio::null();
        }
        let path = home.join("typed");
        std::fs::write(&path, "a-key\n").unwrap();
        std::fs::File::open(path).unwrap().into()
    }

    /// The commands and flags of the table in docs/command-line.md exist.
    #[test]
    fn documented_commands_exist() {
        let page = std::fs::read_to_string(super::super::root().join("docs/command-line.md"));
        let page = page.unwrap();
        let output = run("exa-mcp-server capabilities");
        let inventory: Value = serde_json::from_slice(&output.stdout).unwrap();
        let commands = inventory["commands"].as_array().unwrap();
        let names: Vec<&str> = commands
            .iter()
            .filter_map(|command| command["name"].as_str())
            .collect();
        let cells = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let mut documented = Vec::new();
        for cell in cells {
            let cell = cell.split(" | ").next().unwrap().replace("\\|", " ");
            let mut group = "";
            for code in cell
                .split('`')
                .filter(|code| !code.trim_matches([',', ' ']).is_empty())
            {
                let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
                let words: Vec<&str> = code.split(' ').take_while(is_name).collect();
                let name = words.join(" ");
                let in_group = format!("{group} {name}");
                let found = names
                    .iter()
                    .find(|known| **known == name || **known == in_group);
                if let Some(found) = found {
                    documented.push((*found).to_owned());
                    group = found.split_once(' ').map_or("", |(group, _)| group);
                } else {
                    let is_other =
                        code.starts_with("--") || name.is_empty() || code == "exa-mcp-server";
                    assert!(
                        is_other,
                        "`{code}` is documented, but there is no such command"
                    );
                }
            }
        }
        for name in names {
            assert!(
                documented.iter().any(|it| it == name),
                "`{name}` is not documented"
            );
        }
    }

    #[test]
    fn an_ellipsis_stands_for_any_number_of_lines() {
        assert!(matches(&["a", "…", "d"], &["a", "b", "c", "d"]));
        assert!(matches(&["a", "…"], &["a"]));
        assert!(!matches(&["a", "…", "d"], &["a", "b"]));
        assert!(!matches(&["a"], &["a", "b"]));
    }
}
