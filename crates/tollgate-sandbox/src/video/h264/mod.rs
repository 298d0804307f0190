//! A minimal H.264 encoder (ITU-T H.264, constrained baseline profile): I frames, and P frames that move the macroblocks of the
//! last I frame.

mod bit_writer;
mod cavlc;
mod code_tables;
mod headers;
mod intra_frame;
mod intra_prediction;
mod motion_vectors;
mod transform;

use super::frame::Frame;
use bit_writer::{BitWriter, NalKind};
use intra_frame::{Above, IntraCoder};
use motion_vectors::MotionCoder;

pub(super) use headers::{Format, MAX_KEY_INTERVAL};
pub(super) use motion_vectors::MotionVector;

/// The number of macroblock type `I_NxN` in I and P slices (tables 7-11 and 7-13).
const FIRST_TYPE_IN_I_SLICE: u32 = 0;
const FIRST_TYPE_IN_P_SLICE: u32 = 5;

/// Sequence and picture parameter set, each a NAL unit.
pub(super) fn parameter_sets(format: Format) -> [Vec<u8>; 2] {
    [
        format.sequence_parameter_set(),
        headers::picture_parameter_set(),
    ]
}

/// Encodes `frame` as an I frame in one NAL unit. `frame` becomes what a decoder reconstructs before deblocking. Consecutive I
/// frames need different `parity`, 0 or 1. `qp` is the quantisation parameter, 12 (fine) to 51 (coarse).
pub(super) fn encode_key_frame(frame: &mut Frame, parity: u32, qp: i32) -> Vec<u8> {
    let (columns, rows) = (frame.columns, frame.rows);
    let mut bits = BitWriter::default();
    headers::write_key_slice_header(&mut bits, parity, qp);
    let mut coder = IntraCoder::new(frame, Above::Nothing, qp);
    for row in 0..rows {
        for column in 0..columns {
            coder.macroblock(&mut bits, column, row, FIRST_TYPE_IN_I_SLICE);
        }
    }
    bits.finish(NalKind::KeySlice)
}

/// Encodes the frame that is shown `after` frames after the last I frame, less than [`MAX_KEY_INTERVAL`], as one NAL unit: the I
/// frame with its macroblocks moved by `vectors`, row by row, and below it the macroblocks of `footer`, intra coded. The vectors
/// fill whole rows, as many as the footer leaves.
pub(super) fn encode_motion_frame(
    columns: usize,
    vectors: impl Iterator<Item = MotionVector>,
    footer: Option<&mut Frame>,
    after: u32,
    qp: i32,
) -> Vec<u8> {
    let mut bits = BitWriter::default();
    headers::write_motion_slice_header(&mut bits, after, qp);
    let mut motion = MotionCoder::new(columns);
    for vector in vectors {
        motion.macroblock(&mut bits, vector);
    }
    if let Some(footer) = footer {
        let rows = footer.rows;
        let mut coder = IntraCoder::new(footer, Above::MotionCoded, qp);
        for row in 0..rows {
            for column in 0..columns {
                motion.write_skip_run(&mut bits);
                coder.macroblock(&mut bits, column, row, FIRST_TYPE_IN_P_SLICE);
            }
        }
    } else if motion.has_skipped() {
        motion.write_skip_run(&mut bits);
    }
    bits.finish(NalKind::Slice)
}
