//! Prices of what providers charge separately from plain tokens (docs/pricing.md).

use tollgate_core::Amount;

use super::multiplier::Multiplier;

/// Prices of parts that are charged separately. `None`: the part is charged as the plain tokens that it belongs to, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartPrices {
    /// A million tokens written to the prompt cache for an hour.
    pub cache_write_1h: Option<Amount>,
    /// A million tokens of audio in the prompt.
    pub audio_input: Option<Amount>,
    /// A million tokens of images in the prompt.
    pub image_input: Option<Amount>,
    /// A million tokens of audio in the response.
    pub audio_output: Option<Amount>,
    /// A million tokens of images in the response.
    pub image_output: Option<Amount>,
    /// One search of the web.
    pub web_search: Option<Amount>,
    /// One page that the provider fetches.
    pub web_fetch: Option<Amount>,
}

impl PartPrices {
    /// Whether every part is either without a separate price, or free.
    pub fn is_free(&self) -> bool {
        let all = [
            self.cache_write_1h,
            self.audio_input,
            self.image_input,
            self.audio_output,
            self.image_output,
            self.web_search,
            self.web_fetch,
        ];
        all.iter().flatten().all(|price| *price == Amount::ZERO)
    }

    /// The prices, with those of tokens multiplied by the factor of a service tier. `None` if one is too large.
    pub fn scale(&self, factor: Multiplier) -> Option<Self> {
        let scale = |price: Option<Amount>| match price {
            Some(price) => factor.scale_price(price).map(Some),
            None => Some(None),
        };
        Some(Self {
            cache_write_1h: scale(self.cache_write_1h)?,
            audio_input: scale(self.audio_input)?,
            image_input: scale(self.image_input)?,
            audio_output: scale(self.audio_output)?,
            image_output: scale(self.image_output)?,
            ..*self
        })
    }
}
