//! [`FrameSizes`]: how `size`, `aspect_ratio` and `resolution` of a video request select a pixel size.

use serde_json::{Value, json};
use tollgate_core::{Adjustment, ApiError};

use super::job::VideoSize;
use crate::fields::draft::Draft;
use crate::fields::spec::SizeSpec;
use crate::image::format::PixelSize;
use crate::image::size::Row;
use crate::image::size::ratio_table::parse_ratio;
use crate::text::{invalid_value, show_name};

/// The sizes of a family's videos: a table by ratio and tier.
pub struct FrameSizes {
    /// The values of `resolution`, smallest first.
    pub tiers: &'static [&'static str],
    /// The index of the default tier.
    pub default_tier: usize,
    /// The values of `aspect_ratio`, each with its pixel size at every tier.
    pub rows: &'static [Row],
    /// The ratio of a request without one, unless it follows the first frame.
    pub default_ratio: &'static str,
    /// Whether the ratio follows the first frame.
    pub follow: FollowFirstFrame,
}

/// When the ratio of the table nearest to that of the first frame is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowFirstFrame {
    /// Never.
    Never,
    /// If there is a first frame and the request sets no ratio.
    ByDefault,
    /// As with [`Self::ByDefault`], and also if `aspect_ratio` has this value.
    ByValue(&'static str),
}

/// The field that selects ratio and tier together.
const SIZE: &str = "size";
/// A size whose ratio is within this factor of a listed ratio counts as that ratio: 854x480 is 16:9.
const TOLERANCE: f64 = 1.01;
/// The maximum number of sizes that an error lists individually.
const MAX_LISTED: usize = 6;

/// A cell of the table: a ratio at a tier.
#[derive(Clone, Copy)]
struct Cell {
    row: &'static Row,
    level: usize,
}

/// The ratio and tier that the client requests.
struct RequestedFrame {
    /// A value of `aspect_ratio`.
    ratio: Option<FromField<&'static str>>,
    /// The index of a tier.
    tier: Option<FromField<usize>>,
}

/// A value with the field that contains it.
#[derive(Clone, Copy)]
struct FromField<T> {
    field: &'static str,
    value: T,
}

impl<T> FromField<T> {
    fn new(field: &'static str, value: T) -> Self {
        Self { field, value }
    }

    fn from_option(field: &'static str, value: Option<T>) -> Option<Self> {
        value.map(|value| Self::new(field, value))
    }
}

