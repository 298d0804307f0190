//! `[price."MODEL"]`: the price of a model's images, video, speech or tokens (docs/pricing.md).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use tollgate_chat::provider_options::{FoundOption, ProviderOption};
use tollgate_core::Amount;
use tollgate_media::{PriceFactors, Units};
use tollgate_store::{Charge, TokenPrices};

use super::fields::{deserialize_amount, deserialize_token_price};
use super::multiplier::Multiplier;
use super::part_prices::PartPrices;
use super::values::Currency;

/// The price of one model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelPrice {
    /// The price of an image or a video if no entry of `when` matches; `None` if it is free.
    pub unit: Option<UnitPrice>,
    /// Prices for certain sizes, resolutions or qualities: the first entry whose conditions all match applies.
    pub when: Vec<PriceWhen>,
    /// The price of a thousand characters of speech; `None` if they are free.
    pub per_thousand_characters: Option<Amount>,
    /// The prices of its tokens.
    pub tokens: TokenPrices,
    /// What the prices of tokens are multiplied by for a service tier, by the tier's name in lower case.
    pub service_tiers: BTreeMap<String, Multiplier>,
    /// The prices of parts that are charged separately.
    pub parts: PartPrices,
}

/// The price of one unit of a model's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitPrice {
    /// One image.
    PerImage(Amount),
    /// One second of video.
    PerSecond(Amount),
    /// One video, whatever its duration.
    PerVideo(Amount),
}

/// A price for one size, resolution or quality. Texts are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceWhen {
    /// The size as the request has it (`16:9`, `2K`) or in pixels (`2048x1152`).
    pub size: Option<String>,
    /// The tier, such as `2K` or `1080p`.
    pub resolution: Option<String>,
    /// The quality, such as `high`.
    pub quality: Option<String>,
    /// The price of a matching image or video.
    pub unit: UnitPrice,
}

impl ModelPrice {
    /// The same price for every image.
    pub fn per_image(amount: Amount) -> Self {
        Self {
            unit: Some(UnitPrice::PerImage(amount)),
            ..Self::default()
        }
    }

    /// Whether the price includes an option of a chat, so that every channel forwards the option.
    pub fn names_option(&self, found: &FoundOption) -> bool {
        match found.option {
            ProviderOption::ServiceTier => self.service_tiers.contains_key(&found.tier),
            ProviderOption::CacheWrite1h => self.parts.cache_write_1h.is_some(),
            ProviderOption::AudioOutput => self.parts.audio_output.is_some(),
            ProviderOption::WebSearch => self.parts.web_search.is_some(),
            ProviderOption::WebFetch => self.parts.web_fetch.is_some(),
            _ => false,
        }
    }

    /// The charge for `units` of the model. Units without a price cost nothing.
    pub fn charge(&self, factors: &PriceFactors, units: Units) -> Charge {
        let entry = self.when.iter().find(|entry| entry.matches(factors));
        let unit = entry.map(|entry| entry.unit).or(self.unit);
        let (price, units_per_price, units) = match (units, unit) {
            (Units::Images(n), Some(UnitPrice::PerImage(price))) => (price, 1, n.into()),
            (Units::Images(n), _) => (Amount::ZERO, 1, n.into()),
            (Units::Seconds(s), Some(UnitPrice::PerSecond(price))) => (price, 1, s.into()),
            (Units::Seconds(_), Some(UnitPrice::PerVideo(price))) => (price, 1, 1),
            (Units::Seconds(s), _) => (Amount::ZERO, 1, s.into()),
            (Units::Characters(n), _) => {
                let price = self.per_thousand_characters.unwrap_or(Amount::ZERO);
                (price, 1_000, n.into())
            }
        };
        Charge {
            price,
            units_per_price,
            units,
        }
    }
}

impl PriceWhen {
    fn matches(&self, factors: &PriceFactors) -> bool {
        let is = |condition: &Option<String>, values: &[Option<&str>]| match condition {
            Some(condition) => values
                .iter()
                .flatten()
                .any(|value| condition.eq_ignore_ascii_case(value)),
            None => true,
        };
        is(
            &self.size,
            &[Some(&factors.size), factors.pixels.as_deref()],
        ) && is(&self.resolution, &[factors.resolution.as_deref()])
            && is(&self.quality, &[factors.quality.as_deref()])
    }
}

