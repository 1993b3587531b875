//! The text of a page, in Markdown: sections with paragraphs, and now and then a table, a list, a quote
//! or a block of code.

use super::page::person;
use super::sentences::{ABOUT_THE_TOPIC, CODE, HEADINGS, ON_THE_WAY, POINTS, QUOTES, TABLES};
use super::start_of;
use super::words::{COMPANY_ENDS, COMPANY_STARTS, PLACES, POSITIONS};
use crate::random::Dice;

/// Texts are at least this long, and at most about the second number, in bytes.
const SHORTEST: u64 = 5_100;
const LONGEST: u64 = 11_000;

/// The longest topic that sentences repeat, in characters.
const LONGEST_TOPIC: usize = 80;

/// A text about what a title says.
pub(super) fn about(dice: &mut Dice, title: &str) -> String {
    let goal = usize::try_from(dice.between(SHORTEST, LONGEST)).unwrap_or(usize::MAX);
    let topic = start_of(&title.to_lowercase(), LONGEST_TOPIC);
    let mut writer = Writer {
        topic: topic.trim_end().to_owned(),
        about_the_topic: Deck::new(ABOUT_THE_TOPIC),
        on_the_way: Deck::new(ON_THE_WAY),
        headings: Deck::new(HEADINGS),
        dice,
    };
    let mut text = format!("# {title}\n\nThis page is made up. {}", writer.paragraph());
    while text.len() < goal {
        text.push_str("\n\n");
        text.push_str(&writer.block());
    }
    text.push('\n');
    text
}

/// Words that are drawn without repeating one before all were drawn.
struct Deck {
    all: &'static [&'static str],
    left: Vec<&'static str>,
}

impl Deck {
    fn new(all: &'static [&'static str]) -> Self {
        Deck {
            all,
            left: Vec::new(),
        }
    }

    fn draw(&mut self, dice: &mut Dice) -> &'static str {
        if self.left.is_empty() {
            self.left = self.all.to_vec();
        }
        let at = usize::try_from(dice.below(self.left.len() as u64)).unwrap_or(0);
        self.left.swap_remove(at)
    }
}

struct Writer<'a> {
    topic: String,
    about_the_topic: Deck,
    on_the_way: Deck,
    headings: Deck,
    dice: &'a mut Dice,
}

impl Writer<'_> {
    /// A heading with a paragraph, another paragraph, or something else than prose.
    fn block(&mut self) -> String {
        match self.dice.below(12) {
            0..=3 => format!(
                "## {}\n\n{}",
                self.headings.draw(self.dice),
                self.paragraph()
            ),
            4..=8 => self.paragraph(),
            9 => self.table(),
            10 => self.list(),
            _ if self.dice.once_in(2) => self.code(),
            _ => self.quote(),
        }
    }

    fn paragraph(&mut self) -> String {
        let mut sentences = Vec::new();
        for place in 0..self.dice.between(3, 6) {
            let deck = if place == 0 || self.dice.once_in(4) {
                &mut self.about_the_topic
            } else {
                &mut self.on_the_way
            };
            let sentence = deck.draw(self.dice);
            sentences.push(self.fill(sentence));
        }
        sentences.join(" ")
    }

    fn table(&mut self) -> String {
        let at = usize::try_from(self.dice.below(TABLES.len() as u64)).unwrap_or(0);
        let Some((heads, rows)) = TABLES.get(at) else {
            return self.paragraph();
        };
        let mut table = format!("| {} |\n|---|---:|---:|---:|", heads.join(" | "));
        for row in *rows {
            let line = format!("\n| {row} | {{n}} | {{k}} | {{p}} % |");
            table.push_str(&self.fill(&line));
        }
        table
    }

    fn list(&mut self) -> String {
        let numbered = self.dice.once_in(2);
        let mut points = Deck::new(POINTS);
        let lines: Vec<String> = (1..=self.dice.between(3, 6))
            .map(|number| {
                let point = points.draw(self.dice);
                let sign = if numbered {
                    format!("{number}.")
                } else {
                    "-".to_owned()
                };
                format!("{sign} {}", self.fill(point))
            })
            .collect();
        lines.join("\n")
    }

    fn code(&mut self) -> String {
        let at = usize::try_from(self.dice.below(CODE.len() as u64)).unwrap_or(0);
        let (language, code) = CODE.get(at).copied().unwrap_or_default();
        format!("```{language}\n{}\n```", self.fill(code))
    }

    fn quote(&mut self) -> String {
        let quote = self.dice.word(QUOTES);
        let quote = self.fill(quote);
        let position = self.dice.word(POSITIONS);
        format!("> \"{quote}\"\n>\n> {}, {position}", person(self.dice))
    }

    /// The pattern with all its gaps filled.
    fn fill(&mut self, pattern: &str) -> String {
        let mut text = String::with_capacity(pattern.len() + self.topic.len());
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            // Braces that are no gap belong to code.
            match after
                .split_once('}')
                .and_then(|(name, tail)| Some((self.gap(name)?, tail)))
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
        super::capital(&text)
    }

    fn gap(&mut self, name: &str) -> Option<String> {
        let dice = &mut *self.dice;
        Some(match name {
            "" => self.topic.clone(),
            "n" => dice.between(3, 48).to_string(),
            "k" => (dice.between(110, 9_900) * 10).to_string(),
            "p" => dice.between(2, 79).to_string(),
            "y" => dice.between(2011, 2025).to_string(),
            "who" => person(dice),
            "firm" => format!("{}{}", dice.word(COMPANY_STARTS), dice.word(COMPANY_ENDS)),
            "where" => {
                let place = dice.word(PLACES);
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
            .map(|title| about(&mut Dice::new(1, &[&title]), &title))
            .collect()
    }

    #[test]
    fn texts_are_as_long_as_pages() {
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
        assert!(about(&mut Dice::new(1, &[]), &odd).len() < 4_000 + 12_000);
    }

    #[test]
    fn texts_are_varied() {
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
