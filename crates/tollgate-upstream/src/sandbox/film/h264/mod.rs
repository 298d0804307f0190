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
