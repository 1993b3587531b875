//! Properties that hold for any text.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::super::clean;

/// Pieces of hostile texts.
const PIECES: &[&str] = &[
    "a",
    "Z",
    " ",
    "\n",
    "\t",
    "\r",
    ";",
    "&",
    "#",
    "x",
    "[",
    "]",
    "m",
    "31",
    "0",
    "8203",
    "200b",
    "203",
    "amp;",
    "&amp;",
    "&#",
    "&#x",
    "&#8203;",
    "&#8203",
    "&#27;",
    "&#x1b;",
    "&zwj;",
    "&zwnj;",
    "&shy;",
    "sh",
    "y;",
    "&it;",
    "&lt;",
    "&#38;",
    "&num;",
    "&semi;",
    "&lbrack;",
    "\u{1b}",
    "\u{1b}[",
    "\u{1b}]",
    "\u{1b}\\",
    "\u{7}",
    "\u{9b}",
    "\u{9d}",
    "\u{9c}",
    "\u{0}",
    "[0m",
    "[31m",
    "\u{200b}",
    "\u{200c}",
    "\u{200d}",
    "\u{202e}",
    "\u{2066}",
    "\u{fe0f}",
    "\u{fe0e}",
    "\u{fe01}",
    "\u{feff}",
    "\u{ad}",
    "\u{301}",
    "\u{30d}",
    "\u{20e3}",
    "\u{e0067}",
    "\u{e0062}",
    "\u{e007f}",
    "\u{e0100}",
    "🏴",
    "👩",
    "👨",
    "🏽",
    "❤",
    "🇩",
    "🇪",
    "م",
    "ی",
    "ه",
    "क",
    "\u{94d}",
    "ष",
    "ර",
    "漢",
    "ᠮ",
    "\u{180b}",
    "\u{180e}",
    "\u{2800}",
    "\u{2028}",
    "\u{85}",
    "\u{fffe}",
    "\u{f0000}",
    "\u{3164}",
    "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
];

/// Characters that a clean text never contains.
const FORBIDDEN: &[RangeInclusive<char>] = &[
    '\u{0}'..='\u{8}',
    '\u{b}'..='\u{1f}',
    '\u{7f}'..='\u{9f}',
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200b}',
    '\u{200e}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fdd0}'..='\u{fdef}',
    '\u{fe00}'..='\u{fe0d}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{fffe}'..='\u{ffff}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{40000}'..='\u{e001f}',
    '\u{e0080}'..='\u{10ffff}',
];

fn is_forbidden(c: char) -> bool {
    FORBIDDEN.iter().any(|range| range.contains(&c))
}

/// Decodes character references once, as a page displays them.
fn decode_once(text: &str) -> String {
    let Some((before, rest)) = text.split_once('&') else {
        return text.to_owned();
    };
    let names = [
        ("amp;", '&'),
        ("shy;", '\u{ad}'),
        ("zwj;", '\u{200d}'),
        ("zwnj;", '\u{200c}'),
    ];
    let named = names
        .iter()
        .find_map(|(name, c)| Some((rest.strip_prefix(name)?, Some(*c))));
    let (rest, c) = named
        .or_else(|| decode_number(rest))
        .unwrap_or((rest, Some('&')));
    let c = c.map(String::from).unwrap_or_default();
    format!("{before}{c}{}", decode_once(rest))
}

fn decode_number(text: &str) -> Option<(&str, Option<char>)> {
    let digits = text.strip_prefix('#')?;
    let (digits, radix) = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    let length = digits.chars().take_while(|c| c.is_digit(radix)).count();
    let value = u32::from_str_radix(digits.get(..length)?, radix).ok()?;
    let rest = digits.get(length..)?;
    Some((
        rest.strip_prefix(';').unwrap_or(rest),
        char::from_u32(value),
    ))
}

#[test]
fn cleaning_hostile_pieces_is_idempotent() {
    let mut rng = Rng::with_seed(4);
    for _ in 0..10_000 {
        let length = rng.usize(1..40);
        let text: String = (0..length)
            .map(|_| PIECES[rng.usize(..PIECES.len())])
            .collect();
        let once = clean(&text).into_owned();
        assert!(!once.contains(is_forbidden), "{text:?} became {once:?}");
        assert_eq!(clean(&once), once, "{text:?}");
        assert!(once.chars().count() <= text.chars().count());
        let (first, second) = (decode_once(&once), decode_once(&decode_once(&once)));
        assert!(!first.contains(is_forbidden), "{text:?} shows {first:?}");
        assert!(!second.contains(is_forbidden), "{text:?} shows {second:?}");
    }
}

#[test]
fn cleaning_random_characters_is_idempotent() {
    let mut rng = Rng::with_seed(5);
    for _ in 0..10_000 {
        let text: String = (0..rng.usize(1..30)).map(|_| rng.char(..)).collect();
        let once = clean(&text).into_owned();
        assert!(!once.contains(is_forbidden), "{text:?} became {once:?}");
        assert_eq!(clean(&once), once, "{text:?}");
    }
}

/// Nests references deeper than the number of passes.
fn nested(depth: usize, open: &str, close: &str) -> String {
    format!("{}\u{200b}{}end", open.repeat(depth), close.repeat(depth))
}

#[test]
fn handles_any_nesting_depth() {
    for (open, close) in [
        ("&s", "hy;"),
        ("&#x2", "00b;"),
        ("&", "#8203;"),
        ("&am", "p;"),
        ("\u{1b}", "[0m"),
        ("&#0000000000000000000000000000000000000", "8203;"),
        ("[3", "1m"),
    ] {
        for depth in [1, 2, 9, 40, 5_000] {
            let text = nested(depth, open, close);
            let once = clean(&text).into_owned();
            assert!(!once.contains(is_forbidden), "{open}{close} {depth}");
            assert_eq!(clean(&once), once, "{open}{close} {depth}");
        }
    }
}

/// A filter with quadratic time would take minutes for each of these texts.
#[test]
fn long_hostile_texts_take_linear_time() {
    let size = 20_000;
    for piece in [
        "&",
        "&#",
        "&#0",
        "0",
        ";",
        "&amp",
        "&amp;",
        "amp;",
        "&#8203;",
        "&#8203",
        "\u{1b}",
        "\u{1b}]",
        "\u{1b}[",
        "[",
        "[0m",
        "[31m",
        "\u{301}",
        "\u{200d}",
        "👩\u{200d}",
        "🏴\u{e0067}",
        "\u{1b}]a",
        "a\u{200b}",
    ] {
        let text = piece.repeat(size);
        assert!(!clean(&text).contains(is_forbidden), "{piece:?}");
    }
    let zeros = "0".repeat(size);
    let entities = "&#8203;".repeat(size);
    let text = format!("&#{zeros}\u{200b}{zeros}233{entities}");
    assert!(clean(&text).len() < text.len());
}
