//! Parses Markdown output as a renderer does.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The parsed elements of a text.
#[derive(Debug, Default)]
pub(super) struct ParsedMarkdown {
    /// The headings outside of block quotes.
    pub(super) headings: Vec<String>,
    /// The entries of the outermost lists, with their content.
    pub(super) entries: Vec<String>,
    /// The text and the target of links.
    pub(super) links: Vec<(String, String)>,
    /// The rows of tables, including the header.
    pub(super) rows: Vec<Vec<String>>,
    /// The code spans.
    pub(super) code: Vec<String>,
    /// The block quotes, as text.
    pub(super) quotes: Vec<String>,
    /// Raw HTML.
    pub(super) html: Vec<String>,
    /// The number of emphasized and struck-out texts and images.
    pub(super) ornaments: usize,
    /// The visible text, with a space between blocks.
    pub(super) text: String,
    /// The nesting depth of lists.
    pub(super) deepest_list: usize,
}

/// Parses a text as GitHub does.
pub(super) fn parse(text: &str) -> ParsedMarkdown {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS;
    let mut parser = MarkdownParser::default();
    for event in Parser::new_ext(text, options) {
        parser.take(event);
    }
    parser.parsed
}

#[derive(Default)]
struct MarkdownParser {
    parsed: ParsedMarkdown,
    /// The open elements, with their text so far.
    open: Vec<(Kind, String)>,
    lists: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Heading,
    Entry,
    Link(String),
    Cell,
    Quote,
}

impl MarkdownParser {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.push(&text),
            Event::Code(code) => {
                self.parsed.code.push(code.to_string());
                self.push(&code);
            }
            Event::SoftBreak | Event::HardBreak | Event::Rule => self.push(" "),
            Event::Html(html) | Event::InlineHtml(html) => {
                self.parsed.html.push(html.to_string());
                self.push(&html);
            }
            _ => self.parsed.ornaments += 1,
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.open.push((Kind::Heading, String::new())),
            Tag::Item => self.open.push((Kind::Entry, String::new())),
            Tag::TableCell => self.open.push((Kind::Cell, String::new())),
            Tag::BlockQuote(_) => self.open.push((Kind::Quote, String::new())),
            Tag::Link { dest_url, .. } => {
                let kind = Kind::Link(dest_url.to_string());
                self.open.push((kind, String::new()));
            }
            Tag::TableHead | Tag::TableRow => self.parsed.rows.push(Vec::new()),
            Tag::List(_) => {
                self.push(" ");
                self.lists += 1;
                let deepest = &mut self.parsed.deepest_list;
                *deepest = self.lists.max(*deepest);
            }
            Tag::Emphasis | Tag::Strikethrough | Tag::Image { .. } if !self.is_quoted() => {
                self.parsed.ornaments += 1;
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_)
            | TagEnd::Item
            | TagEnd::TableCell
            | TagEnd::BlockQuote(_)
            | TagEnd::Link => self.close(),
            TagEnd::List(_) => self.lists -= 1,
            TagEnd::Paragraph | TagEnd::CodeBlock | TagEnd::HtmlBlock => self.push(" "),
            _ => {}
        }
    }

    fn close(&mut self) {
        let (kind, text) = self.open.pop().expect("something open");
        let text = text.trim().to_owned();
        let is_quoted = self.is_quoted();
        match kind {
            Kind::Heading if !is_quoted => self.parsed.headings.push(text),
            Kind::Entry if self.lists == 1 && !is_quoted => self.parsed.entries.push(text),
            Kind::Link(target) if !is_quoted => self.parsed.links.push((text, target)),
            Kind::Cell => self.parsed.rows.last_mut().expect("a row").push(text),
            Kind::Quote if !is_quoted => self.parsed.quotes.push(text),
            _ => {}
        }
        self.push(" ");
    }

    fn is_quoted(&self) -> bool {
        self.open.iter().any(|(kind, _)| *kind == Kind::Quote)
    }

    fn push(&mut self, text: &str) {
        self.parsed.text.push_str(text);
        for (_, open) in &mut self.open {
            open.push_str(text);
        }
    }
}

/// Returns a text with every run of white space replaced by one space.
pub(super) fn normalize_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