/// A price as it is written in the configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceSettings {
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_image: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_second: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_video: Option<Amount>,
    #[serde(default)]
    when: Vec<PriceWhen>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_thousand_characters: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    input_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    cached_input_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    cache_write_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    output_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    reasoning_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    input: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    cached_input: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    cache_write: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    output: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    reasoning: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    cache_write_1h_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    audio_input_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    image_input_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    audio_output_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    image_output_per_million: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    cache_write_1h: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    audio_input: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    image_input: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    audio_output: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_token_price")]
    image_output: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_web_search: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_web_fetch: Option<Amount>,
    #[serde(default)]
    service_tiers: BTreeMap<String, Multiplier>,
}

/// The keys of token prices: in the currency `Tokens` they are multipliers, prices of one token; in every other currency they end with
/// [`PER_MILLION`] and are prices of a million tokens.
const TOKEN_KEYS: [&str; 10] = [
    "input",
    "cached_input",
    "cache_write",
    "output",
    "reasoning",
    "cache_write_1h",
    "audio_input",
    "image_input",
    "audio_output",
    "image_output",
];
const PER_MILLION: &str = "_per_million";

/// Why the key of a price is invalid with `currency`. `None` if it is valid.
pub(super) fn describe_key_error(key: &str, currency: Currency) -> Option<String> {
    let is_per_token = TOKEN_KEYS.contains(&key);
    match (key.strip_suffix(PER_MILLION), currency) {
        (Some(name), Currency::Tokens) => Some(format!(
            "does not fit currency \"Tokens\", in which prices of tokens are multipliers: write {name}, such as {name} = 1.0"
        )),
        (None, Currency::Usd | Currency::Cny) if is_per_token => Some(format!(
            "is a multiplier, which only currency \"Tokens\" has; in {currency} write {key}{PER_MILLION}"
        )),
        _ => None,
    }
}

impl<'de> Deserialize<'de> for ModelPrice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let price = PriceSettings::deserialize(deserializer)?;
        let input = price.input_per_million.or(price.input).unwrap_or_default();
        let output = price.output_per_million.or(price.output);
        let output = output.unwrap_or_default();
        let cached_input = price.cached_input_per_million.or(price.cached_input);
        let cache_write = price.cache_write_per_million.or(price.cache_write);
        let reasoning = price.reasoning_per_million.or(price.reasoning);
        let tiers = price.service_tiers.into_iter();
        let service_tiers = tiers.map(|(tier, factor)| (tier.to_ascii_lowercase(), factor));
        Ok(Self {
            service_tiers: service_tiers.collect(),
            parts: PartPrices {
                cache_write_1h: price.cache_write_1h_per_million.or(price.cache_write_1h),
                audio_input: price.audio_input_per_million.or(price.audio_input),
                image_input: price.image_input_per_million.or(price.image_input),
                audio_output: price.audio_output_per_million.or(price.audio_output),
                image_output: price.image_output_per_million.or(price.image_output),
                web_search: price.per_web_search,
                web_fetch: price.per_web_fetch,
            },
            unit: one_unit(price.per_image, price.per_second, price.per_video)?,
            when: price.when,
            per_thousand_characters: price.per_thousand_characters,
            tokens: TokenPrices {
                input,
                cached_input: cached_input.unwrap_or(input),
                cache_write: cache_write.unwrap_or(input),
                output,
                reasoning: reasoning.unwrap_or(output),
            },
        })
    }
}

/// An entry of `when` as it is written in the configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenSettings {
    size: Option<String>,
    resolution: Option<String>,
    quality: Option<String>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_image: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_second: Option<Amount>,
    #[serde(default, deserialize_with = "deserialize_amount")]
    per_video: Option<Amount>,
}

