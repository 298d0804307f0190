//! Frames: how `size`, `aspect_ratio` and `resolution` become pixels.

use serde_json::{Value, json};
use tollgate_core::{Adjustment, ApiError};

use super::job::VideoSize;
use crate::form::values::wrong;
use crate::form::{Draft, FormSizes};
use crate::image::PixelSize;
use crate::image::size::{Row, parse_pixels, ratio_of, shape_of};
use crate::text;

/// The frames that a family makes: a table of ratios by tiers.
pub struct FrameSizes {
    /// The tiers that `resolution` takes, smallest first.
    pub tiers: &'static [&'static str],
    /// Index of the default one.
    pub default_tier: usize,
    /// The ratios that `aspect_ratio` takes, each with its pixels at every tier.
    pub rows: &'static [Row],
    /// The ratio of a request that names none, unless it follows the first frame.
    pub default_ratio: &'static str,
    /// Whether the ratio follows the first frame.
    pub follow: Follow,
}

/// When the ratio is the one of the table nearest to the first frame's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Never.
    Never,
    /// When there is a first frame and no ratio is asked for.
    Unasked,
    /// Then, and when `aspect_ratio` is this word.
    Named(&'static str),
}

/// The field that names ratio and tier at once.
const SIZE: &str = "size";
/// Sizes within this factor of a ratio are meant as that ratio: 854x480 is 16:9.
const TOLERANCE: f64 = 1.01;
/// Up to this many sizes are listed one by one in an error.
const LISTED: usize = 6;

/// A cell of the table.
#[derive(Clone, Copy)]
struct Cell {
    row: &'static Row,
    level: usize,
}

/// What the client wants.
struct Wishes {
    /// A value of `aspect_ratio`.
    ratio: Option<Wish<&'static str>>,
    /// A tier's index.
    tier: Option<Wish<usize>>,
}

/// A value that the client wants, and which field says so.
#[derive(Clone, Copy)]
struct Wish<T> {
    field: &'static str,
    value: T,
}

impl<T> Wish<T> {
    fn new(field: &'static str, value: T) -> Self {
        Self { field, value }
    }

    fn of(field: &'static str, value: Option<T>) -> Option<Self> {
        value.map(|value| Self::new(field, value))
    }
}

impl FrameSizes {
    /// The frame that a request asks for, and how it asks. `has_first_frame`: whether there is one to follow.
    pub(super) fn choose(
        &self,
        draft: &mut Draft<'_>,
        has_first_frame: bool,
    ) -> Result<(VideoSize, String), ApiError> {
        let size = draft.text("size").map(str::to_owned);
        let wishes = self.wishes(draft, size.as_deref())?;
        let ratio = wishes.ratio.map(|wish| wish.value);
        let level = wishes.tier.map_or(self.default_tier, |wish| wish.value);
        let follows = match (ratio, self.follow) {
            (None, Follow::Unasked | Follow::Named(_)) => has_first_frame,
            (Some(ratio), Follow::Named(word)) if ratio == word => {
                if !has_first_frame {
                    return Err(ApiError::invalid(format!(
                        "`aspect_ratio` \"{word}\" follows the first frame and needs an image that is one, got none"
                    )));
                }
                true
            }
            _ => false,
        };
        let row = self.row(ratio.unwrap_or(self.default_ratio));
        let pixels = (!follows).then(|| self.pixels(Cell { row, level }));
        if let (Some(asked), Some(pixels)) = (&size, pixels) {
            note_size(draft, asked, pixels, row.ratio, self.tiers[level]);
        }
        let asked = size.unwrap_or_else(|| match ratio {
            Some(ratio) => ratio.to_owned(),
            None if follows => "auto".to_owned(),
            None => self.default_ratio.to_owned(),
        });
        let frame = VideoSize {
            pixels,
            ratio: (!follows).then(|| row.ratio.to_owned()),
            resolution: Some(self.tiers[level].to_owned()),
        };
        Ok((frame, asked))
    }

