//! The JSON Schema of an image family's requests.

use serde_json::{Value, json};

use super::family::Family;
use super::size::{DefaultSize, FreeSizes, PixelsAsked, RatioSizes, Sizes};
use crate::form::{self, FormSizes};

/// The schema of a request body for `family`.
pub fn schema(family: &'static Family) -> Value {
    form::body_schema(&family.form())
}

impl FormSizes for Sizes {
    fn tiers(&self) -> (&'static [&'static str], usize) {
        match self {
            Self::Ratios(sizes) => (sizes.tiers, sizes.default_tier),
            Self::Listed(_) | Self::Free(_) => (&[], 0),
        }
    }

    fn ratios(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn default(&self) -> Option<String> {
        match self {
            Self::Ratios(sizes) => match sizes.default {
                DefaultSize::Ratio(ratio) => Some(ratio.to_owned()),
                DefaultSize::Follow(_) => None,
            },
            Self::Listed(sizes) => Some(sizes.default.to_string()),
            Self::Free(sizes) => Some(sizes.default.to_owned()),
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Ratios(sizes) => ratio_size(sizes),
            Self::Listed(sizes) => {
                let all: Vec<String> = sizes.all().map(|size| size.to_string()).collect();
                json!({ "type": "string", "enum": all })
            }
            Self::Free(sizes) => free_size(sizes),
        }
    }
}

fn ratio_size(sizes: &RatioSizes) -> Value {
    let mut values: Vec<String> = sizes.ratios().map(str::to_owned).collect();
    if sizes.pixels != PixelsAsked::No {
        let also = sizes.also.iter().map(|(size, _)| *size);
        let pixels = sizes.cells().map(|(_, _, size)| size).chain(also);
        values.extend(pixels.map(|size| size.to_string()));
    }
    if sizes.fallback.is_some() {
        return json!({ "type": "string", "examples": values });
    }
    json!({ "type": "string", "enum": values })
}

fn free_size(sizes: &FreeSizes) -> Value {
    let tiers = sizes.tiers.iter().map(|(name, _)| *name);
    let ratios = sizes.following.ratios.iter().map(|(ratio, _)| *ratio);
    let names: Vec<&str> = tiers.chain(ratios).collect();
    json!({
        "type": "string",
        "anyOf": [{ "enum": names }, { "pattern": "^[1-9][0-9]*[x*][1-9][0-9]*$" }],
    })
}