impl FrameSizes {
    /// The size of a request, and the `size` that its price depends on. `has_first_frame`: whether an image is the first frame, so that the ratio
    /// may follow it.
    ///
    /// # Errors
    /// 400 if `size` is not allowed or contradicts the other fields.
    pub(super) fn resolve(
        &self,
        draft: &mut Draft<'_>,
        has_first_frame: bool,
    ) -> Result<(VideoSize, String), ApiError> {
        let size = draft.text("size").map(str::to_owned);
        let requested = self.requested_frame(draft, size.as_deref())?;
        let ratio = requested.ratio.map(|requested| requested.value);
        let level = requested
            .tier
            .map_or(self.default_tier, |requested| requested.value);
        let follows = match (ratio, self.follow) {
            (None, FollowFirstFrame::ByDefault | FollowFirstFrame::ByValue(_)) => has_first_frame,
            (Some(ratio), FollowFirstFrame::ByValue(word)) if ratio == word => {
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
        if let (Some(sent), Some(pixels)) = (&size, pixels) {
            report_size(draft, sent, pixels, row.ratio, self.tiers[level]);
        }
        let is_overridden = [
            requested.ratio.map(|ratio| ratio.field),
            requested.tier.map(|tier| tier.field),
        ]
        .contains(&Some("metadata"));
        let price_size = match (size.as_deref().and_then(PixelSize::parse), ratio) {
            (Some(requested), _) => match pixels.filter(|_| is_overridden) {
                Some(used) => used.to_string(),
                None => requested.to_string(),
            },
            (None, Some(ratio)) => ratio.to_owned(),
            (None, None) if follows => "auto".to_owned(),
            (None, None) => self.default_ratio.to_owned(),
        };
        let frame = VideoSize {
            pixels,
            ratio: (!follows).then(|| row.ratio.to_owned()),
            resolution: Some(self.tiers[level].to_owned()),
        };
        Ok((frame, price_size))
    }

    /// Fills in `size` for a first frame of `first` pixels: the row whose ratio is nearest on a logarithmic scale.
    pub(super) fn fill_from_first_frame(&self, size: &mut VideoSize, first: PixelSize) {
        let tier = size.resolution.as_deref();
        let level = self.tiers.iter().position(|name| Some(*name) == tier);
        let level = level.unwrap_or(self.default_tier);
        let wanted = first.aspect_ratio().ln();
        let distance =
            |row: &Row| parse_ratio(row.ratio).map_or(f64::MAX, |r| (r.ln() - wanted).abs());
        let nearest = self
            .rows
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(row) = nearest {
            size.pixels = Some(self.pixels(Cell { row, level }));
        }
    }

    /// The requested ratio and tier, from whichever fields have them. `size` must not contradict the other two;
    /// `metadata` takes precedence over all three, with an adjustment for each value that it replaces.
    fn requested_frame(
        &self,
        draft: &mut Draft<'_>,
        size: Option<&str>,
    ) -> Result<RequestedFrame, ApiError> {
        let mut requested = RequestedFrame {
            ratio: FromField::from_option(
                "aspect_ratio",
                self.find_ratio(draft.text("aspect_ratio")),
            ),
            tier: FromField::from_option("resolution", self.find_tier(draft.text("resolution"))),
        };
        if let Some(size) = size {
            let cell = self.find_cell(size)?;
            let own = cell.row.ratio;
            match requested
                .ratio
                .get_or_insert(FromField::new(SIZE, own))
                .value
            {
                same if same == own => {}
                other => return Err(contradiction_error(size, own, "aspect_ratio", other)),
            }
            let own = self.tiers[cell.level];
            let tier = requested
                .tier
                .get_or_insert(FromField::new(SIZE, cell.level));
            match self.tiers[tier.value] {
                same if same == own => {}
                other => return Err(contradiction_error(size, own, "resolution", other)),
            }
        }
        let member = |draft: &Draft<'_>, name| {
            let value = draft.member("metadata", name).and_then(Value::as_str);
            value.map(str::to_owned)
        };
        if let Some(wins) = self.find_ratio(member(draft, "aspectRatio").as_deref()) {
            report_override(draft, requested.ratio, &wins, wins, "aspectRatio");
            requested.ratio = FromField::from_option("metadata", Some(wins));
        }
        if let Some(wins) = self.find_tier(member(draft, "resolution").as_deref()) {
            let used = self.tiers[wins];
            report_override(draft, requested.tier, &wins, used, "resolution");
            requested.tier = FromField::from_option("metadata", Some(wins));
        }
        Ok(requested)
    }

    fn find_ratio(&self, sent: Option<&str>) -> Option<&'static str> {
        self.ratios().into_iter().find(|ratio| Some(*ratio) == sent)
    }

    fn find_tier(&self, sent: Option<&str>) -> Option<usize> {
        let sent = sent?;
        self.tiers.iter().position(|tier| *tier == sent)
    }

    /// The cell for a pixel size: the cell with exactly that size, otherwise the one with its ratio and nominal lines.
    ///
    /// # Errors
    /// 400 if there is no such cell.
    fn find_cell(&self, size: &str) -> Result<Cell, ApiError> {
        let found = PixelSize::parse(size).and_then(|sent| {
            let exact = self.cells().find(|cell| self.pixels(*cell) == sent);
            exact.or_else(|| {
                self.cells()
                    .find(|cell| self.matches_nominally(*cell, sent))
            })
        });
        found.ok_or_else(|| {
            invalid_value(
                "size",
                &self.describe_allowed(size),
                &show_name(size).into(),
            )
        })
    }