    /// Fills in `size` after a first frame of `first` pixels: the nearest ratio, by factors.
    pub(super) fn follow(&self, size: &mut VideoSize, first: PixelSize) {
        let tier = size.resolution.as_deref();
        let level = self.tiers.iter().position(|name| Some(*name) == tier);
        let level = level.unwrap_or(self.default_tier);
        let wanted = shape_of(first).ln();
        let distance =
            |row: &Row| ratio_of(row.ratio).map_or(f64::MAX, |r| (r.ln() - wanted).abs());
        let nearest = self
            .rows
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(row) = nearest {
            size.pixels = Some(self.pixels(Cell { row, level }));
        }
    }

    /// What is wanted, by whichever fields. `size` must not contradict the other two; what stands in `metadata` wins
    /// over all three, with a word on what it changed.
    fn wishes(&self, draft: &mut Draft<'_>, size: Option<&str>) -> Result<Wishes, ApiError> {
        let mut wishes = Wishes {
            ratio: Wish::of("aspect_ratio", self.asked_ratio(draft.text("aspect_ratio"))),
            tier: Wish::of("resolution", self.asked_tier(draft.text("resolution"))),
        };
        if let Some(size) = size {
            let cell = self.cell(size)?;
            let own = cell.row.ratio;
            match wishes.ratio.get_or_insert(Wish::new(SIZE, own)).value {
                same if same == own => {}
                other => return Err(contradiction(size, own, "aspect_ratio", other)),
            }
            let own = self.tiers[cell.level];
            let tier = wishes.tier.get_or_insert(Wish::new(SIZE, cell.level));
            match self.tiers[tier.value] {
                same if same == own => {}
                other => return Err(contradiction(size, own, "resolution", other)),
            }
        }
        let member = |draft: &Draft<'_>, name| {
            let value = draft.member("metadata", name).and_then(Value::as_str);
            value.map(str::to_owned)
        };
        if let Some(wins) = self.asked_ratio(member(draft, "aspectRatio").as_deref()) {
            overrule(draft, wishes.ratio, &wins, wins, "aspectRatio");
            wishes.ratio = Wish::of("metadata", Some(wins));
        }
        if let Some(wins) = self.asked_tier(member(draft, "resolution").as_deref()) {
            let used = self.tiers[wins];
            overrule(draft, wishes.tier, &wins, used, "resolution");
            wishes.tier = Wish::of("metadata", Some(wins));
        }
        Ok(wishes)
    }

    fn asked_ratio(&self, asked: Option<&str>) -> Option<&'static str> {
        self.ratios()
            .into_iter()
            .find(|ratio| Some(*ratio) == asked)
    }

    fn asked_tier(&self, asked: Option<&str>) -> Option<usize> {
        let asked = asked?;
        self.tiers.iter().position(|tier| *tier == asked)
    }

    /// The cell that a pixel size means: the one of just that size, else the one whose ratio and nominal lines it has.
    fn cell(&self, size: &str) -> Result<Cell, ApiError> {
        let found = parse_pixels(size, &['x', '*']).and_then(|asked| {
            let exact = self.cells().find(|cell| self.pixels(*cell) == asked);
            exact.or_else(|| self.cells().find(|cell| self.means(*cell, asked)))
        });
        found.ok_or_else(|| wrong("size", &self.wants(size), &text::name(size).into()))
    }

    /// Whether `asked` has the cell's ratio, about, and its tier's number of lines.
    fn means(&self, cell: Cell, asked: PixelSize) -> bool {
        let Some(ratio) = ratio_of(cell.row.ratio) else {
            return false;
        };
        let off = shape_of(asked) / ratio;
        let lines = asked.width.min(asked.height);
        lines_of(self.tiers[cell.level]) == Some(lines) && off.max(1.0 / off) <= TOLERANCE
    }

    /// What `size` may be, for an error about `asked`.
    fn wants(&self, asked: &str) -> String {
        let hint = if ratio_of(asked).is_some() {
            " (a ratio goes in `aspect_ratio`)"
        } else {
            ""
        };
        let sizes: Vec<String> = self
            .cells()
            .map(|cell| self.pixels(cell).to_string())
            .collect();
        if sizes.len() <= LISTED {
            return format!("one of {}{hint}", sizes.join(", "));
        }
        let row = self.row(self.default_ratio);
        let level = self.default_tier;
        let example = self.pixels(Cell { row, level });
        let ratios: Vec<&str> = self.rows.iter().map(|row| row.ratio).collect();
        format!(
            "pixels such as {example}, of the ratios {} at {}{hint}",
            ratios.join(", "),
            self.tiers.join(", "),
        )
    }

    fn cells(&self) -> impl Iterator<Item = Cell> {
        let levels = 0..self.tiers.len();
        self.rows
            .iter()
            .flat_map(move |row| levels.clone().map(move |level| Cell { row, level }))
    }

    fn pixels(&self, cell: Cell) -> PixelSize {
        let (width, height) = cell.row.pixels[cell.level];
        PixelSize::new(width, height)
    }

    /// The row of a ratio that the declaration itself names; the tests see that it is there.
    fn row(&self, ratio: &str) -> &'static Row {
        let named = self.rows.iter().find(|row| row.ratio == ratio);
        named.unwrap_or(&self.rows[0])
    }
}

