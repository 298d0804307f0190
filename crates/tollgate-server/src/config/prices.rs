//! `[price."MODEL"]`: what a model's pictures or tokens cost.

use std::collections::HashMap;

use tollgate_core::Amount;
use tollgate_media::image::PriceFacts;
use tollgate_store::TokenPrices;

use super::ConfigError;
use super::field::Field;

/// The price of one model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelPrice {
    /// What a picture costs where no entry of `when` says otherwise; none costs nothing.
    pub per_image: Option<Amount>,
    /// The first entry whose every named condition holds decides.
    pub when: Vec<PriceWhen>,
    /// What its tokens cost.
    pub tokens: TokenPrices,
}

/// A price for pictures of one size, resolution or quality. Texts are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceWhen {
    /// As the request has it (`16:9`, `2K`) or in pixels (`2048x1152`).
    pub size: Option<String>,
    /// The tier, such as `2K`.
    pub resolution: Option<String>,
    /// The quality, such as `high`.
    pub quality: Option<String>,
    /// What such a picture costs.
    pub per_image: Amount,
}

impl ModelPrice {
    /// The same for every picture.
    pub fn per_image(amount: Amount) -> Self {
        Self {
            per_image: Some(amount),
            ..Self::default()
        }
    }

    /// What one picture costs.
    pub fn of(&self, facts: &PriceFacts) -> Amount {
        let entry = self.when.iter().find(|entry| entry.holds(facts));
        let price = entry.map(|entry| entry.per_image).or(self.per_image);
        price.unwrap_or(Amount::ZERO)
    }
}

impl PriceWhen {
    fn holds(&self, facts: &PriceFacts) -> bool {
        let is = |named: &Option<String>, facts: &[Option<&str>]| match named {
            Some(named) => facts
                .iter()
                .flatten()
                .any(|fact| named.eq_ignore_ascii_case(fact)),
            None => true,
        };
        is(&self.size, &[Some(&facts.size), facts.pixels.as_deref()])
            && is(&self.resolution, &[facts.resolution.as_deref()])
            && is(&self.quality, &[facts.quality.as_deref()])
    }
}

/// Reads every price. `map` is the setting `price`.
pub(super) fn read(map: &Field<'_>) -> Result<HashMap<String, ModelPrice>, ConfigError> {
    let entries = map.entries().into_iter();
    entries
        .map(|(model, field)| Ok((model.to_owned(), read_one(&field)?)))
        .collect()
}

fn read_one(field: &Field<'_>) -> Result<ModelPrice, ConfigError> {
    let when = field.at("when").items().into_iter();
    Ok(ModelPrice {
        per_image: field.at("per_image").amount()?,
        when: when
            .map(|entry| read_when(&entry))
            .collect::<Result<_, _>>()?,
        tokens: read_tokens(field)?,
    })
}

/// Per million tokens. What the cache gives or takes costs what the prompt does, and thinking what the answer does,
/// where nothing else is said.
fn read_tokens(field: &Field<'_>) -> Result<TokenPrices, ConfigError> {
    let price = |name| field.at(name).amount();
    let input = price("input_per_million")?.unwrap_or_default();
    let output = price("output_per_million")?.unwrap_or_default();
    Ok(TokenPrices {
        input,
        cached_input: price("cached_input_per_million")?.unwrap_or(input),
        cache_write: price("cache_write_per_million")?.unwrap_or(input),
        output,
        reasoning: price("reasoning_per_million")?.unwrap_or(output),
    })
}

fn read_when(field: &Field<'_>) -> Result<PriceWhen, ConfigError> {
    let per_image = field.at("per_image");
    let price = per_image.amount()?;
    let entry = PriceWhen {
        size: field.at("size").text()?,
        resolution: field.at("resolution").text()?,
        quality: field.at("quality").text()?,
        per_image: price.ok_or_else(|| per_image.error("is missing"))?,
    };
    if entry.size.is_none() && entry.resolution.is_none() && entry.quality.is_none() {
        return Err(field.error("names no size, resolution or quality to go by"));
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_that_holds_decides() {
        let amount = |text: &str| text.parse::<Amount>().unwrap();
        let entry = |size: Option<&str>, resolution: Option<&str>, quality: Option<&str>, price| {
            PriceWhen {
                size: size.map(str::to_owned),
                resolution: resolution.map(str::to_owned),
                quality: quality.map(str::to_owned),
                per_image: amount(price),
            }
        };
        let price = ModelPrice {
            per_image: Some(amount("0.01")),
            when: vec![
                entry(None, Some("4k"), Some("high"), "0.3"),
                entry(None, Some("4k"), None, "0.2"),
                entry(Some("1024x1024"), None, None, "0.05"),
                entry(Some("16:9"), None, None, "0.06"),
            ],
            ..ModelPrice::default()
        };
        let cost = |size: &str, pixels: Option<&str>, resolution: &str, quality: &str| {
            let facts = PriceFacts {
                size: size.to_owned(),
                pixels: pixels.map(str::to_owned),
                resolution: Some(resolution.to_owned()),
                quality: Some(quality.to_owned()),
            };
            price.of(&facts).to_string()
        };
        assert_eq!(cost("1:1", Some("2880x2880"), "4K", "high"), "0.3");
        assert_eq!(cost("1:1", Some("2880x2880"), "4k", "auto"), "0.2");
        assert_eq!(cost("1:1", Some("1024x1024"), "1k", "auto"), "0.05");
        assert_eq!(cost("16:9", None, "1k", "auto"), "0.06");
        assert_eq!(cost("auto", None, "1k", "auto"), "0.01");
    }
}
