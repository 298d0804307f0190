//! The sizes that OpenAI's models support, and the supported size nearest to any other.

use tollgate_media::image::PixelSize;

use super::models::GptModel;

/// Sizes of the older image models.
const STANDARD: &[PixelSize] = &[
    PixelSize::new(1024, 1024),
    PixelSize::new(1536, 1024),
    PixelSize::new(1024, 1536),
];
/// Sizes of Sora; the last two only of `sora-2-pro`.
const SORA: &[PixelSize] = &[
    PixelSize::new(1280, 720),
    PixelSize::new(720, 1280),
    PixelSize::new(1792, 1024),
    PixelSize::new(1024, 1792),
];

/// Sizes of the families' tables that the newer models reject, and the sizes to request instead.
const REMAPPED: &[(PixelSize, PixelSize)] = &[
    (PixelSize::new(1881, 836), PixelSize::new(1536, 512)),
    (PixelSize::new(887, 1774), PixelSize::new(512, 1536)),
    (PixelSize::new(1024, 1365), PixelSize::new(1024, 1360)),
    (PixelSize::new(1365, 1024), PixelSize::new(1360, 1024)),
    (PixelSize::new(2560, 3840), PixelSize::new(2336, 3520)),
    (PixelSize::new(3840, 2560), PixelSize::new(3520, 2336)),
    (PixelSize::new(3840, 2880), PixelSize::new(3312, 2480)),
];

/// Both sides of a free size are multiples of this.
const STEP: u32 = 16;
/// The longest side of a free size.
const LONGEST: u32 = 3_840;
/// The greatest ratio of a free size's sides.
const WIDEST: u32 = 3;
/// The allowed number of pixels of a free size.
const PIXELS: std::ops::RangeInclusive<u64> = 655_360..=8_294_400;

/// The reason for an adjustment of the size.
pub(super) const WHY: &str =
    "the provider does not support this size: the nearest that it supports";

/// The size to request from an image model.
pub(super) fn image_size(model: GptModel, size: PixelSize) -> PixelSize {
    if !model.any_size {
        nearest(STANDARD.iter().copied(), size)
    } else if is_free(size) {
        size
    } else if let Some((_, instead)) = REMAPPED.iter().find(|(from, _)| *from == size) {
        *instead
    } else {
        let sides = || (STEP..=LONGEST).step_by(STEP as usize);
        let grid = sides().flat_map(|width| sides().map(move |h| PixelSize::new(width, h)));
        nearest(grid.filter(|size| is_free(*size)), size)
    }
}

/// The size to request from Sora. `id` is the model's id.
pub(super) fn video_size(id: &str, size: PixelSize) -> PixelSize {
    let known = if id.contains("-pro") {
        SORA
    } else {
        &SORA[..2]
    };
    nearest(known.iter().copied(), size)
}

/// Whether the newer image models support that size.
fn is_free(size: PixelSize) -> bool {
    let PixelSize { width, height } = size;
    let (short, long) = (width.min(height), width.max(height));
    width.is_multiple_of(STEP)
        && height.is_multiple_of(STEP)
        && long <= LONGEST
        && long <= short * WIDEST
        && PIXELS.contains(&size.pixels())
}

/// The size whose ratio and area are nearest by factor. The ratio has more weight, because a smaller image has the same content.
fn nearest(sizes: impl Iterator<Item = PixelSize>, wanted: PixelSize) -> PixelSize {
    let ratio = |size: PixelSize| f64::from(size.width.max(1)) / f64::from(size.height.max(1));
    let area = |size: PixelSize| size.pixels().max(1) as f64;
    let off = |size: PixelSize| {
        let of_ratio = (ratio(size) / ratio(wanted)).ln();
        let of_area = (area(size) / area(wanted)).ln();
        100.0 * of_ratio.powi(2) + of_area.powi(2)
    };
    sizes
        .min_by(|a, b| off(*a).total_cmp(&off(*b)))
        .unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use tollgate_media::image::families;
    use tollgate_media::image::size::Sizes;

    use super::*;
    use crate::test_tables::rows;

    const OLD: GptModel = GptModel {
        any_size: false,
        fine_quality: false,
    };
    const NEW: GptModel = GptModel {
        any_size: true,
        fine_quality: true,
    };

    fn size(text: &str) -> PixelSize {
        let (width, height) = text.split_once('x').unwrap();
        PixelSize::new(width.parse().unwrap(), height.parse().unwrap())
    }

    #[test]
    fn sizes_become_the_nearest_legal_ones() {
        for (takes_any, requested, expected) in rows::<(bool, String, String)>("gpt_sizes") {
            let model = if takes_any { NEW } else { OLD };
            assert_eq!(
                image_size(model, size(&requested)),
                size(&expected),
                "{requested}"
            );
        }
        for (id, requested, expected) in [
            ("sora-2", "1280x720", "1280x720"),
            ("sora-2", "1080x1920", "720x1280"),
            ("sora-2", "1792x1024", "1280x720"),
            ("sora-2-pro", "1920x1080", "1792x1024"),
        ] {
            assert_eq!(
                video_size(id, size(requested)),
                size(expected),
                "{id} {requested}"
            );
        }
    }

    #[test]
    fn every_size_of_the_families_is_legal_or_remapped() {
        for name in ["gpt-image-2", "gpt-image-1", "gpt-image-2.5-async"] {
            let all: Vec<PixelSize> = match &families::by_name(name).unwrap().sizes {
                Sizes::Ratios(sizes) => {
                    let rows = sizes.rows.iter().flat_map(|row| row.pixels);
                    let also = sizes.extra_sizes.iter().map(|(size, _)| *size);
                    rows.map(|(w, h)| PixelSize::new(*w, *h))
                        .chain(also)
                        .collect()
                }
                Sizes::Listed(sizes) => {
                    let cells = sizes.groups.iter().flat_map(|(_, cells)| cells.iter());
                    cells.map(|(w, h)| PixelSize::new(*w, *h)).collect()
                }
                Sizes::PixelRange(_) => panic!("{name} has a table"),
            };
            assert!(!all.is_empty());
            for requested in all {
                let remapped = REMAPPED.iter().any(|(from, _)| *from == requested);
                assert_eq!(is_free(requested), !remapped, "{name} {requested}");
                assert!(is_free(image_size(NEW, requested)), "{name} {requested}");
            }
        }
    }
}
