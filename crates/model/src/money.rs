//! Amounts of money with microdollar precision.

use std::fmt;
use std::iter::Sum;

use serde::{Deserialize, Serialize};

/// Millionths of a US dollar.
///
/// Sums saturate, so that an overflow exceeds every budget.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MicroDollars(u64);

/// The cost of a long-running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobCost {
    /// The job is still running.
    Pending,
    /// The job has finished, with its cost if known.
    Final(Option<MicroDollars>),
}

/// Millionths in a dollar.
const MICRO: f64 = 1_000_000.0;

impl MicroDollars {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The maximum amount.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates an amount in millionths of a dollar.
    pub const fn new(micro: u64) -> Self {
        Self(micro)
    }

    /// Returns the amount in millionths of a dollar.
    pub const fn micro(self) -> u64 {
        self.0
    }

    /// Converts dollars, rounded up to the next millionth.
    ///
    /// Floating-point noise is not rounded up: 0.007 is 7,000 millionths. A negative amount is zero; NaN is
    /// [`Self::MAX`].
    pub fn from_dollars(dollars: f64) -> Self {
        if dollars.is_nan() {
            return Self::MAX;
        }
        let exact = dollars * MICRO;
        let near = exact.round();
        let is_noise = (exact - near).abs() <= near.abs() * 1e-12 + 1e-6;
        let micro = if is_noise { near } else { exact.ceil() };
        // A cast from a float saturates at both ends.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Self(micro as u64)
    }

    /// Returns the amount in dollars.
    #[allow(clippy::cast_precision_loss)]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / MICRO
    }

    /// Returns whether the amount is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the sum, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Returns the sum; at most [`Self::MAX`].
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference; at least zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the product; at most [`Self::MAX`].
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Sum for MicroDollars {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

/// Formats as `$0.0070`: four decimals, or six if necessary.
impl fmt::Display for MicroDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, micro) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micro % 100 == 0 {
            write!(f, "${whole}.{:04}", micro / 100)
        } else {
            write!(f, "${whole}.{micro:06}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MicroDollars;

    #[test]
    fn rounds_dollars_up() {
        for (dollars, micro) in [
            (0.0, 0),
            (0.007, 7_000),
            (0.1 + 0.2, 300_000),
            (0.000_000_1, 1),
            (0.004_000_5, 4_001),
            (0.004_000_000_1, 4_001),
            (100.0, 100_000_000),
            (-1.0, 0),
            (f64::NEG_INFINITY, 0),
            (f64::INFINITY, u64::MAX),
            (f64::NAN, u64::MAX),
            (1e300, u64::MAX),
        ] {
            assert_eq!(
                MicroDollars::from_dollars(dollars).micro(),
                micro,
                "{dollars}"
            );
        }
        for thousandth in 0..200_000_u64 {
            #[allow(clippy::cast_precision_loss)]
            let dollars = thousandth as f64 / 1_000.0;
            let micro = MicroDollars::from_dollars(dollars).micro();
            assert_eq!(micro, thousandth * 1_000, "{dollars}");
        }
    }

    #[test]
    fn formats_with_four_or_six_decimals() {
        for (micro, text) in [
            (0, "$0.0000"),
            (7_000, "$0.0070"),
            (7_001, "$0.007001"),
            (5_000_000, "$5.0000"),
            (1, "$0.000001"),
        ] {
            assert_eq!(MicroDollars::new(micro).to_string(), text);
        }
    }

    #[test]
    fn sums_saturate() {
        let (max, one) = (MicroDollars::MAX, MicroDollars::new(1));
        assert_eq!(max.saturating_add(one), max);
        assert_eq!(max.checked_add(one), None);
        assert_eq!(one.saturating_sub(max), MicroDollars::ZERO);
        assert_eq!(max.saturating_mul(3), max);
        assert_eq!([max, one].into_iter().sum::<MicroDollars>(), max);
    }
}
