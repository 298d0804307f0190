//! Sizes of wan2.7: `size` is a tier, a ratio or pixels, within ranges that depend on what is made.

use tollgate_core::ApiError;

use super::super::Draft;
use super::super::job::{PixelSize, Size};
use super::super::values::wrong;
use super::{parse_pixels, shape_of};
use crate::text;

/// Tiers, ratios and pixel ranges.
pub struct FreeSizes {
    /// Every tier with the side of its square in pixels, smallest first.
    pub tiers: &'static [(&'static str, u32)],
    /// What a request without `size` gets.
    pub default: &'static str,
    /// The tier that ratios are made at.
    pub ratio_tier: &'static str,
    /// Every scene, for the documents.
    pub scenes: &'static [&'static Scene],
    /// The scene of a request.
    pub(crate) scene: fn(&Draft<'_>) -> &'static Scene,
    /// The scene of requests with references, whose tiers follow the last one's ratio.
    pub following: &'static Scene,
}

/// One use of a model with its own limits.
pub struct Scene {
    /// What is made, in words.
    pub name: &'static str,
    /// How many of the tiers it has, from the smallest on.
    pub tiers: usize,
    /// Smallest side of a pixel size.
    pub min_side: u32,
    /// Largest side of a pixel size.
    pub max_side: u32,
    /// The ratios with the (width, height) that they are made at.
    pub ratios: &'static [(&'static str, (u32, u32))],
}

/// Sides of computed sizes are multiples of this.
const STEP: f64 = 16.0;

impl FreeSizes {
    pub(super) fn choose(&self, draft: &Draft<'_>) -> Result<(Size, String), ApiError> {
        let scene = (self.scene)(draft);
        let asked = draft.text("size").unwrap_or(self.default).to_owned();
        let tier = self
            .tiers
            .iter()
            .position(|(name, _)| name.eq_ignore_ascii_case(&asked));
        if let Some(level) = tier {
            if level >= scene.tiers {
                return Err(self.refuse(scene, &asked));
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
        if let Some((ratio, (width, height))) = scene.ratios.iter().find(|(r, _)| *r == asked) {
            let size = Size {
                pixels: Some(PixelSize::new(*width, *height)),
                ratio: Some((*ratio).to_owned()),
                tier: Some(self.ratio_tier.to_owned()),
            };
            return Ok((size, asked));
        }
        let within = |side: u32| (scene.min_side..=scene.max_side).contains(&side);
        let pixels = parse_pixels(&asked, &['x', '*'])
            .filter(|pixels| within(pixels.width) && within(pixels.height))
            .ok_or_else(|| self.refuse(scene, &asked))?;
        let size = Size {
            pixels: Some(pixels),
            ratio: None,
            tier: None,
        };
        Ok((size, pixels.to_string()))
    }

    /// Fills in `size` after a reference of `reference` pixels: its ratio at the tier's area, as
    /// far as the range of sides allows.
    pub(super) fn follow(&self, size: &mut Size, reference: PixelSize) {
        let tier = size.tier.as_deref();
        let side = self.tiers.iter().find(|(name, _)| Some(*name) == tier);
        if let Some((_, side)) = side {
            size.pixels = Some(self.following.fit(shape_of(reference), *side));
        }
    }

    fn refuse(&self, scene: &Scene, asked: &str) -> ApiError {
        let tiers: Vec<&str> = self.tiers[..scene.tiers]
            .iter()
            .map(|(name, _)| *name)
            .collect();
        let ratios: Vec<&str> = scene.ratios.iter().map(|(ratio, _)| *ratio).collect();
        let wants = format!(
            "one of {}, {} or pixels from {min}x{min} to {max}x{max} a side for {}",
            tiers.join(", "),
            ratios.join(", "),
            scene.name,
            min = scene.min_side,
            max = scene.max_side,
        );
        wrong("size", &wants, &text::name(asked).into())
    }
}

impl Scene {
    /// The size of that width ÷ height with the area of a square of `side`, its sides multiples of
    /// 16 within the scene's range. Where the range allows no such ratio, the nearest one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, at most max_side
    fn fit(&self, ratio: f64, side: u32) -> PixelSize {
        let (min, max) = (f64::from(self.min_side), f64::from(self.max_side));
        let stretch = ratio.max(1.0 / ratio);
        let long = (f64::from(side) * stretch.sqrt())
            .max(min * stretch)
            .min(max);
        let short = (long / stretch).max(min);
        let whole = |side: f64| ((side / STEP).round() * STEP) as u32;
        if ratio >= 1.0 {
            PixelSize::new(whole(long), whole(short))
        } else {
            PixelSize::new(whole(short), whole(long))
        }
    }
}
