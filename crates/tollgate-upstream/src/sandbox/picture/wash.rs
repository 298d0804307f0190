//! Large areas of colour, row by row: skies, land under a skyline, veils, glows.
//!
//! These make up nearly all pixels of a picture. General path filling spends twenty times as long
//! on each as the plain loops here, which the compiler turns into vector code. They expect an
//! opaque canvas.

use super::brush::Canvas;
use super::colour::Colour;

/// Colours from top to bottom, the same along each row.
pub(super) struct Ramp {
    top: f32,
    bottom: f32,
    /// Place from 0 (top) to 1 (bottom), colour, alpha from 0 to 1.
    stops: Vec<(f32, Colour, f32)>,
}

impl Ramp {
    /// A ramp between two heights in pixels; beyond them the first and the last stop go on.
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

    /// What the row at `y` is painted with.
    fn row(&self, y: f32) -> Ink {
        let place = (y - self.top) / (self.bottom - self.top);
        let (_, last, alpha) = self.stops[self.stops.len() - 1];
        let Some(next) = self.stops.iter().position(|(at, ..)| *at > place) else {
            return Ink::new(last, alpha);
        };
        let (to, to_colour, to_alpha) = self.stops[next];
        let (from, colour, alpha) = self.stops[next.saturating_sub(1)];
        if to <= from {
            return Ink::new(colour, alpha);
        }
        let share = ((place - from) / (to - from)).clamp(0.0, 1.0);
        Ink::new(
            colour.mix(to_colour, share),
            alpha + (to_alpha - alpha) * share,
        )
    }
}

/// One colour in the numbers that pixels are mixed by.
#[derive(Clone, Copy)]
struct Ink {
    rgba: [u8; 4],
    /// 0 to 1.
    alpha: f32,
}

impl Ink {
    fn new(colour: Colour, alpha: f32) -> Self {
        let colour = colour.solid().to_color_u8();
        Self {
            rgba: [colour.red(), colour.green(), colour.blue(), 255],
            alpha: alpha.clamp(0.0, 1.0),
        }
    }

    /// Lays it over one pixel; `share` is 0 to 256.
    #[inline]
    fn over(self, pixel: &mut [u8], share: u16) {
        for (below, above) in pixel.iter_mut().zip(self.rgba) {
            // At most 255 * 256 + 128, which fits; wrapping only spares the compiler the checks
            // that would keep it from vector code.
            let from_above = u16::from(above).wrapping_mul(share);
            let from_below = u16::from(*below).wrapping_mul(256_u16.wrapping_sub(share));
            let mixed = from_above.wrapping_add(from_below).wrapping_add(128);
            *below = (mixed >> 8) as u8;
        }
    }

    /// Lays it over a whole row.
    fn over_row(self, row: &mut [u8]) {
        let share = (self.alpha * 256.0).round() as u16;
        match share {
            0 => {}
            256 => row
                .chunks_exact_mut(4)
                .for_each(|pixel| pixel.copy_from_slice(&self.rgba)),
            _ => row
                .chunks_exact_mut(4)
                .for_each(|pixel| self.over(pixel, share)),
        }
    }
}

/// The shadow that land throws on what lies behind it.
pub(super) struct Shadow {
    pub(super) colour: Colour,
    /// How far above the skyline it reaches, in pixels.
    pub(super) reach: f32,
    /// Its alpha at the skyline, 0 to 1.
    pub(super) strength: f32,
}

impl Canvas {
    /// Paints every row with the ramp's colour.
    pub(super) fn wash(&mut self, ramp: &Ramp) {
        for (y, row) in self.rows(0.0) {
            ramp.row(y as f32 + 0.5).over_row(row);
        }
    }

    /// Paints all that lies below a line across the canvas; `line` gives its height at each x.
    pub(super) fn land(&mut self, line: impl Fn(f32) -> f32, ramp: &Ramp, shadow: Option<&Shadow>) {
        let skyline = Skyline::new(self.width, line);
        if let Some(shadow) = shadow {
            self.shadow(&skyline, shadow);
        }
        for (y, row) in self.rows(skyline.highest - 1.0) {
            let middle = y as f32 + 0.5;
            let ink = ramp.row(middle);
            if middle > skyline.lowest + 1.0 {
                ink.over_row(row);
                continue;
            }
            for (pixel, (top, slope)) in row.chunks_exact_mut(4).zip(&skyline.columns) {
                // How far the pixel's middle is below the line, at right angles to it.
                let depth = (middle - top) * slope;
                let share = (depth + 0.5).clamp(0.0, 1.0) * ink.alpha;
                ink.over(pixel, (share * 256.0) as u16);
            }
        }
    }

    fn shadow(&mut self, skyline: &Skyline, shadow: &Shadow) {
        let ink = Ink::new(shadow.colour, 1.0);
        let lowest = skyline.lowest;
        for (y, row) in self.rows(skyline.highest - shadow.reach) {
            let middle = y as f32 + 0.5;
            if middle > lowest + 1.0 {
                break;
            }
            for (pixel, (top, _)) in row.chunks_exact_mut(4).zip(&skyline.columns) {
                let near = (1.0 - (top - middle) / shadow.reach).clamp(0.0, 1.0);
                let share = shadow.strength * near * near;
                ink.over(pixel, (share * 256.0) as u16);
            }
        }
    }

    /// Light around (`x`, `y`) that fades to nothing at `radius` pixels; `strength` from 0 to 1.
    pub(super) fn glow(&mut self, x: f32, y: f32, radius: f32, colour: Colour, strength: f32) {
        let ink = Ink::new(colour, 1.0);
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
                ink.over(pixel, (share * 256.0) as u16);
            }
        }
    }

    /// The rows from `top` down, each with its number.
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

/// A line across the canvas, worked out for each column.
struct Skyline {
    /// Height of the line, and the cosine of its slope.
    columns: Vec<(f32, f32)>,
    highest: f32,
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
