//! Sizes of the families whose `size` names a ratio: a table of ratios by tiers.

use tollgate_core::ApiError;

use super::super::Draft;
use super::super::job::{PixelSize, Size};
use super::super::values::wrong;
use super::{parse_pixels, ratio_of, shape_of};

/// A table of ratios by tiers.
pub struct RatioSizes {
    /// The tiers that `resolution` takes, smallest first. Empty: one tier that has no name.
    pub tiers: &'static [&'static str],
    /// Index of the default one.
    pub default_tier: usize,
    /// The ratios, each with its pixels at every tier.
    pub rows: &'static [Row],
    /// What a request without `size` gets.
    pub default: DefaultSize,
    /// What `size: "auto"` does.
    pub auto: Auto,
    /// Whether `size` may also be pixels.
    pub pixels: PixelsAsked,
    /// Pixel sizes beyond the table that are made as asked, each with the index of its tier.
    pub also: &'static [(PixelSize, usize)],
    /// The ratio that every other ratio becomes (an adjustment), where that is not an error.
    pub fallback: Option<&'static str>,
}

/// One ratio of a table.
pub struct Row {
    /// Such as `16:9`.
    pub ratio: &'static str,
    /// Width and height at each tier, in the tiers' order.
    pub pixels: &'static [(u32, u32)],
}

/// A row of a table.
pub const fn row(ratio: &'static str, pixels: &'static [(u32, u32)]) -> Row {
    Row { ratio, pixels }
}

/// What a request without `size` gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultSize {
    /// That ratio.
    Ratio(&'static str),
    /// The ratio nearest to the first reference's, or this one when there is none.
    Follow(&'static str),
}

/// What `size: "auto"` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auto {
    /// It is not a value of the field.
    No,
    /// The ratio nearest to the first reference's; an error without references.
    NeedsReference,
    /// The ratio nearest to the first reference's; the default ratio without references.
    Free,
}

/// Whether `size` may be pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelsAsked {
    /// No.
    No,
    /// A size of the table, at any tier unless `resolution` names one.
    InTable,
    /// A size of the table, which means its ratio.
    AsRatio,
}

/// The `size` that follows the first reference.
const AUTO: &str = "auto";

impl RatioSizes {
    pub(super) fn choose(&self, draft: &mut Draft<'_>) -> Result<(Size, String), ApiError> {
        let tier = draft
            .text("resolution")
            .and_then(|name| self.tiers.iter().position(|tier| *tier == name));
        let level = tier.unwrap_or(self.default_tier);
        let asked_tier = tier.filter(|_| draft.asked("resolution"));
        let Some(asked) = draft.text("size").map(str::to_owned) else {
            return Ok(match self.default {
                DefaultSize::Follow(_) if draft.references() > 0 => {
                    (self.unsettled(level), AUTO.into())
                }
                DefaultSize::Ratio(ratio) | DefaultSize::Follow(ratio) => {
                    (self.at(self.row(ratio), level), ratio.into())
                }
            });
        };
        let size = if let Some(row) = self.rows.iter().find(|row| row.ratio == asked) {
            self.at(row, level)
        } else if asked == AUTO && self.auto != Auto::No {
            self.auto_size(draft, level)?
        } else if let Some(found) = self.size_of_pixels(&asked, asked_tier)? {
            found
        } else if let Some(fallback) = self.fallback.filter(|_| ratio_of(&asked).is_some()) {
            let why = format!("this ratio is not supported; {fallback} is used instead");
            draft.adjust("size", fallback, why);
            self.at(self.row(fallback), level)
        } else {
            return Err(wrong("size", &self.wants(&asked), &asked.into()));
        };
        Ok((size, asked))
    }

    /// Fills in `size` after a reference of `reference` pixels: the nearest ratio, by factors.
    pub(super) fn follow(&self, size: &mut Size, reference: PixelSize) {
        let level = size
            .tier
            .as_deref()
            .and_then(|name| self.tiers.iter().position(|tier| *tier == name))
            .unwrap_or(self.default_tier);
        let wanted = shape_of(reference).ln();
        let distance =
            |row: &Row| ratio_of(row.ratio).map_or(f64::MAX, |r| (r.ln() - wanted).abs());
        let nearest = self
            .rows
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(row) = nearest {
            *size = self.at(row, level);
        }
    }

