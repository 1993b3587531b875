#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod texts;

use bpe_openai::o200k_base;
use fastrand::Rng;

use super::ascii::AsciiPiece;
use super::cost::CostSum;
use super::{Pieces, estimate};
use texts::{cjk, code, corpus, english, hex, json, paragraphs, random_url, random_words};

/// The minimum share of texts whose estimate is not too low, in percent. The documentation promises 95.
const MIN_SUFFICIENT: usize = 97;
/// The maximum average estimate, in percent of the actual count. The documentation promises 135.
const MAX_AVERAGE: usize = 130;

/// Compares estimates with actual counts.
#[derive(Clone, Default)]
struct Tally {
    texts: usize,
    /// The sum of the ratios, in hundredths of a percent.
    ratios: usize,
    /// Texts whose estimate is too low.
    low: Vec<String>,
}

impl Tally {
    fn new(texts: &[String]) -> Tally {
        let mut tally = Tally::default();
        for text in texts {
            let actual = o200k_base().count(text.as_str());
            let estimate = estimate(text);
            tally.texts += 1;
            tally.ratios += estimate * 10_000 / actual.max(1);
            if estimate < actual {
                let start: String = text.chars().take(60).collect();
                tally
                    .low
                    .push(format!("{estimate} for {actual}: {start:?}"));
            }
        }
        tally
    }

    fn add(&mut self, other: Tally) {
        self.texts += other.texts;
        self.ratios += other.ratios;
        self.low.extend(other.low);
    }

    fn check(&self, class: &str) {
        let (texts, low) = (self.texts, &self.low);
        assert!(texts >= 20, "{class} has only {texts} texts");
        assert!(
            low.len() * 100 <= texts * (100 - MIN_SUFFICIENT),
            "{class}: {} of {texts} are too low: {low:#?}",
            low.len()
        );
        let mean = self.ratios / texts / 100;
        assert!(
            mean <= MAX_AVERAGE,
            "{class}: {mean} % of the actual count on average"
        );
    }
}

#[test]
fn estimates_english_code_cjk_and_json() {
    let classes = [
        ("English", english()),
        ("code", code()),
        ("CJK", cjk()),
        ("JSON", json()),
    ];
    let mut all = Tally::default();
    for (class, texts) in classes {
        let tally = Tally::new(&texts);
        tally.check(class);
        all.add(tally);
    }
    all.check("everything");
}

#[test]
fn estimates_other_languages() {
    let names = [
        "arabic",
        "french",
        "german",
        "greek",
        "hebrew",
        "hindi",
        "italian",
        "persian",
        "polish",
        "portuguese",
        "russian",
        "spanish",
        "thai",
        "turkish",
        "ukrainian",
        "vietnamese",
    ];
    let texts = names.into_iter().map(|name| corpus(&format!("{name}.txt")));
    let texts: Vec<String> = texts.flat_map(|text| paragraphs(&text)).collect();
    Tally::new(&texts).check("other languages");
}

#[test]
fn estimates_markdown() {
    let mut texts: Vec<String> = Vec::new();
    let mut rng = Rng::with_seed(7);
    let words = corpus("english.txt");
    let words: Vec<&str> = words.split_whitespace().collect();
    for rows in 1..40 {
        let link = |rng: &mut Rng| {
            format!(
                "[{}]({})",
                random_words(rng, &words, 6),
                random_url(rng, &words)
            )
        };
        let list: Vec<String> = (0..rows).map(|_| format!("- {}", link(&mut rng))).collect();
        texts.push(list.join("\n"));
        let row = |rng: &mut Rng| format!("| {} | {} |", random_words(rng, &words, 3), rng.u32(..));
        let table: Vec<String> = (0..rows).map(|_| row(&mut rng)).collect();
        texts.push(format!("| Name | Value |\n|---|---|\n{}", table.join("\n")));
    }
    Tally::new(&texts).check("Markdown");
}

