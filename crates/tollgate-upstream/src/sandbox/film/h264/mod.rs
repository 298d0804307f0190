//! The smallest part of ITU-T H.264 that makes good films: key pictures that stand alone, and
//! pictures that are the last key picture with its macroblocks moved. Constrained baseline profile.

mod bits;
mod cavlc;
mod headers;
mod intra;
mod motion;
mod predict;
mod transform;
mod words;

use super::frame::Frame;
use bits::{Bits, Unit};
use intra::{Above, IntraCoder};
use motion::MotionCoder;

pub(super) use headers::{Format, MAX_GROUP};
pub(super) use motion::Vector;

/// The number of type `I_NxN` in slices of either kind (tables 7-11 and 7-13).
const FIRST_TYPE_IN_KEY: u32 = 0;
const FIRST_TYPE_IN_MOVED: u32 = 5;

/// Sequence and picture parameter set, each a NAL unit.
pub(super) fn parameter_sets(format: Format) -> [Vec<u8>; 2] {
    [format.sequence(), headers::picture()]
}

/// Codes `frame` as a picture that stands alone, as one NAL unit. `frame` becomes what a decoder
/// sees before deblocking. Two key pictures that follow each other need another `parity`, 0 or 1;
/// `qp` is 12 (fine) to 51 (coarse).
pub(super) fn key_picture(frame: &mut Frame, parity: u32, qp: i32) -> Vec<u8> {
    let (columns, rows) = (frame.columns, frame.rows);
    let mut bits = Bits::default();
    headers::key_slice(&mut bits, parity, qp);
    let mut coder = IntraCoder::new(frame, Above::Nothing, qp);
    for row in 0..rows {
        for column in 0..columns {
            coder.macroblock(&mut bits, column, row, FIRST_TYPE_IN_KEY);
        }
    }
    bits.finish(Unit::KeySlice)
}

/// Codes the picture that is shown `after` so many pictures from the last key picture, less than
/// [`MAX_GROUP`], as one NAL unit: that picture moved by `vectors`, row by row, and below it the
/// macroblocks of `foot`, coded anew. The vectors fill whole rows, as many as the foot leaves.
pub(super) fn moved_picture(
    columns: usize,
    vectors: impl Iterator<Item = Vector>,
    foot: Option<&mut Frame>,
    after: u32,
    qp: i32,
) -> Vec<u8> {
    let mut bits = Bits::default();
    headers::moved_slice(&mut bits, after, qp);
    let mut motion = MotionCoder::new(columns);
    for vector in vectors {
        motion.macroblock(&mut bits, vector);
    }
    if let Some(foot) = foot {
        let rows = foot.rows;
        let mut coder = IntraCoder::new(foot, Above::Moved, qp);
        for row in 0..rows {
            for column in 0..columns {
                motion.skip_run(&mut bits);
                coder.macroblock(&mut bits, column, row, FIRST_TYPE_IN_MOVED);
            }
        }
    } else if motion.has_skipped() {
        motion.skip_run(&mut bits);
    }
    bits.finish(Unit::Slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slopes, a hard edge and fine stripes.
    fn scene() -> Frame {
        let pixel = |x: usize, y: usize| match (x, y) {
            (40..70, 20..50) => [240, 240, 30],
            (0..30, 50..) => [(x % 3 * 90) as u8; 3],
            _ => [(2 * x) as u8, (3 * y) as u8, 160],
        };
        let pixels = (0..80).flat_map(|y| (0..96).map(move |x| pixel(x, y)));
        let rgba: Vec<u8> = pixels.flat_map(|[r, g, b]| [r, g, b, 255]).collect();
        Frame::of_rgba(&rgba, 96, 80)
    }

    /// The peak signal-to-noise ratio of brightness in decibels.
    fn likeness(one: &Frame, other: &Frame) -> f64 {
        let pixels = one.luma.data.iter().zip(&other.luma.data);
        let squares: f64 = pixels
            .map(|(&a, &b)| f64::from(a.abs_diff(b)).powi(2))
            .sum();
        10.0 * (255.0 * 255.0 * one.luma.data.len() as f64 / squares).log10()
    }

    #[test]
    fn a_finer_picture_is_larger_and_more_like_the_scene() {
        let coded = [12, 20, 28, 40].map(|qp| {
            let mut seen = scene();
            let unit = key_picture(&mut seen, 0, qp);
            (unit.len(), likeness(&seen, &scene()))
        });
        assert!(
            coded.is_sorted_by(|fine, coarse| fine.0 > coarse.0 && fine.1 > coarse.1),
            "{coded:?}"
        );
        assert!(coded[0].1 > 48.0 && coded[1].1 > 40.0, "{coded:?}");
    }

    #[test]
    fn a_picture_that_does_not_move_costs_nothing() {
        let still = vec![Vector::default(); 30];
        let unit = moved_picture(6, still.iter().copied(), None, 1, 20);
        assert!(unit.len() < 12, "{}", unit.len());
    }
}
