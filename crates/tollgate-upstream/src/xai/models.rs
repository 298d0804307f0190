//! xAI's ids of the catalogue's models, and the aspect ratios and resolutions that they support.

use tollgate_media::image::PixelSize;

/// The catalogue's ids and xAI's, as of 20 Nov 2026. A configured `upstream` of an entry overrides them. `/tts` has no models.
pub(super) const IDS: &[(&str, &str)] = &[
    ("grok-imagine-1.0-partner", "grok-imagine-image"),
    ("grok-imagine-1.0-edit-partner", "grok-imagine-image"),
];

/// The aspect ratios of images that xAI supports.
pub(super) const IMAGE_RATIOS: &[&str] = &[
    "1:1", "3:4", "4:3", "9:16", "16:9", "2:3", "3:2", "9:19.5", "19.5:9", "9:20", "20:9", "1:2",
    "2:1",
];
/// The aspect ratios of videos that xAI supports.
pub(super) const VIDEO_RATIOS: &[&str] = &["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3"];

/// An image with more pixels than this is nearer to the 2k tier than to the 1k one: two megapixels, half-way by factor.
const LARGE: u64 = 2 * 1024 * 1024;

/// The one of `ratios` to request: `named` if it is one of them, else the nearest to `size`.
pub(super) fn ratio(ratios: &[&'static str], named: Option<&str>, size: PixelSize) -> &'static str {
    if let Some(same) = ratios.iter().find(|ratio| Some(**ratio) == named) {
        return same;
    }
    let wanted = f64::from(size.width.max(1)) / f64::from(size.height.max(1));
    let off = |ratio: &str| (value(ratio).ln() - wanted.ln()).abs();
    let nearest = ratios.iter().min_by(|a, b| off(a).total_cmp(&off(b)));
    nearest.copied().unwrap_or("1:1")
}

/// The tier to request for an image; `None` for the default tier.
pub(super) fn tier_of_image(size: PixelSize) -> Option<&'static str> {
    (size.pixels() > LARGE).then_some("2k")
}

/// The tier of a video: the named one if xAI has it, otherwise the one nearest to `size`. `few`: only the lower two tiers are supported.
pub(super) fn tier_of_video(named: Option<&str>, size: PixelSize, few: bool) -> &'static str {
    let tiers = [("480p", 480), ("720p", 720), ("1080p", 1080)];
    let tiers = &tiers[..if few { 2 } else { 3 }];
    let is_named = |tier: &str| named.is_some_and(|named| named.eq_ignore_ascii_case(tier));
    let same = tiers.iter().find(|(tier, _)| is_named(tier));
    let short = size.width.min(size.height);
    let nearest = || tiers.iter().min_by_key(|(_, side)| short.abs_diff(*side));
    same.or_else(nearest).map_or("720p", |(tier, _)| tier)
}

fn value(ratio: &str) -> f64 {
    let (width, height) = ratio.split_once(':').unwrap_or(("1", "1"));
    let part = |text: &str| text.parse::<f64>().unwrap_or(1.0);
    part(width) / part(height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supported_ratio_is_kept_and_others_become_the_nearest() {
        for (ratios, named, (width, height), expected) in [
            (IMAGE_RATIOS, Some("16:9"), (1280, 720), "16:9"),
            (IMAGE_RATIOS, Some("21:9"), (2016, 864), "20:9"),
            (IMAGE_RATIOS, Some("9:21"), (864, 2016), "9:20"),
            (IMAGE_RATIOS, Some("auto"), (1024, 1024), "1:1"),
            (IMAGE_RATIOS, None, (864, 1152), "3:4"),
            (VIDEO_RATIOS, Some("21:9"), (1680, 720), "16:9"),
            (VIDEO_RATIOS, None, (720, 1280), "9:16"),
            (VIDEO_RATIOS, None, (720, 720), "1:1"),
        ] {
            let size = PixelSize::new(width, height);
            assert_eq!(ratio(ratios, named, size), expected, "{named:?} {size}");
        }
    }

    #[test]
    fn a_supported_tier_is_kept_and_others_become_the_nearest() {
        assert_eq!(tier_of_image(PixelSize::new(1280, 720)), None);
        assert_eq!(tier_of_image(PixelSize::new(2048, 2048)), Some("2k"));
        for (named, (width, height), few, expected) in [
            (Some("480p"), (854, 480), false, "480p"),
            (Some("1080P"), (1920, 1080), false, "1080p"),
            (Some("1080p"), (1920, 1080), true, "720p"),
            (Some("4k"), (3840, 2160), false, "1080p"),
            (None, (720, 1280), false, "720p"),
            (None, (640, 360), false, "480p"),
        ] {
            let size = PixelSize::new(width, height);
            assert_eq!(
                tier_of_video(named, size, few),
                expected,
                "{named:?} {size}"
            );
        }
    }
}
