//! [`Raster`]: an image in memory.

use tollgate_media::image::PixelSize;

/// Why an image cannot be decoded, scaled or encoded, as a sentence for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RasterError(pub String);

/// An image in memory: 8 bits per channel, straight (not premultiplied) alpha.
#[derive(Clone)]
pub struct Raster {
    /// Width and height in pixels.
    pub size: PixelSize,
    /// Red, green, blue and alpha of each pixel, row by row: `width * height * 4` bytes.
    pub rgba: Vec<u8>,
}

impl Raster {
    // Loops over slices by index: in the tests' builds, which inline little, iterators take most of an image's time.
    pub(crate) fn is_opaque(&self) -> bool {
        let bytes = self.rgba.as_slice();
        let mut alpha = 3;
        while alpha < bytes.len() {
            if bytes[alpha] != 255 {
                return false;
            }
            alpha += 4;
        }
        true
    }

    /// The same pixels without alpha, in the same memory: a second buffer for a 4096x4096 image
    /// would be 48 MB. Transparent parts become white.
    pub(crate) fn into_rgb(self) -> Vec<u8> {
        let opaque = self.is_opaque();
        let mut bytes = self.rgba;
        let pixels = bytes.as_mut_slice();
        let (mut from, mut to) = (0, 0);
        while from + 3 < pixels.len() {
            let alpha = pixels[from + 3];
            let mut channel = 0;
            while channel < 3 {
                let value = pixels[from + channel];
                pixels[to + channel] = match opaque {
                    true => value,
                    false => on_white(value, alpha),
                };
                channel += 1;
            }
            from += 4;
            to += 3;
        }
        bytes.truncate(to);
        bytes
    }
}

fn on_white(value: u8, alpha: u8) -> u8 {
    let (value, alpha) = (u16::from(value), u16::from(alpha));
    // At most 255 * 255 + 127, which fits; the quotient is at most 255.
    ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8
}
