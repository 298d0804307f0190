//! `[price."MODEL"]`: what a model's pictures, films, speech or tokens cost.

use std::collections::HashMap;

use tollgate_core::Amount;
use tollgate_media::{PriceFacts, Units};
use tollgate_store::{Charge, TokenPrices};

use super::ConfigError;
use super::field::Field;

/// The price of one model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelPrice {
    /// What a picture or film costs where no entry of `when` says otherwise; none costs nothing.
    pub unit: Option<UnitPrice>,
    /// The first entry whose every named condition holds decides.
    pub when: Vec<PriceWhen>,
    /// What a thousand characters of speech cost; none costs nothing.
    pub per_thousand_characters: Option<Amount>,
    /// What its tokens cost.
    pub tokens: TokenPrices,
}

/// What one of what a model makes costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitPrice {
    /// A picture.
    PerImage(Amount),
    /// A second of film.
    PerSecond(Amount),
    /// A film, however long.
    PerVideo(Amount),
}

/// A price for one size, resolution or quality. Texts are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceWhen {
    /// As the request has it (`16:9`, `2K`) or in pixels (`2048x1152`).
    pub size: Option<String>,
    /// The tier, such as `2K` or `1080p`.
    pub resolution: Option<String>,
    /// The quality, such as `high`.
    pub quality: Option<String>,
    /// What such a picture or film costs.
    pub unit: UnitPrice,
}

impl ModelPrice {
    /// The same for every picture.
    pub fn per_image(amount: Amount) -> Self {
        Self {
            unit: Some(UnitPrice::PerImage(amount)),
            ..Self::default()
        }
    }

    /// The charge for `units` of it. What has no price for such units costs nothing.
    pub fn charge(&self, facts: &PriceFacts, units: Units) -> Charge {
        let entry = self.when.iter().find(|entry| entry.holds(facts));
        let unit = entry.map(|entry| entry.unit).or(self.unit);
        let (price, per, units) = match (units, unit) {
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
        Charge { price, per, units }
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
        unit: read_unit(field)?,
        when: when
            .map(|entry| read_when(&entry))
            .collect::<Result<_, _>>()?,
        per_thousand_characters: field.at("per_thousand_characters").amount()?,
        tokens: read_tokens(field)?,
    })
}

/// Makes a price of an amount.
type Kind = fn(Amount) -> UnitPrice;

fn read_unit(field: &Field<'_>) -> Result<Option<UnitPrice>, ConfigError> {
    let kinds: [(&str, Kind); 3] = [
        ("per_image", UnitPrice::PerImage),
        ("per_second", UnitPrice::PerSecond),
        ("per_video", UnitPrice::PerVideo),
    ];
    let mut found: Option<(&str, UnitPrice)> = None;
    for (name, kind) in kinds {
        let given = field.at(name);
        let Some(amount) = given.amount()? else {
            continue;
        };
        if let Some((other, _)) = found {
            return Err(given.error(format!("stands beside {other}: a model has one of them")));
        }
        found = Some((name, kind(amount)));
    }
    Ok(found.map(|(_, unit)| unit))
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
    let unit = read_unit(field)?;
    let entry = PriceWhen {
        size: field.at("size").text()?,
        resolution: field.at("resolution").text()?,
        quality: field.at("quality").text()?,
        unit: unit
            .ok_or_else(|| field.error("has no price: per_image, per_second or per_video"))?,
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
            let facts = PriceFacts {
                size: size.to_owned(),
                pixels: pixels.map(str::to_owned),
                resolution: Some(resolution.to_owned()),
                quality: Some(quality.to_owned()),
            };
            price.charge(&facts, Units::Images(1)).price.to_string()
        };
        assert_eq!(cost("1:1", Some("2880x2880"), "4K", "high"), "0.3");
        assert_eq!(cost("1:1", Some("2880x2880"), "4k", "auto"), "0.2");
        assert_eq!(cost("1:1", Some("1024x1024"), "1k", "auto"), "0.05");
        assert_eq!(cost("16:9", None, "1k", "auto"), "0.06");
        assert_eq!(cost("auto", None, "1k", "auto"), "0.01");
    }

    #[test]
    fn films_cost_by_the_second_or_by_the_film_and_speech_by_the_character() {
        let amount = |text: &str| text.parse::<Amount>().unwrap();
        let facts = PriceFacts {
            size: "1280x720".to_owned(),
            pixels: None,
            resolution: Some("720p".to_owned()),
            quality: None,
        };
        let cost = |price: &ModelPrice, units| {
            let charge = price.charge(&facts, units);
            charge.cost(charge.units).unwrap().to_string()
        };
        let mut film = ModelPrice {
            unit: Some(UnitPrice::PerSecond(amount("0.1"))),
            ..ModelPrice::default()
        };
        assert_eq!(cost(&film, Units::Seconds(8)), "0.8");
        assert_eq!(cost(&film, Units::Images(8)), "0");
        film.unit = Some(UnitPrice::PerVideo(amount("0.5")));
        assert_eq!(cost(&film, Units::Seconds(8)), "0.5");
        let speech = ModelPrice {
            per_thousand_characters: Some(amount("0.02")),
            ..ModelPrice::default()
        };
        assert_eq!(cost(&speech, Units::Characters(1_500)), "0.03");
        assert_eq!(cost(&speech, Units::Seconds(8)), "0");
    }
}
