//! The camera of a video: it starts with the complete image and zooms slowly into one point.

use super::frame::{Frame, Plane};
use super::h264::MotionVector;

/// The largest zoom, as a share of the image.
const MAX_ZOOM: f64 = 0.12;
/// The zoom of any clip, and the additional zoom per second. Macroblocks move as units: beyond about 3 % per second, seams are visible.
const ZOOM_RATE: (f64, f64) = (0.02, 0.012);

/// How much of the image may move out of view at the left and right, and at the bottom, as a share of the shorter side: captions keep 0.062 away from
/// the sides, and the progress bar is at the bottom.
const MAX_SIDE_LOSS: f64 = 0.05;
const MAX_BOTTOM_LOSS: f64 = 0.02;

/// The number of fraction bits of the resampler's weights.
const WEIGHT_BITS: u32 = 10;

/// The camera path of a clip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Camera {
    /// The fixed point, in luma pixels.
    focus: (f64, f64),
    /// The zoom at the last frame, minus 1.
    zoom_amount: f64,
    /// Number of frames.
    frames: u32,
}

impl Camera {
    /// The path for an image of `width` x `height`; `seed` selects the fixed point.
    pub(super) fn new(width: u32, height: u32, seed: u64, seconds: u32, frames: u32) -> Self {
        // Mixed, so that seeds that differ only in low bits select different points too.
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let share = |bits: u64| f64::from(bits as u16) / f64::from(u16::MAX);
        let (width, height) = (f64::from(width), f64::from(height));
        let unit = width.min(height);
        let across = 0.44 + 0.12 * share(mixed);
        let wider_side = across.max(1.0 - across) * width;
        let zoom_amount = (ZOOM_RATE.0 + ZOOM_RATE.1 * f64::from(seconds)).min(MAX_ZOOM);
        // The share of each side that is outside the last frame.
        let lost = (1.0 - 1.0 / (1.0 + zoom_amount)).min(MAX_SIDE_LOSS * unit / wider_side);
        let below =
            (MAX_BOTTOM_LOSS * unit / (height * lost)).min(0.5) * (0.6 + 0.4 * share(mixed >> 16));
        Self {
            focus: (width * across, height * (1.0 - below)),
            zoom_amount: 1.0 / (1.0 - lost) - 1.0,
            frames,
        }
    }

    /// The magnification at `frame`.
    fn zoom(&self, frame: u32) -> f64 {
        let time = f64::from(frame) / f64::from(self.frames.max(2) - 1);
        // Smoothstep: starts and ends slowly.
        1.0 + self.zoom_amount * time * time * (3.0 - 2.0 * time)
    }

    /// The motion vectors from frame `from` to frame `to`: `rows` rows of `columns`.
    pub(super) fn vectors(
        &self,
        from: u32,
        to: u32,
        columns: usize,
        rows: usize,
    ) -> impl Iterator<Item = MotionVector> + use<> {
        let back = self.zoom(from) / self.zoom(to) - 1.0;
        let focus = self.focus;
        let quarters = move |at: usize, focus: f64| {
            let middle = (at * 16 + 8) as f64;
            (4.0 * (middle - focus) * back).round() as i32
        };
        (0..rows).flat_map(move |row| {
            (0..columns).map(move |column| MotionVector {
                x: quarters(column, focus.0),
                y: quarters(row, focus.1),
            })
        })
    }

    /// Renders `frame` of `scene` into `target`, a frame of the same size.
    pub(super) fn render(&self, scene: &Frame, frame: u32, target: &mut Frame) {
        let zoom = self.zoom(frame);
        let (x, y) = self.focus;
        resample(&scene.luma, &mut target.luma, (x, y), zoom);
        for (scene, target) in scene.chroma.iter().zip(&mut target.chroma) {
            resample(scene, target, (x / 2.0, y / 2.0), zoom);
        }
    }
}

/// The four source pixels from which one pixel is interpolated.
#[derive(Debug, Clone, Copy)]
struct Taps {
    /// Index of the first one, from -1.
    first: isize,
    /// Their weights in 2^-[`WEIGHT_BITS`], whose sum is 1.
    weights: [i32; 4],
}

impl Taps {
    /// The taps of each of `count` pixels in a row magnified `zoom` times around `focus`.
    fn row(count: usize, focus: f64, zoom: f64) -> Vec<Self> {
        let taps = |at: usize| Self::at(focus + (at as f64 + 0.5 - focus) / zoom - 0.5);
        (0..count).map(taps).collect()
    }