    /// Whether `sent` has approximately the ratio of the cell, and the number of lines of its tier.
    fn matches_nominally(&self, cell: Cell, sent: PixelSize) -> bool {
        let Some(ratio) = parse_ratio(cell.row.ratio) else {
            return false;
        };
        let off = sent.aspect_ratio() / ratio;
        let lines = sent.width.min(sent.height);
        lines_of(self.tiers[cell.level]) == Some(lines) && off.max(1.0 / off) <= TOLERANCE
    }

    /// The allowed values of `size`, for an error about `sent`.
    fn describe_allowed(&self, sent: &str) -> String {
        let hint = if parse_ratio(sent).is_some() {
            " (a ratio goes in `aspect_ratio`)"
        } else {
            ""
        };
        let sizes: Vec<String> = self
            .cells()
            .map(|cell| self.pixels(cell).to_string())
            .collect();
        if sizes.len() <= MAX_LISTED {
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

    /// The row of a ratio in the declaration; a test checks that the row exists.
    fn row(&self, ratio: &str) -> &'static Row {
        let named = self.rows.iter().find(|row| row.ratio == ratio);
        named.unwrap_or(&self.rows[0])
    }
}

impl SizeSpec for FrameSizes {
    fn tiers(&self) -> (&'static [&'static str], usize) {
        (self.tiers, self.default_tier)
    }

    fn ratios(&self) -> Vec<&'static str> {
        let word = match self.follow {
            FollowFirstFrame::ByValue(word) => Some(word),
            FollowFirstFrame::Never | FollowFirstFrame::ByDefault => None,
        };
        self.rows.iter().map(|row| row.ratio).chain(word).collect()
    }

    fn default(&self) -> Option<String> {
        let row = self.row(self.default_ratio);
        let level = self.default_tier;
        let fixed = self.follow == FollowFirstFrame::Never;
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

/// Adds an adjustment if the size `sent` by the client differs from the size `used`.
fn report_size(draft: &mut Draft<'_>, sent: &str, used: PixelSize, ratio: &str, tier: &str) {
    if PixelSize::parse(sent) == Some(used) {
        return;
    }
    let used = used.to_string();
    let metadata = ["aspectRatio", "resolution"].map(|name| draft.member("metadata", name));
    let overruled = metadata.iter().any(Option::is_some);
    let by = if overruled {
        " that `metadata` requests"
    } else {
        ""
    };
    let why = format!("the model's {ratio} frame at {tier}{by}");
    draft
        .adjustments
        .push(Adjustment::new(SIZE, sent, used, why));
}

/// Adds an adjustment if `metadata` replaces a different value of another field. `size` is reported by [`report_size`],
/// because it depends on both ratio and tier.
fn report_override<T: PartialEq>(
    draft: &mut Draft<'_>,
    requested: Option<FromField<T>>,
    wins: &T,
    used: &str,
    member: &'static str,
) {
    let sent = requested.filter(|requested| requested.field != SIZE && requested.value != *wins);
    if let Some(FromField { field, .. }) = sent {
        let sent = draft.value(field).cloned().unwrap_or_default();
        let why = format!("`metadata.{member}` takes precedence");
        draft
            .adjustments
            .push(Adjustment::new(field, sent, used, why));
    }
}

/// The number of lines of a tier such as `720p`; 2160 for `4k`. `None` if the tier has another form.
fn lines_of(tier: &str) -> Option<u32> {
    match tier {
        "4k" => Some(2160),
        _ => tier.strip_suffix('p')?.parse().ok(),
    }
}

fn contradiction_error(size: &str, own: &str, field: &str, other: &str) -> ApiError {
    ApiError::invalid(format!(
        "`size` {} is {own}, but `{field}` is {other}: leave one out",
        show_name(size)
    ))
}
