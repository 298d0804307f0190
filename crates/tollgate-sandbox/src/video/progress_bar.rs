//! Draws the progress bar at the bottom of a video.

use std::ops::Range;

use super::frame::{Frame, Plane};

/// Videos of a smaller height, in pixels, have no bar.
const MIN_HEIGHT: usize = 128;

/// A colour: Y, Cb, Cr.
type Colour = [u8; 3];

/// A dark band of whole macroblock rows, with a line in it that fills from left to right.
#[derive(Debug, Clone)]
pub(super) struct ProgressBar {
    /// Rows of macroblocks.
    pub(super) rows: usize,
    /// Width in pixels.
    width: usize,
    /// The pixel rows of the line, from the top of the band; even.
    line: Range<usize>,
    band: Colour,
    empty: Colour,
    full: Colour,
}

impl ProgressBar {
    /// The bar for frames of `width` x `height` pixels, tinted like `scene`. `None` if `height` is too small.
    pub(super) fn new(scene: &Frame, width: usize, height: usize) -> Option<Self> {
        if height < MIN_HEIGHT {
            return None;
        }
        // The last macroblock row may be cropped; the visible part of the bar should not be too thin.
        let visible_height = |rows: usize| height - (scene.rows - rows) * 16;
        let rows = if visible_height(1) >= height / 90 {
            1
        } else {
            2
        };
        let thickness = (visible_height(rows) / 4).max(2) & !1;
        let start = ((visible_height(rows) - thickness) / 2) & !1;
        let mean = |plane: &Plane| {
            let sum: usize = plane.data.iter().map(|&value| usize::from(value)).sum();
            sum / plane.data.len()
        };
        let [blue, red] = [0, 1].map(|at| mean(&scene.chroma[at]) as i32 - 128);
        // Grey with a share, in quarters, of the image's mean colour.
        let tinted = |brightness: u8, quarters: i32| {
            let tint = |value: i32| (128 + value * quarters / 4).clamp(16, 240) as u8;
            [brightness, tint(blue), tint(red)]
        };
        Some(Self {
            rows,
            width,
            line: start..start + thickness,
            band: tinted(28, 2),
            empty: tinted(62, 2),
            full: tinted(205, 6),
        })
    }

    /// Draws the bar into `frame` from macroblock row `row` on, filled to `share` (0 to 1).
    pub(super) fn paint(&self, frame: &mut Frame, row: usize, share: f64) {
        let end = share * self.width as f64;
        self.fill(&mut frame.luma, row * 16, 1, end, 0);
        for (at, plane) in frame.chroma.iter_mut().enumerate() {
            self.fill(plane, row * 8, 2, end / 2.0, at + 1);
        }
    }

    /// Draws one plane, which is subsampled by `scale`.
    fn fill(&self, plane: &mut Plane, top: usize, scale: usize, end: f64, channel: usize) {
        let [band, empty, full] = [self.band, self.empty, self.full].map(|colour| colour[channel]);
        for y in 0..self.rows * 16 / scale {
            let row = plane.row_mut(top + y);
            if !self.line.contains(&(y * scale)) {
                row.fill(band);
                continue;
            }
            for (x, pixel) in row.iter_mut().enumerate() {
                let covered = (end - x as f64).clamp(0.0, 1.0);
                let colour = f64::from(empty) + (f64::from(full) - f64::from(empty)) * covered;
                *pixel = colour.round() as u8;
            }
        }
    }
}
