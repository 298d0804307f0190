//! Which models there are, and what their names say about them. An endpoint `ep-…` is taken for
//! the model that its name holds.

use std::ops::RangeInclusive;

/// Models of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seedream {
    V3,
    V4,
    V45,
    V5,
}

impl Seedream {
    pub(super) fn named(model: &str) -> Option<Self> {
        let holds = |part: &str| model.contains(part) && is_known(model);
        match () {
            () if holds("seedream-5-0") => Some(Self::V5),
            () if holds("seedream-4-5") => Some(Self::V45),
            () if holds("seedream-4-0") => Some(Self::V4),
            () if holds("seedream-3-0") => Some(Self::V3),
            () => None,
        }
    }

    /// The words for sizes, each with the side of a square.
    pub(super) fn tiers(self) -> &'static [(&'static str, u32)] {
        match self {
            Self::V3 => &[],
            Self::V4 => &[("1K", 1024), ("2K", 2048), ("4K", 4096)],
            Self::V45 => &[("2K", 2048), ("4K", 4096)],
            Self::V5 => &[("2K", 2048), ("3K", 3072), ("4K", 4096)],
        }
    }

    /// How many pixels a picture may have.
    pub(super) fn pixels(self) -> RangeInclusive<u64> {
        match self {
            Self::V3 => 262_144..=4_194_304,
            Self::V4 => 921_600..=16_777_216,
            Self::V45 | Self::V5 => 3_686_400..=16_777_216,
        }
    }
}

/// Models of films.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seedance {
    Pro,
    ProFast,
    /// Of text alone.
    LiteText,
    /// Of pictures alone.
    LitePicture,
    Pro15,
    V2,
    V2Fast,
}

impl Seedance {
    pub(super) fn named(model: &str) -> Option<Self> {
        let holds = |part: &str| model.contains(part) && is_known(model);
        match () {
            () if holds("seedance-2-0-fast") => Some(Self::V2Fast),
            () if holds("seedance-2-0") => Some(Self::V2),
            () if holds("seedance-1-5-pro") => Some(Self::Pro15),
            () if holds("seedance-1-0-lite-t2v") => Some(Self::LiteText),
            () if holds("seedance-1-0-lite-i2v") => Some(Self::LitePicture),
            () if holds("seedance-1-0-pro-fast") => Some(Self::ProFast),
            () if holds("seedance-1-0-pro") => Some(Self::Pro),
            () => None,
        }
    }

    /// Generation 1.0.
    pub(super) fn is_first(self) -> bool {
        matches!(
            self,
            Self::Pro | Self::ProFast | Self::LiteText | Self::LitePicture
        )
    }

    /// Generation 2.0.
    pub(super) fn is_second(self) -> bool {
        matches!(self, Self::V2 | Self::V2Fast)
    }

    /// How many seconds a film may have.
    pub(super) fn seconds(self) -> RangeInclusive<i64> {
        match self {
            Self::Pro15 => 4..=12,
            Self::V2 | Self::V2Fast => 4..=15,
            _ => 2..=12,
        }
    }

    /// How many pictures may be references.
    pub(super) fn references(self) -> usize {
        match self {
            Self::LitePicture => 4,
            Self::V2 | Self::V2Fast => 9,
            _ => 0,
        }
    }

    /// Whether it takes a last frame too.
    pub(super) fn takes_last_frame(self) -> bool {
        !matches!(self, Self::ProFast | Self::LiteText)
    }
}

/// Names that begin as those of a vendor or of an endpoint do.
fn is_known(model: &str) -> bool {
    [
        "doubao-",
        "dreamina-",
        "dola-",
        "seedream-",
        "seedance-",
        "ep-",
    ]
    .iter()
    .any(|begin| model.starts_with(begin))
}