impl<'de> Deserialize<'de> for PriceWhen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = WhenSettings::deserialize(deserializer)?;
        let unit = one_unit(entry.per_image, entry.per_second, entry.per_video)?;
        let unit = unit
            .ok_or_else(|| D::Error::custom("has no price: per_image, per_second or per_video"))?;
        if entry.size.is_none() && entry.resolution.is_none() && entry.quality.is_none() {
            return Err(D::Error::custom("names no size, resolution or quality"));
        }
        Ok(Self {
            size: entry.size,
            resolution: entry.resolution,
            quality: entry.quality,
            unit,
        })
    }
}

/// Returns the price per unit, of which at most one may be set.
fn one_unit<E: Error>(
    per_image: Option<Amount>,
    per_second: Option<Amount>,
    per_video: Option<Amount>,
) -> Result<Option<UnitPrice>, E> {
    let mut given = [
        per_image.map(UnitPrice::PerImage),
        per_second.map(UnitPrice::PerSecond),
        per_video.map(UnitPrice::PerVideo),
    ]
    .into_iter()
    .flatten();
    let unit = given.next();
    match given.next() {
        Some(_) => Err(E::custom(
            "has more than one of per_image, per_second and per_video: a model has one of them",
        )),
        None => Ok(unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_entry_decides() {
        let amount = |text: &str| text.parse::<Amount>().unwrap();
        let entry = |size: Option<&str>, resolution: Option<&str>, quality: Option<&str>, price| {
            PriceWhen {
                size: size.map(str::to_owned),
                resolution: resolution.map(str::to_owned),
                quality: quality.map(str::to_owned),
                unit: UnitPrice::PerImage(amount(price)),
            }
        };
        let price = ModelPrice {
            unit: Some(UnitPrice::PerImage(amount("0.01"))),
            when: vec![
                entry(None, Some("4k"), Some("high"), "0.3"),
                entry(None, Some("4k"), None, "0.2"),
                entry(Some("1024x1024"), None, None, "0.05"),
                entry(Some("16:9"), None, None, "0.06"),
            ],
            ..ModelPrice::default()
        };
        let cost = |size: &str, pixels: Option<&str>, resolution: &str, quality: &str| {
            let factors = PriceFactors {
                size: size.to_owned(),
                pixels: pixels.map(str::to_owned),
                resolution: Some(resolution.to_owned()),
                quality: Some(quality.to_owned()),
            };
            price.charge(&factors, Units::Images(1)).price.to_string()
        };
        assert_eq!(cost("1:1", Some("2880x2880"), "4K", "high"), "0.3");
        assert_eq!(cost("1:1", Some("2880x2880"), "4k", "auto"), "0.2");
        assert_eq!(cost("1:1", Some("1024x1024"), "1k", "auto"), "0.05");
        assert_eq!(cost("16:9", None, "1k", "auto"), "0.06");
        assert_eq!(cost("auto", None, "1k", "auto"), "0.01");
    }

    #[test]
    fn video_costs_per_second_or_per_video_and_speech_per_character() {
        let amount = |text: &str| text.parse::<Amount>().unwrap();
        let factors = PriceFactors {
            size: "1280x720".to_owned(),
            pixels: None,
            resolution: Some("720p".to_owned()),
            quality: None,
        };
        let cost = |price: &ModelPrice, units| {
            let charge = price.charge(&factors, units);
            charge.cost(charge.units).unwrap().to_string()
        };
        let mut video = ModelPrice {
            unit: Some(UnitPrice::PerSecond(amount("0.1"))),
            ..ModelPrice::default()
        };
        assert_eq!(cost(&video, Units::Seconds(8)), "0.8");
        assert_eq!(cost(&video, Units::Images(8)), "0");
        video.unit = Some(UnitPrice::PerVideo(amount("0.5")));
        assert_eq!(cost(&video, Units::Seconds(8)), "0.5");
        let speech = ModelPrice {
            per_thousand_characters: Some(amount("0.02")),
            ..ModelPrice::default()
        };
        assert_eq!(cost(&speech, Units::Characters(1_500)), "0.03");
        assert_eq!(cost(&speech, Units::Seconds(8)), "0");
    }
}
