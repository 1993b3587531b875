//! The output on a pseudo-terminal and in a pipe.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Program, Recorder, Response};

/// The start of a link, and of a color.
const LINK: &str = "\u{1b}]8;;https://";
const COLOR: &str = "\u{1b}[";

/// Runs the program on a terminal with this width, with util-linux's `script`.
fn on_terminal(columns: u16, variables: &[(&str, &str)], arguments: &str) -> String {
    let program = env!("CARGO_BIN_EXE_exa-mcp-server");
    let variables: String = variables
        .iter()
        .map(|(name, value)| format!("{name}={value} "))
        .collect();
    let command = format!(
        "stty rows 24 cols {columns}; {variables}TERM=xterm-256color {program} --sandbox {arguments}"
    );
    run_script(&command)
}

fn run_script(command: &str) -> String {
    let output = Command::new("script")
        .args(["-qec", command, "/dev/null"])
        .env_remove("NO_COLOR")
        .env("EXA_SANDBOX_SESSION", "terminal-tests")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("`script` of util-linux is installed");
    String::from_utf8(output.stdout)
        .expect("UTF-8")
        .replace('\r', "")
}

/// Runs a command on a terminal with a recorder as Exa.
fn with_upstream(columns: u16, response: &Value, arguments: &str) -> String {
    let server = Recorder::always(Response::json(200, response));
    let url = server.url();
    let variables = [("EXA_BASE_URL", url.as_str()), ("EXA_API_KEY", "key")];
    let program = env!("CARGO_BIN_EXE_exa-mcp-server");
    let variables: String = variables
        .iter()
        .map(|(name, value)| format!("{name}={value} "))
        .collect();
    run_script(&format!(
        "stty rows 24 cols {columns}; {variables}TERM=xterm-256color {program} {arguments}"
    ))
}

/// Returns a line without links and colors.
fn visible(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text += before;
        rest = match after.strip_prefix("]8;;") {
            Some(link) => link.split_once("\u{1b}\\").map_or("", |(_, rest)| rest),
            None => after.split_once('m').map_or("", |(_, rest)| rest),
        };
    }
    text + rest
}

#[test]
fn table_fits_the_terminal() {
    for columns in [120, 48] {
        let text = on_terminal(columns, &[], "search solid-state -n 3");
        for part in [LINK, COLOR, "Title", "3 results", "$0.007"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        for line in text.lines() {
            let width = visible(line).chars().count();
            assert!(
                width <= usize::from(columns),
                "{width} > {columns}: {line:?}"
            );
        }
    }
}

#[test]
fn color_is_optional() {
    for (variables, flags) in [(&[("NO_COLOR", "1")][..], ""), (&[], " --color never")] {
        let text = on_terminal(80, variables, &format!("search solid-state -n 2{flags}"));
        assert!(
            text.contains("Title") && !text.contains('\u{1b}'),
            "{text:?}"
        );
    }
    let output = Program::new([
        "--sandbox",
        "--color",
        "always",
        "search",
        "x",
        "--format",
        "table",
    ])
    .run();
    assert!(output.stdout.contains(LINK), "{output:#?}");
}

#[test]
fn answer_streams_with_its_sources() {
    let text = on_terminal(80, &[], "answer who founded exa");
    assert!(
        text.contains("Who founded exa") && text.contains("Sources") && text.contains(LINK),
        "{text}"
    );
    assert!(!text.contains("\"answer\""), "{text}");
}

#[test]
fn progress_is_shown_after_a_second() {
    let text = on_terminal(80, &[], "websets create batteries -n 3 --wait");
    assert!(
        text.contains("idle") && text.contains("\u{1b}[2K"),
        "{text:?}"
    );
}

#[test]
fn pipe_gets_json_alone() {
    for arguments in [
        &["search", "x", "-n", "1"][..],
        &["answer", "x"],
        &["websets", "list"],
        &["research", "x", "--effort", "low"],
        &["whoami"],
    ] {
        let arguments = ["--sandbox"].iter().chain(arguments).copied();
        Program::new(arguments).run().json();
    }
}

#[test]
fn interrupted_command_says_what_goes_on() {
    let program = env!("CARGO_BIN_EXE_exa-mcp-server");
    let script = format!(
        "timeout -s INT 2 {program} --sandbox research batteries --effort xhigh; echo code=$?"
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("continues at Exa") && stderr.contains("agent.runs.cancel"),
        "{output:?}"
    );
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    use crate::support::{Recorder, Response};
    let hostile = serde_json::json!({"results": [{"title": "a\u{1b}]0;owned\u{7}\u{9b}2Jb", "url": "https://a.com/\u{1b}[31m"}]});
    let server = Recorder::always(Response::json(200, &hostile));
    let output = Program::new(["search", "x", "--format", "table", "--color", "never"])
        .env("EXA_BASE_URL", &server.url())
        .run();
    assert!(
        output.stdout.chars().all(|c| c == '\n' || !c.is_control()),
        "{:?}",
        output.stdout
    );
}

/// Wide characters, text from right to left, and characters that control the terminal.
#[test]
fn foreign_text_neither_breaks_nor_controls_the_terminal() {
    let wide = "全角文字は二列を占めます。".repeat(9);
    let titles = [
        wide.as_str(),
        "\u{1b}[31mred\u{1b}[0m \u{7}bell \u{9b}31m c1 \u{202e}evil\u{202c}\r\noverwrites",
        "مرحبا بالعالم",
        "👩‍👩‍👧‍👦 family",
        "",
    ];
    let results: Vec<Value> = titles
        .iter()
        .map(|title| json!({"title": title, "url": "https://例え.jp/パス\u{1b}]8;;x"}))
        .collect();
    let response = json!({"results": results});
    for columns in [200, 80, 40] {
        let text = with_upstream(columns, &response, "--color never search x");
        let is_control =
            |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(is_control), "{text:?}");
        assert!(text.contains("family") && text.contains("مرحبا"), "{text}");
        for line in text
            .lines()
            .filter(|line| line.contains('二') || line.contains('角'))
        {
            let width: usize = line
                .chars()
                .map(|c| if c > '\u{2e80}' { 2 } else { 1 })
                .sum();
            assert!(width <= usize::from(columns), "{width} > {columns}: {line}");
        }
    }
}

#[test]
fn fetched_pages_are_shown_in_full() {
    let text = format!("First.\n\n{}the end", "More text. ".repeat(200));
    let response = json!({
        "results": [
            {"title": "One", "url": "https://a.example", "text": text},
            {"title": "Two", "url": "https://b.example", "text": "Short."},
        ],
        "statuses": [
            {"id": "https://c.example", "status": "error", "error": {"tag": "CRAWL_NOT_FOUND"}},
        ],
    });
    let shown = with_upstream(80, &response, "--color never fetch https://a.example");
    for part in [
        "One\nhttps://a.example\n\nFirst.\n\nMore text.",
        "the end",
        "Two",
        "Short.",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert!(
        shown.contains("https://c.example: CRAWL_NOT_FOUND"),
        "{shown}"
    );
    let table = with_upstream(80, &response, "fetch https://a.example --fields title,url");
    assert!(!table.contains("the end"), "{table}");
}
