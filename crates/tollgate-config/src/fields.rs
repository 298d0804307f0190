//! Checked values of single settings, for `deserialize_with`: whole numbers in a range, durations, amounts of money. Errors name the value and what is
//! allowed.

use std::fmt;
use std::time::Duration;

use serde::Serializer;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use tollgate_core::{Amount, Secret};

use super::deserializer::DIGITS;

/// Seconds of a day.
pub(super) const DAY_S: i64 = 86_400;
/// A hundred years in seconds: no timeout or expiry is longer.
pub(super) const MAX_S: i64 = 100 * 365 * DAY_S;
/// A day in milliseconds.
pub(super) const DAY_MS: i64 = DAY_S * 1_000;

/// The fewest characters of a secret from which encryption keys are derived.
const MIN_SECRET: usize = 32;

/// The digits of a number as they were written.
pub(super) struct Digits(pub(super) String);

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DigitsVisitor;
        impl Visitor<'_> for DigitsVisitor {
            type Value = Digits;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_str<E>(self, text: &str) -> Result<Digits, E> {
                Ok(Digits(text.to_owned()))
            }
        }
        deserializer.deserialize_newtype_struct(DIGITS, DigitsVisitor)
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundedInteger<const MIN: i64, const MAX: i64>(pub(super) i64);

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for BoundedInteger<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Digits(text) = Digits::deserialize(deserializer)?;
        let number = text.parse().ok().filter(|n| (MIN..=MAX).contains(n));
        number.map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "is {text:?}, but it takes a whole number from {MIN} to {MAX}"
            ))
        })
    }
}

/// Parses a whole number from `MIN` to `MAX` as a `T`.
pub(super) fn deserialize_integer<'de, D, T, const MIN: i64, const MAX: i64>(
    deserializer: D,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64>,
{
    let BoundedInteger(number) = BoundedInteger::<MIN, MAX>::deserialize(deserializer)?;
    T::try_from(number).map_err(|_| D::Error::custom("is too large for this machine"))
}

/// As [`deserialize_integer`], for a setting without a default: `Some`, or an error.
pub(super) fn deserialize_optional_integer<'de, D, T, const MIN: i64, const MAX: i64>(
    deserializer: D,
) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64>,
{
    deserialize_integer::<D, T, MIN, MAX>(deserializer).map(Some)
}

/// Parses seconds, at least 1.
pub(super) fn deserialize_seconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    deserialize_integer::<D, u64, 1, MAX_S>(deserializer).map(Duration::from_secs)
}

/// Parses seconds, at least 1, for a setting without a default.
pub(super) fn deserialize_optional_seconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    deserialize_seconds(deserializer).map(Some)
}

/// Parses milliseconds, at most a day.
pub(super) fn deserialize_millis<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    deserialize_millis_within::<D, 0, DAY_MS>(deserializer)
}

/// Parses milliseconds from `MIN` to `MAX`.
pub(super) fn deserialize_millis_within<'de, D, const MIN: i64, const MAX: i64>(
    deserializer: D,
) -> Result<Duration, D::Error>
where
    D: Deserializer<'de>,
{
    deserialize_integer::<D, u64, MIN, MAX>(deserializer).map(Duration::from_millis)
}

/// Writes a duration as whole seconds.
pub(super) fn serialize_seconds<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_secs())
}

/// Writes a duration as whole milliseconds.
pub(super) fn serialize_millis<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(duration.as_millis())
}

/// Parses an amount of money that is not negative.
pub(super) fn deserialize_amount<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Amount>, D::Error> {
    let Digits(text) = Digits::deserialize(deserializer)?;
    let amount = text.parse::<Amount>().ok().filter(|a| !a.is_negative());
    amount.map(Some).ok_or_else(|| {
        D::Error::custom(format!(
            "is {text:?}, but a price is a decimal number such as 0.04, with at most nine decimals and at most one billion"
        ))
    })
}

/// Parses the price of one token, which is not negative; returns the price of a million tokens.
pub(super) fn deserialize_token_price<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Amount>, D::Error> {
    let Digits(text) = Digits::deserialize(deserializer)?;
    let one = text.parse::<Amount>().ok().filter(|a| !a.is_negative());
    let million = one.and_then(|one| one.times(1_000_000, 1));
    million.map(Some).ok_or_else(|| {
        D::Error::custom(format!(
            "is {text:?}, but a multiplier is a decimal number such as 1.5, with at most nine decimals and at most 1000"
        ))
    })
}

/// Parses a secret, which no error repeats.
pub(super) fn deserialize_secret<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    String::deserialize(deserializer).map(|text| Some(Secret::new(text)))
}

/// [`deserialize_secret`] of at least [`MIN_SECRET`] characters.
pub(super) fn deserialize_long_secret<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.chars().count() {
        MIN_SECRET.. => Ok(Some(Secret::new(text))),
        n => Err(D::Error::custom(format!(
            "has {n} characters, but it takes at least {MIN_SECRET}, such as those of `openssl rand -hex 32`"
        ))),
    }
}
