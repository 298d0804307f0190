//! Parses and computes sizes in pixels.

/// Width and height of `2048x1024`, or with another separator. `None` if they are not two positive whole numbers.
pub(crate) fn parse(text: &str, separator: char) -> Option<(u32, u32)> {
    let (width, height) = text.split_once(separator)?;
    let number = |text: &str| {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|n| plain && *n > 0)
    };
    Some((number(width)?, number(height)?))
}

/// The quotient of width and height of a ratio such as `16:9`. `None` if they are not two positive numbers.
pub(crate) fn ratio(text: &str) -> Option<f64> {
    let (width, height) = text.split_once(':')?;
    let (width, height) = (width.parse::<f64>().ok()?, height.parse::<f64>().ok()?);
    (width > 0.0 && height > 0.0).then_some(width / height)
}

/// The number of pixels.
pub(crate) fn area(size: (u32, u32)) -> u64 {
    u64::from(size.0) * u64::from(size.1)
}

/// The longer side divided by the shorter one.
pub(crate) fn stretch(size: (u32, u32)) -> f64 {
    let (width, height) = (f64::from(size.0), f64::from(size.1));
    width.max(height) / width.min(height)
}

/// A size of this ratio whose shorter side is `short`; both are even.
pub(crate) fn with_short_side(ratio: f64, short: u32) -> (u32, u32) {
    let long = |by: f64| even(f64::from(short) * by, 2);
    if ratio >= 1.0 {
        (long(ratio), short)
    } else {
        (short, long(1.0 / ratio))
    }
}

/// A size of this ratio of about as many pixels as a square of `side`; both are multiples of 16.
pub(crate) fn with_area(ratio: f64, side: u32) -> (u32, u32) {
    let root = ratio.sqrt();
    let side = f64::from(side);
    (even(side * root, 16), even(side / root, 16))
}

fn even(side: f64, step: u32) -> u32 {
    let steps = (side / f64::from(step)).round() as u32;
    steps.max(1) * step
}
