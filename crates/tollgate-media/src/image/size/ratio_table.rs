//! [`RatioTable`]: sizes of the families whose `size` is a ratio, as a table of pixel sizes by ratio and tier.

use serde_json::{Value, json};
use tollgate_core::ApiError;

use crate::fields::draft::Draft;
use crate::image::format::PixelSize;
use crate::image::job::Size;
use crate::text::invalid_value;

/// A table of pixel sizes by ratio and tier.
pub struct RatioTable {
    /// The values of `resolution`, smallest first. Empty if there is only one, unnamed tier.
    pub tiers: &'static [&'static str],
    /// The index of the default tier.
    pub default_tier: usize,
    /// The ratios, each with its pixels at every tier.
    pub rows: &'static [Row],
    /// The size of a request without `size`.
    pub default: DefaultSize,
    /// The meaning of `size: "auto"`.
    pub auto: AutoSize,
    /// Whether `size` may also be a pixel size.
    pub pixels: PixelSizes,
    /// Accepted pixel sizes that are not in the table, each with the index of its tier.
    pub extra_sizes: &'static [(PixelSize, usize)],
    /// The ratio that replaces every ratio outside the table (an adjustment). `None` if such ratios are an error.
    pub fallback: Option<&'static str>,
}

/// One row of a table: the sizes of a ratio.
pub struct Row {
    /// The ratio, such as `16:9`.
    pub ratio: &'static str,
    /// Width and height at each tier, in the order of the tiers.
    pub pixels: &'static [(u32, u32)],
}

/// Creates a row.
pub const fn row(ratio: &'static str, pixels: &'static [(u32, u32)]) -> Row {
    Row { ratio, pixels }
}

/// The size of a request without `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultSize {
    /// That ratio.
    Ratio(&'static str),
    /// The ratio nearest to that of the first reference image, or this one without references.
    FollowReference(&'static str),
}

/// The meaning of `size: "auto"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoSize {
    /// Not accepted.
    Rejected,
    /// The ratio nearest to that of the first reference image; an error without references.
    NeedsReference,
    /// The ratio nearest to that of the first reference image; the default ratio without references.
    OptionalReference,
}

/// Whether `size` may be a pixel size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelSizes {
    /// Not accepted.
    Rejected,
    /// A size of the table, which selects ratio and tier; must not contradict `resolution` if that is sent.
    InTable,
    /// A size of the table, which is equivalent to its ratio.
    AsRatio,
}

/// The value of `size` that follows the first reference image.
const AUTO: &str = "auto";

impl RatioTable {
    /// The JSON Schema of `size`.
    pub(super) fn schema(&self) -> Value {
        let mut values: Vec<String> = self.ratios().map(str::to_owned).collect();
        if self.pixels != PixelSizes::Rejected {
            let also = self.extra_sizes.iter().map(|(size, _)| *size);
            let pixels = self.cells().map(|(_, _, size)| size).chain(also);
            values.extend(pixels.map(|size| size.to_string()));
        }
        if self.fallback.is_some() {
            return json!({ "type": "string", "examples": values });
        }
        json!({ "type": "string", "enum": values })
    }

    /// The size of a request, and its `size` for the price: the requested or default one, or the ratio that replaces it or is equivalent to it.
    pub(super) fn resolve(&self, draft: &mut Draft<'_>) -> Result<(Size, String), ApiError> {
        let tier = draft
            .text("resolution")
            .and_then(|name| self.tiers.iter().position(|tier| *tier == name));
        let level = tier.unwrap_or(self.default_tier);
        let requested_tier = tier.filter(|_| draft.is_requested("resolution"));
        let Some(requested) = draft.text("size").map(str::to_owned) else {
            return Ok(match self.default {
                DefaultSize::FollowReference(_) if draft.references() > 0 => {
                    (self.pending_size(level), AUTO.into())
                }
                DefaultSize::Ratio(ratio) | DefaultSize::FollowReference(ratio) => {
                    (self.size_at(self.row(ratio), level), ratio.into())
                }
            });
        };
        let size = if let Some(row) = self.rows.iter().find(|row| row.ratio == requested) {
            self.size_at(row, level)
        } else if requested == AUTO && self.auto != AutoSize::Rejected {
            self.auto_size(draft, level)?
        } else if let Some(found) = self.size_of_pixels(&requested, requested_tier)? {
            found
        } else if let Some(fallback) = self.fallback.filter(|_| parse_ratio(&requested).is_some()) {
            let why = format!("this ratio is not supported; {fallback} is used instead");
            draft.adjust("size", fallback, why);
            return Ok((self.size_at(self.row(fallback), level), fallback.to_owned()));
        } else {
            return Err(invalid_value(
                "size",
                &self.describe_allowed(&requested),
                &requested.into(),
            ));
        };
        let Some(pixels) = PixelSize::parse(&requested) else {
            return Ok((size, requested));
        };
        // A pixel size that is equivalent to a ratio has the price of the ratio.
        let equivalent = match self.pixels {
            PixelSizes::AsRatio => size.ratio.clone(),
            PixelSizes::Rejected | PixelSizes::InTable => None,
        };
        Ok((size, equivalent.unwrap_or_else(|| pixels.to_string())))
    }

