//! [`Amount`]: money as an integer number of billionths of a currency unit; a float only in JSON. `+` and `-` panic if the result is out of range.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Nano-units in one unit of the currency.
pub const NANOS: i64 = 1_000_000_000;

/// The largest amount of a single operation, either sign: one billion units. Nine of them fit in an `i64`.
pub const MAX: Amount = Amount(1_000_000_000 * NANOS);

/// An amount of the configured currency in billionths of a unit, from about -9.2 to 9.2 billion units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(i64);

/// A text or number is not a valid amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmountError;

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount is a decimal number such as 12.5, with at most nine decimals and at most one billion")
    }
}

impl std::error::Error for AmountError {}

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// An amount of `nanos` billionths of a unit.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The number of billionths of a unit.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Whether it is less than zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The sum. `None` if it exceeds the range of `i64`.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// `units` × this price ÷ `per`, rounded half up once; a `per` of 0 counts as 1. `None` if the result exceeds ±[`MAX`].
    ///
    /// See docs/pricing.md.
    ///
    /// ```
    /// use tollgate_core::Amount;
    /// let per_million: Amount = "1.25".parse().unwrap();
    /// assert_eq!(per_million.times(3, 1_000_000).unwrap().to_string(), "0.00000375");
    /// ```
    pub fn times(self, units: u64, per: u64) -> Option<Self> {
        let per = i128::from(per.max(1));
        let product = i128::from(self.0).checked_mul(i128::from(units))?;
        let rounded = (product * 2 + per).div_euclid(per * 2);
        let nanos = i64::try_from(rounded).ok()?;
        (nanos.checked_abs()? <= MAX.0).then_some(Self(nanos))
    }

    /// The nearest `f64`, for JSON. Exact to nine decimals for amounts below nine million units.
    #[allow(clippy::cast_precision_loss)] // documented above
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (integer, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if (integer.is_empty() && decimals.is_empty())
            || !all_digits(integer)
            || !all_digits(decimals)
            || integer.len() > 10
            || decimals.len() > 9
        {
            return Err(AmountError);
        }
        let integer: i64 = if integer.is_empty() {
            0
        } else {
            integer.parse().map_err(|_| AmountError)?
        };
        let decimals: i64 = format!("{decimals:0<9}").parse().map_err(|_| AmountError)?;
        let nanos = integer
            .checked_mul(NANOS)
            .and_then(|n| n.checked_add(decimals))
            .filter(|n| *n <= MAX.0)
            .ok_or(AmountError)?;
        Ok(Self(if negative { -nanos } else { nanos }))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (integer, part) = (
            self.0.unsigned_abs() / NANOS.unsigned_abs(),
            self.0.unsigned_abs() % NANOS.unsigned_abs(),
        );
        if part == 0 {
            return write!(f, "{sign}{integer}");
        }
        let (mut decimals, mut count) = (part, 9);
        while decimals.is_multiple_of(10) {
            (decimals, count) = (decimals / 10, count - 1);
        }
        write!(f, "{sign}{integer}.{decimals:0count$}")
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.to_f64())
    }
}

impl<'de> Deserialize<'de> for Amount {
    /// From a number or a decimal string. A number is converted by its shortest decimal form, so `0.1` is exactly a
    /// tenth.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Representation {
            Integer(i64),
            Decimal(f64),
            Text(String),
        }
        let text = match Representation::deserialize(d)? {
            Representation::Integer(n) => n.to_string(),
            Representation::Decimal(n) => format!("{n}"),
            Representation::Text(t) => t,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Add for Amount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Amount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Amount {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_and_writes_decimals() {
        for (text, nanos, back) in [
            ("0", 0, "0"),
            ("12.5", 12_500_000_000, "12.5"),
            ("-0.000000001", -1, "-0.000000001"),
            (".5", 500_000_000, "0.5"),
            ("1.", 1_000_000_000, "1"),
            ("+3", 3_000_000_000, "3"),
            ("1000000000", MAX.0, "1000000000"),
        ] {
            let amount: Amount = text.parse().unwrap();
            assert_eq!(
                (amount.nanos(), amount.to_string().as_str()),
                (nanos, back),
                "{text}"
            );
        }
        for text in [
            "",
            ".",
            "-",
            "1e3",
            "1,5",
            "0.0000000001",
            "1000000000.1",
            "NaN",
            " 1",
            "٣",
        ] {
            assert_eq!(text.parse::<Amount>(), Err(AmountError), "{text}");
        }
    }

    #[test]
    fn rounds_half_up_once() {
        let price = Amount::from_nanos(1);
        for (units, per, nanos) in [
            (1, 2, 1),
            (1, 3, 0),
            (2, 3, 1),
            (499, 1000, 0),
            (500, 1000, 1),
            (0, 7, 0),
        ] {
            assert_eq!(
                price.times(units, per),
                Some(Amount::from_nanos(nanos)),
                "{units}/{per}"
            );
        }
        assert_eq!(MAX.times(2, 1), None);
        assert_eq!(MAX.times(u64::MAX, 1), None);
    }

    #[test]
    fn reads_numbers_by_their_decimal_form() {
        let amount: Amount = serde_json::from_str("0.1").unwrap();
        assert_eq!(amount.nanos(), 100_000_000);
        assert!(serde_json::from_str::<Amount>("1e-10").is_err());
        assert_eq!(
            serde_json::to_string(&Amount::from_nanos(40_000_000)).unwrap(),
            "0.04"
        );
    }

    proptest! {
        #[test]
        fn text_form_is_exact(nanos in -MAX.0..=MAX.0) {
            let amount = Amount::from_nanos(nanos);
            prop_assert_eq!(amount.to_string().parse::<Amount>(), Ok(amount));
        }

        #[test]
        fn times_one_is_identity(nanos in 0..=MAX.0) {
            prop_assert_eq!(Amount::from_nanos(nanos).times(1, 1), Some(Amount::from_nanos(nanos)));
        }
    }
}
