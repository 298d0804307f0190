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
    /// The `size` of a request without one.
    pub default: &'static str,
    /// The tier of ratios.
    pub ratio_tier: &'static str,
    /// The ratios with their (width, height).
    pub ratios: &'static [(&'static str, (u32, u32))],
    /// Largest ratio of the longer side to the shorter one.
    pub max_ratio: u32,
    /// Every mode, for the docs page.
    pub modes: &'static [&'static SizeMode],
    /// The mode of a request.
    pub(crate) mode_of: fn(&Draft<'_>) -> &'static SizeMode,
}

/// A use of a model that has its own sizes.
pub struct SizeMode {
    /// The use, for the docs page and errors.
    pub name: &'static str,
    /// Number of tiers available, counted from the smallest.
    pub tiers: usize,
    /// The smallest area of a pixel size, as the side of a square.
    pub min_square: u32,
    /// The largest area of a pixel size, as the side of a square.
    pub max_square: u32,
}

/// Sides of computed sizes are multiples of this.
const STEP: f64 = 16.0;

impl PixelRangeSizes {
    /// The JSON Schema of `size`.
    pub(super) fn schema(&self) -> Value {
        let tiers = self.tiers.iter().map(|(name, _)| *name);
        let ratios = self.ratios.iter().map(|(ratio, _)| *ratio);
        let names: Vec<&str> = tiers.chain(ratios).collect();
        json!({
            "type": "string",
            "anyOf": [{ "enum": names }, { "pattern": "^[1-9][0-9]*[xX*][1-9][0-9]*$" }],
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
        if let Some((ratio, (width, height))) = self.ratios.iter().find(|(r, _)| *r == requested) {
            let size = Size {
                pixels: Some(PixelSize::new(*width, *height)),
                ratio: Some((*ratio).to_owned()),
                tier: Some(self.ratio_tier.to_owned()),
            };
            return Ok((size, requested));
        }
        let pixels = PixelSize::parse(&requested)
            .filter(|pixels| mode.contains(*pixels, self.max_ratio))
            .ok_or_else(|| self.invalid_size(mode, &requested))?;
        let size = Size {
            pixels: Some(pixels),
            ratio: None,
            tier: None,
        };
        Ok((size, pixels.to_string()))
    }

    /// Fills in `size` for a reference image of `reference` pixels: its ratio with about the tier's area.
    pub(super) fn fill_from_reference(&self, size: &mut Size, reference: PixelSize) {
        let tier = size.tier.as_deref();
        let side = self.tiers.iter().find(|(name, _)| Some(*name) == tier);
        if let Some((_, side)) = side {
            size.pixels = Some(self.fit(reference.aspect_ratio(), *side));
        }
    }

    fn invalid_size(&self, mode: &SizeMode, requested: &str) -> ApiError {
        let tiers: Vec<&str> = self.tiers[..mode.tiers]
            .iter()
            .map(|(name, _)| *name)
            .collect();
        let ratios: Vec<&str> = self.ratios.iter().map(|(ratio, _)| *ratio).collect();
        let allowed = format!(
            "one of {}, {} or pixels such as 1024x1024 with a product from {min}x{min} to {max}x{max} and a ratio from 1:{k} to {k}:1 for {}",
            tiers.join(", "),
            ratios.join(", "),
            mode.name,
            min = mode.min_square,
            max = mode.max_square,
            k = self.max_ratio,
        );
        invalid_value("size", &allowed, &show_name(requested).into())
    }

    /// The size with width ÷ height = `ratio`, within the largest ratio, and at most the area of a square of `side`; both
    /// sides are multiples of 16.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, at most side × max_ratio
    fn fit(&self, ratio: f64, side: u32) -> PixelSize {
        let stretch = ratio.max(1.0 / ratio).min(f64::from(self.max_ratio));
        let long = f64::from(side) * stretch.sqrt();
        let rounded = |side: f64| ((side / STEP).floor() * STEP) as u32;
        let (long, short) = (rounded(long), rounded(long / stretch));
        if ratio >= 1.0 {
            PixelSize::new(long, short)
        } else {
            PixelSize::new(short, long)
        }
    }
}

impl SizeMode {
    /// Whether the product of the sides and their ratio are within the range.
    fn contains(&self, pixels: PixelSize, max_ratio: u32) -> bool {
        let square = |side: u32| u64::from(side) * u64::from(side);
        let (long, short) = (
            pixels.width.max(pixels.height),
            pixels.width.min(pixels.height),
        );
        (square(self.min_square)..=square(self.max_square)).contains(&pixels.pixels())
            && u64::from(long) <= u64::from(short) * u64::from(max_ratio)
    }
}
