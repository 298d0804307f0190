//! The hole that a mask leaves in a picture, and how it is filled.

use tollgate_media::image::PixelSize;

use crate::raster::Raster;

/// The pixels to repaint.
pub(super) struct Hole {
    size: PixelSize,
    /// Row by row, true where the picture is repainted.
    open: Vec<bool>,
}

/// The rectangle around a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patch {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) size: PixelSize,
}

/// How much longer than wide a patch is at most; scenes are made for such ratios.
const LONGEST: u32 = 8;

impl Hole {
    /// A hole in a picture of `size`; `open` has one entry per pixel.
    pub(super) fn new(open: Vec<bool>, size: PixelSize) -> Self {
        Self { size, open }
    }

    /// The rectangle to paint, or none where nothing is open.
    pub(super) fn patch(&self) -> Option<Patch> {
        let width = self.size.width as usize;
        let (mut left, mut right, mut top, mut bottom) = (usize::MAX, 0, usize::MAX, 0);
        for (y, row) in self.open.chunks_exact(width).enumerate() {
            let Some(first) = row.iter().position(|open| *open) else {
                continue;
            };
            let last = row.iter().rposition(|open| *open).unwrap_or(first);
            left = left.min(first);
            right = right.max(last);
            top = top.min(y);
            bottom = y;
        }
        if left > right {
            return None;
        }
        let (wide, high) = ((right - left + 1) as u32, (bottom - top + 1) as u32);
        let (x, width) = widen(left as u32, wide, high / LONGEST, self.size.width);
        let (y, height) = widen(top as u32, high, wide / LONGEST, self.size.height);
        Some(Patch {
            x,
            y,
            size: PixelSize::new(width, height),
        })
    }

    /// Whether next to all of `patch` is open.
    pub(super) fn is_rectangle(&self, patch: &Patch) -> bool {
        let open = self.open.iter().filter(|open| **open).count();
        open as f64 > 0.98 * patch.size.pixels() as f64
    }

    /// Puts the open pixels of `painted`, which covers `patch`, into `picture`.
    pub(super) fn fill(&self, picture: &mut Raster, patch: &Patch, painted: &Raster) {
        let width = self.size.width as usize;
        let length = patch.size.width as usize;
        for row in 0..patch.size.height as usize {
            let start = (patch.y as usize + row) * width + patch.x as usize;
            let from = &painted.rgba[row * length * 4..][..length * 4];
            let to = &mut picture.rgba[start * 4..][..length * 4];
            let open = &self.open[start..][..length];
            for ((to, from), open) in to.chunks_exact_mut(4).zip(from.chunks_exact(4)).zip(open) {
                if *open {
                    to.copy_from_slice(from);
                }
            }
        }
    }
}

/// A stretch from `start` made at least `least` long, within 0 to `end`.
fn widen(start: u32, length: u32, least: u32, end: u32) -> (u32, u32) {
    let least = least.min(end);
    if length >= least {
        return (start, length);
    }
    let start = start.saturating_sub((least - length) / 2);
    (start.min(end - least), least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hole(width: u32, height: u32, open: &[(u32, u32)]) -> Hole {
        let mut pixels = vec![false; (width * height) as usize];
        for (x, y) in open {
            pixels[(y * width + x) as usize] = true;
        }
        Hole::new(pixels, PixelSize::new(width, height))
    }

    #[test]
    fn the_patch_surrounds_the_hole() {
        assert_eq!(hole(4, 4, &[]).patch(), None);
        let patch = hole(6, 5, &[(1, 2), (4, 3)]).patch().unwrap();
        assert_eq!((patch.x, patch.y), (1, 2));
        assert_eq!(patch.size, PixelSize::new(4, 2));
    }

    #[test]
    fn a_long_thin_hole_gets_a_wider_patch() {
        let column: Vec<(u32, u32)> = (0..80).map(|y| (39, y)).collect();
        let patch = hole(40, 80, &column).patch().unwrap();
        assert_eq!(patch.size, PixelSize::new(10, 80));
        assert_eq!((patch.x, patch.y), (30, 0));
    }
}
