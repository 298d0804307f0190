//! Fast fills of large areas, row by row: gradients, areas below a skyline, glows. They expect an opaque canvas.
//!
//! They write nearly all pixels of an image and are vectorised by the compiler. tiny-skia's path fill takes about 20 times as
//! long per pixel.

use super::canvas::Canvas;
use super::colour::Colour;

/// A vertical gradient: one colour per row.
pub(super) struct VerticalGradient {
    top: f32,
    bottom: f32,
    /// Position from 0 (top) to 1 (bottom), colour, alpha from 0 to 1: at least one stop, ordered by position.
    stops: Vec<(f32, Colour, f32)>,
}

impl VerticalGradient {
    /// A gradient between two heights in pixels. Rows outside get the first or the last stop.
    pub(super) fn new(top: f32, bottom: f32, stops: &[(f32, Colour, f32)]) -> Self {
        Self {
            top,
            bottom: bottom.max(top + 1.0),
            stops: stops.to_vec(),
        }
    }

    /// Opaque, from one colour to another.
    pub(super) fn between(top: f32, bottom: f32, from: Colour, to: Colour) -> Self {
        Self::new(top, bottom, &[(0.0, from, 1.0), (1.0, to, 1.0)])
    }

    /// The colour and alpha of the row at `y`.
    fn row(&self, y: f32) -> Blend {
        let position = (y - self.top) / (self.bottom - self.top);
        let (_, last, alpha) = self.stops[self.stops.len() - 1];
        let Some(next) = self.stops.iter().position(|(at, ..)| *at > position) else {
            return Blend::new(last, alpha);
        };
        let (to, to_colour, to_alpha) = self.stops[next];
        let (from, colour, alpha) = self.stops[next.saturating_sub(1)];
        if to <= from {
            return Blend::new(colour, alpha);
        }
        let share = ((position - from) / (to - from)).clamp(0.0, 1.0);
        Blend::new(
            colour.mix(to_colour, share),
            alpha + (to_alpha - alpha) * share,
        )
    }
}

/// A colour to blend over pixels.
#[derive(Clone, Copy)]
struct Blend {
    rgba: [u8; 4],
    /// The alpha, 0 to 1.
    alpha: f32,
}

impl Blend {
    fn new(colour: Colour, alpha: f32) -> Self {
        let colour = colour.solid().to_color_u8();
        Self {
            rgba: [colour.red(), colour.green(), colour.blue(), 255],
            alpha: alpha.clamp(0.0, 1.0),
        }
    }

    /// Blends the colour over one pixel; `share` is 0 to 256.
    #[inline]
    fn blend_pixel(self, pixel: &mut [u8], share: u16) {
        for (below, above) in pixel.iter_mut().zip(self.rgba) {
            // At most 255 * 256 + 128, which fits. Wrapping operations have no overflow checks, which would prevent
            // vectorisation.
            let from_above = u16::from(above).wrapping_mul(share);
            let from_below = u16::from(*below).wrapping_mul(256_u16.wrapping_sub(share));
            let mixed = from_above.wrapping_add(from_below).wrapping_add(128);
            *below = (mixed >> 8) as u8;
        }
    }

    /// Blends the colour over a row.
    fn blend_row(self, row: &mut [u8]) {
        let share = (self.alpha * 256.0).round() as u16;
        match share {
            0 => {}
            256 => row
                .chunks_exact_mut(4)
                .for_each(|pixel| pixel.copy_from_slice(&self.rgba)),
            _ => row
                .chunks_exact_mut(4)
                .for_each(|pixel| self.blend_pixel(pixel, share)),
        }
    }
}

impl Canvas {
    /// Fills the canvas with three colours from the top to `horizon`.
    pub(super) fn fill_sky(&mut self, sky: [Colour; 3], horizon: f32) {
        let stops = [(0.0, sky[0], 1.0), (0.55, sky[1], 1.0), (1.0, sky[2], 1.0)];
        self.fill_gradient(&VerticalGradient::new(0.0, horizon, &stops));
    }

    /// Blends a gradient over the canvas.
    pub(super) fn fill_gradient(&mut self, gradient: &VerticalGradient) {
        for (y, row) in self.rows(0.0) {
            gradient.row(y as f32 + 0.5).blend_row(row);
        }
    }

    /// Blends a gradient over everything below a line across the canvas. `line` returns its y at each x.
    pub(super) fn fill_below(&mut self, line: impl Fn(f32) -> f32, gradient: &VerticalGradient) {
        let skyline = Skyline::new(self.width, line);
        for (y, row) in self.rows(skyline.highest - 1.0) {
            let middle = y as f32 + 0.5;
            let blend = gradient.row(middle);
            if middle > skyline.lowest + 1.0 {
                blend.blend_row(row);
                continue;
            }
            for (pixel, (top, slope)) in row.chunks_exact_mut(4).zip(&skyline.columns) {
                // Distance of the pixel's centre from the line.
                let depth = (middle - top) * slope;
                let share = (depth + 0.5).clamp(0.0, 1.0) * blend.alpha;
                blend.blend_pixel(pixel, (share * 256.0) as u16);
            }
        }
    }

    /// A radial glow around (`x`, `y`) that fades out at `radius` pixels; `strength` is its alpha at the centre.
    pub(super) fn glow(&mut self, x: f32, y: f32, radius: f32, colour: Colour, strength: f32) {
        let blend = Blend::new(colour, 1.0);
        let width = self.width;
        let left = (x - radius).clamp(0.0, width) as usize;
        let right = (x + radius).clamp(0.0, width) as usize;
        let scale = 1.0 / (radius * radius).max(1.0);
        for (row_y, row) in self.rows(y - radius) {
            let dy = row_y as f32 + 0.5 - y;
            if dy > radius {
                break;
            }
            for (step, pixel) in row[left * 4..right * 4].chunks_exact_mut(4).enumerate() {
                let dx = (left + step) as f32 + 0.5 - x;
                let inside = (1.0 - (dx * dx + dy * dy) * scale).max(0.0);
                let share = strength * inside * inside * inside * inside;
                blend.blend_pixel(pixel, (share * 256.0) as u16);
            }
        }
    }

    /// The rows from `top` down, each with its index.
    fn rows(&mut self, top: f32) -> impl Iterator<Item = (usize, &mut [u8])> {
        let length = self.pixmap.width() as usize * 4;
        let first = top.max(0.0) as usize;
        self.pixmap
            .data_mut()
            .chunks_exact_mut(length)
            .enumerate()
            .skip(first)
    }
}

/// A line across the canvas, evaluated at each column.
struct Skyline {
    /// Y of the line, and the cosine of its slope.
    columns: Vec<(f32, f32)>,
    /// Y of the highest point: the smallest value.
    highest: f32,
    /// Y of the lowest point: the largest value.
    lowest: f32,
}

impl Skyline {
    fn new(width: f32, line: impl Fn(f32) -> f32) -> Self {
        let heights: Vec<f32> = (0..=width as u32).map(|x| line(x as f32)).collect();
        let columns: Vec<(f32, f32)> = heights
            .windows(2)
            .map(|pair| {
                let rise = pair[1] - pair[0];
                (f32::midpoint(pair[0], pair[1]), 1.0 / rise.hypot(1.0))
            })
            .collect();
        Self {
            highest: heights.iter().copied().fold(f32::INFINITY, f32::min),
            lowest: heights.iter().copied().fold(f32::NEG_INFINITY, f32::max),
            columns,
        }
    }
}
