//! The factor that a service tier's prices are multiplied by.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use tollgate_core::{Amount, money};
use tollgate_store::TokenPrices;

use super::fields::deserialize_amount;

/// A factor of prices, in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiplier(i64);

impl Multiplier {
    /// The factor, as a decimal number.
    pub fn factor(self) -> Amount {
        Amount::from_nanos(self.0)
    }

    /// A price times the factor, rounded up to a billionth. `None` if it is too large.
    pub(super) fn scale_price(self, price: Amount) -> Option<Amount> {
        let product = i128::from(price.nanos()) * i128::from(self.0);
        let nanos = i64::try_from((product + 999_999_999) / 1_000_000_000).ok()?;
        Some(Amount::from_nanos(nanos)).filter(|price| *price <= money::MAX)
    }

    /// The prices times the factor. `None` if one is too large.
    pub fn scale(self, prices: &TokenPrices) -> Option<TokenPrices> {
        let scale = |price| self.scale_price(price);
        Some(TokenPrices {
            input: scale(prices.input)?,
            cached_input: scale(prices.cached_input)?,
            cache_write: scale(prices.cache_write)?,
            output: scale(prices.output)?,
            reasoning: scale(prices.reasoning)?,
        })
    }
}

impl<'de> Deserialize<'de> for Multiplier {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let factor = deserialize_amount(deserializer)?.unwrap_or_default();
        match factor.nanos() {
            1..=1_000_000_000_000 => Ok(Self(factor.nanos())),
            _ => Err(D::Error::custom(
                "is not above 0 and at most 1000, as the multiplier of a service tier must be",
            )),
        }
    }
}