#[test]
fn estimates_data() {
    let mut rng = Rng::with_seed(8);
    let words = corpus("english.txt");
    let words: Vec<&str> = words.split_whitespace().collect();
    let base64 = |rng: &mut Rng| -> String {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..rng.usize(20..400))
            .map(|_| char::from(letters[rng.usize(..64)]))
            .collect()
    };
    let mut texts = Vec::new();
    for count in 1..40 {
        let mut lines = |line: &mut dyn FnMut(&mut Rng) -> String| {
            let lines: Vec<String> = (0..count).map(|_| line(&mut rng)).collect();
            texts.push(lines.join("\n"));
        };
        lines(&mut |rng| hex(rng, 40));
        lines(&mut |rng| [8, 4, 4, 4, 12].map(|length| hex(rng, length)).join("-"));
        lines(&mut |rng| base64(rng));
        lines(&mut |rng| format!("{}, {:.3}, -{}", rng.u32(..), rng.f64() * 90.0, rng.u8(..)));
        lines(&mut |rng| random_url(rng, &words));
        lines(&mut |rng| {
            format!(
                "{}{}  \n",
                " ".repeat(rng.usize(..30)),
                random_words(rng, &words, 3)
            )
        });
        lines(&mut |rng| {
            let text = random_words(rng, &words, 9);
            format!(
                "2026-01-{}T10:11:12.123Z WARN [worker-{}] {text} took={}ms",
                rng.u8(10..28),
                rng.u8(..9),
                rng.u16(..)
            )
        });
        lines(&mut |rng| {
            format!(
                "{} 🎉 {} 👍🏽 👩\u{200d}💻",
                random_words(rng, &words, 4),
                random_words(rng, &words, 4)
            )
        });
    }
    Tally::new(&texts).check("data");
}

/// Long runs of one letter come from keys that were held down, and from attackers.
#[test]
fn counts_long_runs_of_a_letter() {
    for letter in ["a", "b", "h", "H", "e", "é", "中"] {
        let row = letter.repeat(100_000);
        for text in [row.clone(), format!(" {row}"), format!("{row}'s {row}!")] {
            let estimate = estimate(&text);
            assert!(
                estimate >= 1_000,
                "{estimate} for {} of {letter}",
                text.len()
            );
        }
    }
}

#[test]
fn estimates_the_smallest_texts_exactly() {
    for (text, tokens) in [
        ("", 0),
        ("word", 1),
        ("1", 1),
        (" ", 1),
        ("\n", 1),
        ("a b", 2),
        ("the", 1),
    ] {
        assert_eq!(estimate(text), tokens, "{text:?}");
    }
}

#[test]
fn splits_like_the_tokenizer() {
    let all = [english(), code(), cjk()].concat();
    let odd = [
        "It's I'LL x'y",
        "  \n \t x",
        "\r\n\r\n  ",
        "«é» 1234567",
        "HTMLParser camelCase",
    ];
    for text in all.iter().map(String::as_str).chain(odd) {
        let pieces: Vec<&str> = Pieces::new(text).map(|piece| piece.text).collect();
        let expected: Vec<&str> = o200k_base().split(text).collect();
        assert_eq!(pieces, expected);
    }
}

#[test]
fn the_ascii_path_agrees_with_the_general_path() {
    const PARTS: [&str; 40] = [
        "a", "the", "Word", "HTTP", "iOS", "don't", "It's", "é", "ß", "Я", "中", "\u{301}", "0",
        "12", "2024", "٣", "²", " ", "  ", "   ", "\t", "\u{b}", "\u{a0}", "\n", "\n\n", "\r\n",
        "-", "--", ".", "...", "/", "://", "(", ")", "_", "'", "\"", "·", "\u{1}", "\u{7f}",
    ];
    let mut rng = Rng::with_seed(7);
    let random = (0..20_000).map(|_| {
        let parts = rng.usize(1..20);
        (0..parts)
            .map(|_| PARTS[rng.usize(0..PARTS.len())])
            .collect()
    });
    let texts: Vec<String> = random.collect();
    let mut plain_pieces = 0;
    for text in texts.iter().chain(&english()).chain(&code()) {
        let mut rest = text.as_str();
        while let Some(piece) = Pieces::new(rest).next() {
            if let Some(plain) = AsciiPiece::at_start(rest.as_bytes()) {
                assert_eq!(plain.length, piece.text.len(), "{rest:?}");
                let (mut fast, mut general) = (CostSum::default(), CostSum::default());
                fast.add_ascii(plain);
                general.add(piece);
                assert_eq!(fast, general, "{rest:?}");
                plain_pieces += 1;
            }
            rest = &rest[piece.text.len()..];
        }
    }
    assert!(plain_pieces > 50_000);
}
