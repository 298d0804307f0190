//! Inpainting: the region of an image that a mask selects, and compositing new pixels into it.

use tollgate_media::image::PixelSize;

use tollgate_upstream::raster::Raster;

/// The pixels that a mask selects.
pub(super) struct MaskedRegion {
    size: PixelSize,
    /// One entry per pixel, row by row: true if the pixel is replaced.
    masked: Vec<bool>,
}

/// A rectangle of an image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatchRect {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) size: PixelSize,
}

/// The largest aspect ratio of a bounding rectangle: the landscape needs space in both directions.
const MAX_ASPECT_RATIO: u32 = 8;

impl MaskedRegion {
    /// The region of an image of `size`; `masked` has one entry per pixel, row by row.
    pub(super) fn new(masked: Vec<bool>, size: PixelSize) -> Self {
        Self { size, masked }
    }

    /// The bounding rectangle, widened to an aspect ratio of at most 8:1 as far as the image allows. `None` if no pixel is masked.
    pub(super) fn bounding_rect(&self) -> Option<PatchRect> {
        let width = self.size.width as usize;
        let (mut left, mut right, mut top, mut bottom) = (usize::MAX, 0, usize::MAX, 0);
        for (y, row) in self.masked.chunks_exact(width).enumerate() {
            let Some(first) = row.iter().position(|masked| *masked) else {
                continue;
            };
            let last = row.iter().rposition(|masked| *masked).unwrap_or(first);
            left = left.min(first);
            right = right.max(last);
            top = top.min(y);
            bottom = y;
        }
        if left > right {
            return None;
        }
        let (wide, high) = ((right - left + 1) as u32, (bottom - top + 1) as u32);
        let (x, width) = widen(left as u32, wide, high / MAX_ASPECT_RATIO, self.size.width);
        let (y, height) = widen(top as u32, high, wide / MAX_ASPECT_RATIO, self.size.height);
        Some(PatchRect {
            x,
            y,
            size: PixelSize::new(width, height),
        })
    }

    /// Whether more than 98 % of `rect`, the bounding rectangle, is masked.
    pub(super) fn fills(&self, rect: &PatchRect) -> bool {
        let masked = self.masked.iter().filter(|masked| **masked).count();
        masked as f64 > 0.98 * rect.size.pixels() as f64
    }

    /// Copies the masked pixels of `painted`, which covers `rect`, into `image`.
    pub(super) fn composite(&self, image: &mut Raster, rect: &PatchRect, painted: &Raster) {
        let width = self.size.width as usize;
        let length = rect.size.width as usize;
        for row in 0..rect.size.height as usize {
            let start = (rect.y as usize + row) * width + rect.x as usize;
            let from = &painted.rgba[row * length * 4..][..length * 4];
            let to = &mut image.rgba[start * 4..][..length * 4];
            let masked = &self.masked[start..][..length];
            for ((to, from), masked) in to.chunks_exact_mut(4).zip(from.chunks_exact(4)).zip(masked)
            {
                if *masked {
                    to.copy_from_slice(from);
                }
            }
        }
    }
}

/// Extends the interval of `length` at `start` to at least `min_length`, within 0 to `end`. Returns its new start and length.
fn widen(start: u32, length: u32, min_length: u32, end: u32) -> (u32, u32) {
    let min_length = min_length.min(end);
    if length >= min_length {
        return (start, length);
    }
    let start = start.saturating_sub((min_length - length) / 2);
    (start.min(end - min_length), min_length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounding_rect_contains_the_mask_and_has_a_minimum_width() {
        let column = (0..80).map(|y| (39, y)).collect();
        for (size, masked, expected) in [
            ((4, 4), vec![], None),
            ((6, 5), vec![(1, 2), (4, 3)], Some((1, 2, 4, 2))),
            ((40, 80), column, Some((30, 0, 10, 80))),
        ] {
            let mut pixels = vec![false; (size.0 * size.1) as usize];
            masked
                .iter()
                .for_each(|(x, y)| pixels[(y * size.0 + x) as usize] = true);
            let region = MaskedRegion::new(pixels, PixelSize::new(size.0, size.1));
            let expected = expected.map(|(x, y, w, h)| (x, y, PixelSize::new(w, h)));
            let rect = region
                .bounding_rect()
                .map(|rect| (rect.x, rect.y, rect.size));
            assert_eq!(rect, expected);
        }
    }
}