    /// The taps around `position`: a Catmull-Rom spline, which keeps unmoved pixels unchanged.
    fn at(position: f64) -> Self {
        let floor = position.floor();
        let t = position - floor;
        let one = f64::from(1 << WEIGHT_BITS);
        let weight = |value: f64| (value * one / 2.0).round() as i32;
        let before = weight(t * (t * (2.0 - t) - 1.0));
        let second = weight(t * (t * (4.0 - 3.0 * t) + 1.0));
        let after = weight(t * t * (t - 1.0));
        Self {
            first: floor as isize - 1,
            weights: [
                before,
                (1 << WEIGHT_BITS) - before - second - after,
                second,
                after,
            ],
        }
    }
}

/// Resamples `from` into `to`, both of one size, magnified `zoom` times around `focus`.
fn resample(from: &Plane, to: &mut Plane, focus: (f64, f64), zoom: f64) {
    let (width, height) = (from.stride, from.rows());
    let across = Taps::row(width, focus.0, zoom);
    let down = Taps::row(height, focus.1, zoom);
    // One row, padded for the taps beyond its ends.
    let mut line = vec![0; width + 4];
    for (y, taps) in down.iter().enumerate() {
        let [a, b, c, d] = [0, 1, 2, 3].map(|step| {
            let row = (taps.first + step).clamp(0, height as isize - 1);
            from.row(row as usize)
        });
        let pixels = a.iter().zip(b).zip(c.iter().zip(d));
        for (mixed, ((&a, &b), (&c, &d))) in line[2..width + 2].iter_mut().zip(pixels) {
            let four = [a, b, c, d].map(i32::from);
            *mixed = weighted_sum(four, taps.weights);
        }
        let (first, last) = (line[2], line[width + 1]);
        line[..2].fill(first);
        line[width + 2..].fill(last);
        for (pixel, taps) in to.row_mut(y).iter_mut().zip(&across) {
            let start = (taps.first + 2).clamp(0, width as isize) as usize;
            let four = [0, 1, 2, 3].map(|step| line[start..][..4][step]);
            let mixed = weighted_sum(four, taps.weights);
            let half = 1 << (2 * WEIGHT_BITS - 1);
            *pixel = ((mixed + half) >> (2 * WEIGHT_BITS)).clamp(0, 255) as u8;
        }
    }
}

/// The weighted sum of `values`.
fn weighted_sum(values: [i32; 4], weights: [i32; 4]) -> i32 {
    let [a, b, c, d] = values;
    let [p, q, r, s] = weights;
    a * p + b * q + c * r + d * s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_zoomed_about_the_focus() {
        let mut scene = Frame::new(4, 4);
        for y in 0..64 {
            for (x, pixel) in scene.luma.row_mut(y).iter_mut().enumerate() {
                *pixel = (2 * x + y) as u8;
            }
        }
        let camera = Camera::new(64, 64, 1, 8, 100);
        let mut target = Frame::new(4, 4);
        camera.render(&scene, 0, &mut target);
        assert_eq!(
            target.luma.data, scene.luma.data,
            "the first frame is the scene itself"
        );
        camera.render(&scene, 99, &mut target);
        let zoom = camera.zoom(99);
        assert!(zoom > 1.05 && zoom < 1.116);
        let source = |at: usize, focus: f64| focus + (at as f64 + 0.5 - focus) / zoom - 0.5;
        for (x, y) in (3..61).flat_map(|y| (3..61).map(move |x| (x, y))) {
            let expected = 2.0 * source(x, camera.focus.0) + source(y, camera.focus.1);
            let found = f64::from(target.luma.row(y)[x]);
            assert!(
                (found - expected).abs() <= 0.6,
                "{x},{y}: {found} {expected}"
            );
        }
    }

    #[test]
    fn motion_vectors_point_to_the_previous_position_of_a_block() {
        let camera = Camera::new(640, 480, 3, 8, 192);
        let mut still = camera.vectors(24, 24, 40, 30);
        assert!(still.all(|vector| vector == MotionVector::default()));
        let vectors: Vec<_> = camera.vectors(72, 95, 40, 30).collect();
        assert_eq!(vectors.len(), 40 * 30);
        // Content that moves towards the camera was closer to the middle before.
        let (first, last) = (vectors[0], vectors[vectors.len() - 1]);
        assert!(
            first.x > 0 && first.y > 0 && last.x < 0 && last.y < 0,
            "{first:?} {last:?}"
        );
    }
}