impl FormSizes for FrameSizes {
    fn tiers(&self) -> (&'static [&'static str], usize) {
        (self.tiers, self.default_tier)
    }

    fn ratios(&self) -> Vec<&'static str> {
        let word = match self.follow {
            Follow::Named(word) => Some(word),
            Follow::Never | Follow::Unasked => None,
        };
        self.rows.iter().map(|row| row.ratio).chain(word).collect()
    }

    fn default(&self) -> Option<String> {
        let row = self.row(self.default_ratio);
        let level = self.default_tier;
        let fixed = self.follow == Follow::Never;
        fixed.then(|| self.pixels(Cell { row, level }).to_string())
    }

    fn schema(&self) -> Value {
        let sizes: Vec<String> = self
            .cells()
            .map(|cell| self.pixels(cell).to_string())
            .collect();
        json!({ "type": "string", "examples": sizes })
    }
}

/// Notes that a film asked for as `asked` is made in `used` pixels, where that is another size.
fn note_size(draft: &mut Draft<'_>, asked: &str, used: PixelSize, ratio: &str, tier: &str) {
    let used = used.to_string();
    if asked.replace('*', "x") == used {
        return;
    }
    let metadata = ["aspectRatio", "resolution"].map(|name| draft.member("metadata", name));
    let overruled = metadata.iter().any(Option::is_some);
    let by = if overruled {
        " that `metadata` asks for"
    } else {
        ""
    };
    let why = format!("the model's {ratio} frame at {tier}{by}");
    draft
        .adjustments
        .push(Adjustment::new(SIZE, asked, used, why));
}

/// Notes that `metadata` overrules what another field wants, where it wants something else. What `size` becomes is
/// only known when both wishes are.
fn overrule<T: PartialEq>(
    draft: &mut Draft<'_>,
    wish: Option<Wish<T>>,
    wins: &T,
    used: &str,
    member: &'static str,
) {
    let asked = wish.filter(|wish| wish.field != SIZE && wish.value != *wins);
    if let Some(Wish { field, .. }) = asked {
        let asked = draft.value(field).cloned().unwrap_or_default();
        let why = format!("`metadata.{member}` wins");
        draft
            .adjustments
            .push(Adjustment::new(field, asked, used, why));
    }
}

/// The lines of a tier such as `720p`; `4k` has 2160.
fn lines_of(tier: &str) -> Option<u32> {
    match tier {
        "4k" => Some(2160),
        _ => tier.strip_suffix('p')?.parse().ok(),
    }
}

fn contradiction(size: &str, own: &str, field: &str, other: &str) -> ApiError {
    ApiError::invalid(format!(
        "`size` {} is {own}, but `{field}` is {other}: leave one out",
        text::name(size)
    ))
}
