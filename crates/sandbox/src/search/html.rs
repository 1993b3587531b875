//! Conversion of pages to HTML.

/// Converts the Markdown of a page to HTML. Supports only the syntax that generated pages use.
pub(super) fn from_markdown(text: &str) -> String {
    // Code blocks contain no empty lines.
    let blocks = text.split("\n\n").map(str::trim_end);
    let blocks = blocks.filter(|block| !block.is_empty()).map(block);
    blocks.collect::<Vec<_>>().join("\n") + "\n"
}

fn block(block: &str) -> String {
    if let Some(heading) = block.strip_prefix("## ") {
        return format!("<h2>{}</h2>", escape(heading));
    }
    if let Some(heading) = block.strip_prefix("# ") {
        return format!("<h1>{}</h1>", escape(heading));
    }
    if let Some(code) = block.strip_prefix("```") {
        let code = code.split_once('\n').map_or(code, |(_, code)| code);
        let code = escape(code.trim_end_matches("\n```"));
        return format!("<pre><code>{code}</code></pre>");
    }
    if block.starts_with("> ") {
        let lines = block
            .lines()
            .map(|line| line.trim_start_matches(['>', ' ']));
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        return format!("<blockquote>{}</blockquote>", escape(&lines.join("\n")));
    }
    if block.starts_with("| ") {
        return table(block);
    }
    if block.starts_with("- ") {
        return format!("<ul>{}</ul>", items(block));
    }
    if block.starts_with("1. ") {
        return format!("<ol>{}</ol>", items(block));
    }
    format!("<p>{}</p>", escape(block))
}

fn items(block: &str) -> String {
    let items = block
        .lines()
        .map(|line| line.split_once(' ').map_or(line, |(_, item)| item));
    items
        .map(|item| format!("<li>{}</li>", escape(item)))
        .collect()
}

fn table(block: &str) -> String {
    let rows = block.lines().enumerate().filter(|(index, _)| *index != 1);
    let rows: String = rows
        .map(|(index, line)| {
            let tag = if index == 0 { "th" } else { "td" };
            let cells = line.trim_matches(['|', ' ']).split(" | ");
            let cells: String = cells
                .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
                .collect();
            format!("<tr>{cells}</tr>")
        })
        .collect();
    format!("<table>{rows}</table>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_every_kind_of_block() {
        let text = "# A\n\nOne & two.\n\n## B\n\n- x\n- y\n\n1. z\n\n> \"q\"\n>\n> N\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n\n```sh\nif a < b\n```\n";
        let expected = "<h1>A</h1>\n<p>One &amp; two.</p>\n<h2>B</h2>\n<ul><li>x</li><li>y</li></ul>\n\
            <ol><li>z</li></ol>\n<blockquote>\"q\"\nN</blockquote>\n\
            <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>\n\
            <pre><code>if a &lt; b</code></pre>\n";
        assert_eq!(from_markdown(text), expected);
    }
}
