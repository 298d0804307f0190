//! [`PixelRangeSizes`]: sizes of wan2.7, whose `size` is a tier, a ratio, or a pixel size within a range.

use serde_json::{Value, json};
use tollgate_core::ApiError;

use crate::fields::draft::Draft;
use crate::image::format::PixelSize;
use crate::image::job::Size;
use crate::text::{invalid_value, show_name};

/// Tiers, ratios and ranges of pixel sizes, which depend on the [`SizeMode`] of the request.
pub struct PixelRangeSizes {
    /// Every tier with the side of its square image in pixels, smallest first.
    pub tiers: &'static [(&'static str, u32)],
    /// The `size` of a request that has none.
    pub default: &'static str,
    /// The tier of ratios.
    pub ratio_tier: &'static str,
    /// Every mode, for the docs page.
    pub modes: &'static [&'static SizeMode],
    /// The mode of a request.
    pub(crate) mode_of: fn(&Draft<'_>) -> &'static SizeMode,
    /// The mode of requests with reference images, whose tiers follow the ratio of the last one.
    pub reference_mode: &'static SizeMode,
}

/// A use of a model with its own sizes.
pub struct SizeMode {
    /// The use, for the docs page and errors.
    pub name: &'static str,
    /// Number of tiers available, counted from the smallest.
    pub tiers: usize,
    /// Smallest side of a pixel size.
    pub min_side: u32,
    /// Largest side of a pixel size.
    pub max_side: u32,
    /// The ratios with their (width, height).
    pub ratios: &'static [(&'static str, (u32, u32))],
}

/// Sides of computed sizes are multiples of this.
const STEP: f64 = 16.0;

impl PixelRangeSizes {
    /// The JSON Schema of `size`.
    pub(super) fn schema(&self) -> Value {
        let tiers = self.tiers.iter().map(|(name, _)| *name);
        let ratios = self.reference_mode.ratios.iter().map(|(ratio, _)| *ratio);
        let names: Vec<&str> = tiers.chain(ratios).collect();
        json!({
            "type": "string",
            "anyOf": [{ "enum": names }, { "pattern": "^[1-9][0-9]*[x*][1-9][0-9]*$" }],
        })
    }

    pub(super) fn resolve(&self, draft: &Draft<'_>) -> Result<(Size, String), ApiError> {
        let mode = (self.mode_of)(draft);
        let requested = draft.text("size").unwrap_or(self.default).to_owned();
        let tier = self
            .tiers
            .iter()
            .position(|(name, _)| name.eq_ignore_ascii_case(&requested));
        if let Some(level) = tier {
            if level >= mode.tiers {
                return Err(self.invalid_size(mode, &requested));
            }
            let (name, side) = self.tiers[level];
            let follows = draft.references() > 0;
            let size = Size {
                pixels: (!follows).then(|| PixelSize::new(side, side)),
                ratio: Some(if follows { "auto" } else { "1:1" }.to_owned()),
                tier: Some(name.to_owned()),
            };
            return Ok((size, name.to_owned()));
        }
        if let Some((ratio, (width, height))) = mode.ratios.iter().find(|(r, _)| *r == requested) {
            let size = Size {
                pixels: Some(PixelSize::new(*width, *height)),
                ratio: Some((*ratio).to_owned()),
                tier: Some(self.ratio_tier.to_owned()),
            };
            return Ok((size, requested));
        }
        let within = |side: u32| (mode.min_side..=mode.max_side).contains(&side);
        let pixels = PixelSize::parse(&requested, &['x', '*'])
            .filter(|pixels| within(pixels.width) && within(pixels.height))
            .ok_or_else(|| self.invalid_size(mode, &requested))?;
        let size = Size {
            pixels: Some(pixels),
            ratio: None,
            tier: None,
        };
        Ok((size, pixels.to_string()))
    }

    /// Fills in `size` for a reference image of `reference` pixels: its ratio with about the tier's area, within the
    /// allowed range of sides.
    pub(super) fn fill_from_reference(&self, size: &mut Size, reference: PixelSize) {
        let tier = size.tier.as_deref();
        let side = self.tiers.iter().find(|(name, _)| Some(*name) == tier);
        if let Some((_, side)) = side {
            size.pixels = Some(self.reference_mode.fit(reference.aspect_ratio(), *side));
        }
    }

    fn invalid_size(&self, mode: &SizeMode, requested: &str) -> ApiError {
        let tiers: Vec<&str> = self.tiers[..mode.tiers]
            .iter()
            .map(|(name, _)| *name)
            .collect();
        let ratios: Vec<&str> = mode.ratios.iter().map(|(ratio, _)| *ratio).collect();
        let allowed = format!(
            "one of {}, {} or pixels from {min}x{min} to {max}x{max} a side for {}",
            tiers.join(", "),
            ratios.join(", "),
            mode.name,
            min = mode.min_side,
            max = mode.max_side,
        );
        invalid_value("size", &allowed, &show_name(requested).into())
    }
}

impl SizeMode {
    /// The size with width ÷ height = `ratio` and the area of a square of `side`, with sides in multiples of 16 within
    /// the mode's range; the nearest ratio if the range does not allow this one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, at most max_side
    fn fit(&self, ratio: f64, side: u32) -> PixelSize {
        let (min, max) = (f64::from(self.min_side), f64::from(self.max_side));
        let stretch = ratio.max(1.0 / ratio);
        let long = (f64::from(side) * stretch.sqrt())
            .max(min * stretch)
            .min(max);
        let short = (long / stretch).max(min);
        let rounded = |side: f64| ((side / STEP).round() * STEP) as u32;
        if ratio >= 1.0 {
            PixelSize::new(rounded(long), rounded(short))
        } else {
            PixelSize::new(rounded(short), rounded(long))
        }
    }
}