    fn auto_size(&self, draft: &Draft<'_>, level: usize) -> Result<Size, ApiError> {
        let (DefaultSize::Ratio(ratio) | DefaultSize::Follow(ratio)) = self.default;
        match self.auto {
            _ if draft.references() > 0 => Ok(self.unsettled(level)),
            Auto::NeedsReference => Err(ApiError::invalid(
                "`size` \"auto\" matches the reference image's ratio and needs `image_urls`, got none",
            )),
            Auto::Free | Auto::No => Ok(self.at(self.row(ratio), level)),
        }
    }

    /// The size that `asked` pixels mean, none when they mean nothing here.
    fn size_of_pixels(&self, asked: &str, tier: Option<usize>) -> Result<Option<Size>, ApiError> {
        let Some(pixels) = parse_pixels(asked, &['x']) else {
            return Ok(None);
        };
        let found = match self.pixels {
            PixelsAsked::No => None,
            PixelsAsked::AsRatio => {
                let found = self.cells().find(|(_, _, cell)| *cell == pixels);
                return Ok(found.map(|(row, level, _)| self.at(row, level)));
            }
            PixelsAsked::InTable => self
                .cells()
                .map(|(_, level, cell)| (cell, level))
                .chain(self.also.iter().copied())
                .find(|(cell, _)| *cell == pixels),
        };
        let Some((_, level)) = found else {
            return Ok(None);
        };
        if let Some(tier) = tier.filter(|tier| *tier != level) {
            return Err(ApiError::invalid(format!(
                "`size` {asked} is a size of tier {}, but `resolution` is {}: leave one out",
                self.tiers[level], self.tiers[tier],
            )));
        }
        Ok(Some(Size {
            pixels: Some(pixels),
            ratio: None,
            tier: self.tier_name(level),
        }))
    }

    /// What `size` may be, for an error about `asked`.
    fn wants(&self, asked: &str) -> String {
        let words: Vec<&str> = self.ratios().collect();
        let mut wants = format!("one of {}", words.join(", "));
        if self.pixels != PixelsAsked::No {
            wants += " or a pixel size of the table";
            if let Some(asked) = parse_pixels(asked, &['x']) {
                let off = |cell: PixelSize| {
                    u64::from(cell.width.abs_diff(asked.width))
                        + u64::from(cell.height.abs_diff(asked.height))
                };
                if let Some((_, _, near)) = self.cells().min_by_key(|(_, _, cell)| off(*cell)) {
                    wants += &format!(" (the nearest is {near})");
                }
            }
        }
        wants
    }

    /// The ratios that `size` takes, `auto` among them where it does.
    pub(crate) fn ratios(&self) -> impl Iterator<Item = &'static str> {
        let auto = (self.auto != Auto::No).then_some(AUTO);
        auto.into_iter()
            .chain(self.rows.iter().map(|row| row.ratio))
    }

    /// Every cell of the table: its row, its tier's index, its pixels.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&'static Row, usize, PixelSize)> {
        self.rows.iter().flat_map(|row| {
            let sizes = row.pixels.iter().enumerate();
            sizes.map(move |(level, (width, height))| (row, level, PixelSize::new(*width, *height)))
        })
    }

    /// The row of a ratio that the declaration itself names; the tests see that it is there.
    fn row(&self, ratio: &str) -> &'static Row {
        let named = self.rows.iter().find(|row| row.ratio == ratio);
        named.unwrap_or(&self.rows[0])
    }

    fn at(&self, row: &Row, level: usize) -> Size {
        let (width, height) = row.pixels[level];
        Size {
            pixels: Some(PixelSize::new(width, height)),
            ratio: Some(row.ratio.to_owned()),
            tier: self.tier_name(level),
        }
    }

    fn unsettled(&self, level: usize) -> Size {
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
