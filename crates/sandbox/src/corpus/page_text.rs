//! Generates the text of a page in Markdown: sections with paragraphs, and sometimes a table, a list, a
//! quote or a code block.

use super::page::person_name;
use super::sentences::{
    CODE_BLOCKS, DETAIL_SENTENCES, HEADINGS, LIST_ITEMS, QUOTES, TABLES, TOPIC_SENTENCES,
};
use super::truncate;
use super::vocabulary::{COMPANY_ENDS, COMPANY_STARTS, PLACES, POSITIONS};
use crate::rng::Rng;

/// Approximate length of a text in bytes.
const MIN_LENGTH: u64 = 5_100;
const MAX_LENGTH: u64 = 11_000;

/// Maximum length of the topic that sentences repeat, in characters.
const MAX_TOPIC: usize = 80;

/// Generates a text about the topic of a title.
pub(super) fn generate(rng: &mut Rng, title: &str) -> String {
    let length = usize::try_from(rng.between(MIN_LENGTH, MAX_LENGTH)).unwrap_or(usize::MAX);
    let topic = truncate(&title.to_lowercase(), MAX_TOPIC);
    let mut writer = Writer {
        topic: topic.trim_end().to_owned(),
        topic_sentences: Deck::new(TOPIC_SENTENCES),
        detail_sentences: Deck::new(DETAIL_SENTENCES),
        headings: Deck::new(HEADINGS),
        rng,
    };
    let mut text = format!("# {title}\n\nThis page is made up. {}", writer.paragraph());
    while text.len() < length {
        text.push_str("\n\n");
        text.push_str(&writer.block());
    }
    text.push('\n');
    text
}

/// Texts that are drawn at random; none repeats before all were drawn.
struct Deck {
    all: &'static [&'static str],
    remaining: Vec<&'static str>,
}

impl Deck {
    fn new(all: &'static [&'static str]) -> Self {
        Deck {
            all,
            remaining: Vec::new(),
        }
    }

    fn draw(&mut self, rng: &mut Rng) -> &'static str {
        if self.remaining.is_empty() {
            self.remaining = self.all.to_vec();
        }
        let index = rng.index(self.remaining.len());
        self.remaining.swap_remove(index)
    }
}

struct Writer<'a> {
    topic: String,
    topic_sentences: Deck,
    detail_sentences: Deck,
    headings: Deck,
    rng: &'a mut Rng,
}

impl Writer<'_> {
    /// Returns a heading with a paragraph, a paragraph alone, or a block that is not prose.
    fn block(&mut self) -> String {
        match self.rng.below(12) {
            0..=3 => format!(
                "## {}\n\n{}",
                self.headings.draw(self.rng),
                self.paragraph()
            ),
            4..=8 => self.paragraph(),
            9 => self.table(),
            10 => self.list(),
            _ if self.rng.one_in(2) => self.code(),
            _ => self.quote(),
        }
    }

    fn paragraph(&mut self) -> String {
        let mut sentences = Vec::new();
        for index in 0..self.rng.between(3, 6) {
            let deck = if index == 0 || self.rng.one_in(4) {
                &mut self.topic_sentences
            } else {
                &mut self.detail_sentences
            };
            let sentence = deck.draw(self.rng);
            sentences.push(self.fill(sentence));
        }
        sentences.join(" ")
    }

    fn table(&mut self) -> String {
        let index = self.rng.index(TABLES.len());
        let Some((headings, rows)) = TABLES.get(index) else {
            return self.paragraph();
        };
        let mut table = format!("| {} |\n|---|---:|---:|---:|", headings.join(" | "));
        for row in *rows {
            let line = format!("\n| {row} | {{n}} | {{k}} | {{p}} % |");
            table.push_str(&self.fill(&line));
        }
        table
    }

    fn list(&mut self) -> String {
        let is_numbered = self.rng.one_in(2);
        let mut items = Deck::new(LIST_ITEMS);
        let lines: Vec<String> = (1..=self.rng.between(3, 6))
            .map(|number| {
                let item = items.draw(self.rng);
                let marker = if is_numbered {
                    format!("{number}.")
                } else {
                    "-".to_owned()
                };
                format!("{marker} {}", self.fill(item))
            })
            .collect();
        lines.join("\n")
    }

    fn code(&mut self) -> String {
        let index = self.rng.index(CODE_BLOCKS.len());
        let (language, code) = CODE_BLOCKS.get(index).copied().unwrap_or_default();
        format!("```{language}\n{}\n```", self.fill(code))
    }

    fn quote(&mut self) -> String {
        let quote = self.rng.choose(QUOTES);
        let quote = self.fill(quote);
        let position = self.rng.choose(POSITIONS);
        format!("> \"{quote}\"\n>\n> {}, {position}", person_name(self.rng))
    }

    /// Replaces the placeholders of a template.
    fn fill(&mut self, template: &str) -> String {
        let mut text = String::with_capacity(template.len() + self.topic.len());
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            // Other braces are part of code.
            match after
                .split_once('}')
                .and_then(|(name, tail)| Some((self.placeholder(name)?, tail)))
            {
                Some((word, tail)) => {
                    text.push_str(&word);
                    rest = tail;
                }
                None => {
                    text.push('{');
                    rest = after;
                }
            }
        }
        text.push_str(rest);
        super::capitalize(&text)
    }

    fn placeholder(&mut self, name: &str) -> Option<String> {
        let rng = &mut *self.rng;
        Some(match name {
            "" => self.topic.clone(),
            "n" => rng.between(3, 48).to_string(),
            "k" => (rng.between(110, 9_900) * 10).to_string(),
            "p" => rng.between(2, 79).to_string(),
            "y" => rng.between(2011, 2025).to_string(),
            "who" => person_name(rng),
            "firm" => format!("{}{}", rng.choose(COMPANY_STARTS), rng.choose(COMPANY_ENDS)),
            "where" => {
                let place = rng.choose(PLACES);
                place.split(',').next().unwrap_or(place).to_owned()
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<String> {
        let titles = (0..60).map(|number| format!("A field guide to tidal power {number}"));
        titles
            .map(|title| generate(&mut Rng::new(1, &[&title]), &title))
            .collect()
    }

    #[test]
    fn texts_have_the_length_of_pages() {
        let mut lengths: Vec<usize> = texts().iter().map(|text| text.chars().count()).collect();
        lengths.sort_unstable();
        assert!(
            lengths
                .iter()
                .all(|length| (5_000..=12_000).contains(length)),
            "{lengths:?}"
        );
        assert!(lengths.first().is_some_and(|shortest| *shortest < 6_500));
        assert!(lengths.last().is_some_and(|longest| *longest > 10_000));
        let odd = "x ".repeat(2_000);
        assert!(generate(&mut Rng::new(1, &[]), &odd).len() < 4_000 + 12_000);
    }

    #[test]
    fn texts_vary() {
        let all = texts();
        for text in &all {
            let mut sentences: Vec<&str> = text.split_inclusive(". ").collect();
            let count = sentences.len();
            sentences.sort_unstable();
            sentences.dedup();
            assert!(sentences.len() * 100 > count * 95, "{text}");
            assert!(!text.contains("{n}") && !text.contains("{}"), "{text}");
        }
        for part in ["\n|---", "\n- ", "\n1. ", "\n```", "\n> "] {
            let with = all.iter().filter(|text| text.contains(part)).count();
            assert!(with > 10, "{part:?} is in {with} of {} texts", all.len());
        }
        assert_eq!(all, texts());
    }
}