    /// Fills in `size` for a reference image of `reference` pixels: the row whose ratio is nearest on a logarithmic scale.
    pub(super) fn fill_from_reference(&self, size: &mut Size, reference: PixelSize) {
        let level = size
            .tier
            .as_deref()
            .and_then(|name| self.tiers.iter().position(|tier| *tier == name))
            .unwrap_or(self.default_tier);
        let wanted = reference.aspect_ratio().ln();
        let distance =
            |row: &Row| parse_ratio(row.ratio).map_or(f64::MAX, |r| (r.ln() - wanted).abs());
        let nearest = self
            .rows
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(row) = nearest {
            *size = self.size_at(row, level);
        }
    }

    fn auto_size(&self, draft: &Draft<'_>, level: usize) -> Result<Size, ApiError> {
        let (DefaultSize::Ratio(ratio) | DefaultSize::FollowReference(ratio)) = self.default;
        match self.auto {
            _ if draft.references() > 0 => Ok(self.pending_size(level)),
            AutoSize::NeedsReference => Err(ApiError::invalid(
                "`size` \"auto\" matches the reference image's ratio and needs `image_urls`, got none",
            )),
            AutoSize::OptionalReference | AutoSize::Rejected => {
                Ok(self.size_at(self.row(ratio), level))
            }
        }
    }

    /// The size for a pixel size sent as `size`. `None` if `size` is not a pixel size, or pixel sizes are not accepted.
    ///
    /// # Errors
    /// 400 if it contradicts `resolution`.
    fn size_of_pixels(
        &self,
        requested: &str,
        tier: Option<usize>,
    ) -> Result<Option<Size>, ApiError> {
        let Some(pixels) = PixelSize::parse(requested) else {
            return Ok(None);
        };
        let found = match self.pixels {
            PixelSizes::Rejected => None,
            PixelSizes::AsRatio => {
                let found = self.cells().find(|(_, _, cell)| *cell == pixels);
                return Ok(found.map(|(row, level, _)| self.size_at(row, level)));
            }
            PixelSizes::InTable => self
                .cells()
                .map(|(_, level, cell)| (cell, level))
                .chain(self.extra_sizes.iter().copied())
                .find(|(cell, _)| *cell == pixels),
        };
        let Some((_, level)) = found else {
            return Ok(None);
        };
        if let Some(tier) = tier.filter(|tier| *tier != level) {
            return Err(ApiError::invalid(format!(
                "`size` {requested} is a size of tier {}, but `resolution` is {}: leave one out",
                self.tiers[level], self.tiers[tier],
            )));
        }
        Ok(Some(Size {
            pixels: Some(pixels),
            ratio: None,
            tier: self.tier_name(level),
        }))
    }

    /// The allowed values of `size`, for an error about `requested`.
    fn describe_allowed(&self, requested: &str) -> String {
        let ratios: Vec<&str> = self.ratios().collect();
        let mut allowed = format!("one of {}", ratios.join(", "));
        if self.pixels != PixelSizes::Rejected {
            allowed += " or a pixel size of the table";
            if let Some(requested) = PixelSize::parse(requested) {
                let distance = |cell: PixelSize| {
                    u64::from(cell.width.abs_diff(requested.width))
                        + u64::from(cell.height.abs_diff(requested.height))
                };
                if let Some((_, _, near)) = self.cells().min_by_key(|(_, _, cell)| distance(*cell))
                {
                    allowed += &format!(" (the nearest is {near})");
                }
            }
        }
        allowed
    }

    /// The ratios that `size` accepts, and `auto` if it is accepted.
    pub(crate) fn ratios(&self) -> impl Iterator<Item = &'static str> {
        let auto = (self.auto != AutoSize::Rejected).then_some(AUTO);
        auto.into_iter()
            .chain(self.rows.iter().map(|row| row.ratio))
    }

    /// Every cell of the table: its row, the index of its tier, its size.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&'static Row, usize, PixelSize)> {
        self.rows.iter().flat_map(|row| {
            let sizes = row.pixels.iter().enumerate();
            sizes.map(move |(level, (width, height))| (row, level, PixelSize::new(*width, *height)))
        })
    }

    /// The row of a ratio in the declaration; a test checks that the row exists.
    fn row(&self, ratio: &str) -> &'static Row {
        let named = self.rows.iter().find(|row| row.ratio == ratio);
        named.unwrap_or(&self.rows[0])
    }

    /// The size in `row` at the tier with index `level`.
    fn size_at(&self, row: &Row, level: usize) -> Size {
        let (width, height) = row.pixels[level];
        Size {
            pixels: Some(PixelSize::new(width, height)),
            ratio: Some(row.ratio.to_owned()),
            tier: self.tier_name(level),
        }
    }

    /// A size whose pixels depend on a reference that is not known yet.
    fn pending_size(&self, level: usize) -> Size {
        Size {
            pixels: None,
            ratio: Some(AUTO.to_owned()),
            tier: self.tier_name(level),
        }
    }

    fn tier_name(&self, level: usize) -> Option<String> {
        self.tiers.get(level).map(|name| (*name).to_owned())
    }
}

/// Width divided by height of a ratio such as `16:9`. `None` if `text` is not a ratio.
pub(crate) fn parse_ratio(text: &str) -> Option<f64> {
    let (width, height) = text.split_once(':')?;
    let part = |digits: &str| digits.parse::<u16>().ok().filter(|n| *n > 0).map(f64::from);
    Some(part(width)? / part(height)?)
}
