//! Durations such as `12h` and `7d`.

/// A duration: one number and one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Duration {
    number: u64,
    unit: char,
}

/// Units and their spellings.
const UNITS: &[(char, &[&str])] = &[
    ('m', &["m", "min", "mins", "minute", "minutes"]),
    ('h', &["h", "hr", "hrs", "hour", "hours"]),
    ('d', &["d", "day", "days"]),
    ('w', &["w", "wk", "wks", "week", "weeks"]),
];

/// Words for durations without a number.
const WORDS: &[(&str, &str)] = &[("hourly", "1h"), ("daily", "1d"), ("weekly", "7d")];

impl Duration {
    /// Parses `12h`, `12 hours` and the like.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(|character: char| !character.is_ascii_digit())?;
        let (digits, unit) = text.split_at_checked(end)?;
        let unit = unit.trim().to_ascii_lowercase();
        let (unit, _) = UNITS
            .iter()
            .find(|(_, words)| words.contains(&unit.as_str()))?;
        Some(Self {
            number: digits.parse().ok()?,
            unit: *unit,
        })
    }

    /// Converts the duration to one of these units: weeks become days if weeks are not supported.
    pub(super) fn in_units(self, units: &str) -> Option<Self> {
        if units.contains(self.unit) {
            return Some(self);
        }
        let days = self.unit == 'w' && units.contains('d');
        Some(Self {
            number: self.number.checked_mul(7).filter(|_| days)?,
            unit: 'd',
        })
    }

    /// Returns the length in minutes; `None` on overflow.
    pub(super) fn minutes(self) -> Option<u64> {
        let unit = match self.unit {
            'm' => 1,
            'h' => 60,
            'd' => 24 * 60,
            _ => 7 * 24 * 60,
        };
        self.number.checked_mul(unit)
    }
}

impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.number, self.unit)
    }
}

/// Parses a duration such as `6h`, and returns its length in minutes.
pub(in crate::operations) fn minutes(text: &str) -> Option<u64> {
    Duration::parse(text).and_then(Duration::minutes)
}

/// Returns the duration of a word such as `daily`.
pub(super) fn from_word(text: &str) -> Option<&'static str> {
    let text = text.trim();
    WORDS
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text))
        .map(|(_, duration)| *duration)
}
