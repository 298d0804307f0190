//! Aspect ratios such as `16:9`, for providers that accept ratios instead of pixels.

use tollgate_media::image::PixelSize;

/// `requested` if it is among `known`, else the ratio of `known` nearest to `size` (by logarithm).
pub(crate) fn nearest_ratio<'a>(
    requested: Option<&str>,
    size: Option<PixelSize>,
    known: &[&'a str],
) -> Option<&'a str> {
    let named = known.iter().find(|ratio| Some(**ratio) == requested);
    if let Some(named) = named {
        return Some(named);
    }
    let size = size?;
    let wanted = (f64::from(size.width) / f64::from(size.height)).ln();
    let distance =
        |ratio: &str| parse_ratio(ratio).map_or(f64::MAX, |value| (value.ln() - wanted).abs());
    let nearest = known
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)));
    nearest.copied()
}

/// The quotient of a ratio. `None` if it is not of the form `16:9`.
pub(super) fn parse_ratio(ratio: &str) -> Option<f64> {
    let (width, height) = ratio.split_once(':')?;
    Some(width.parse::<f64>().ok()? / height.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_ratio_is_kept_and_others_become_the_nearest() {
        const KNOWN: &[&str] = &["1:1", "16:9", "9:16"];
        for (requested, size, expected) in [
            (Some("16:9"), (100, 100), "16:9"),
            (Some("21:9"), (2100, 900), "16:9"),
            (None, (900, 1000), "1:1"),
            (None, (600, 1000), "9:16"),
        ] {
            let size = Some(PixelSize::new(size.0, size.1));
            assert_eq!(
                nearest_ratio(requested, size, KNOWN),
                Some(expected),
                "{requested:?} {size:?}"
            );
        }
        assert_eq!(nearest_ratio(Some("2:1"), None, KNOWN), None);
    }
}
