//! Writes parameter sets and slice headers (ITU-T H.264, 7.3.2 and 7.3.3, annexes A and E).

use super::bit_writer::{BitWriter, NalKind};

/// Frame size and rate of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Format {
    /// The width in pixels, even.
    pub(in super::super) width: u32,
    /// The height in pixels, even.
    pub(in super::super) height: u32,
    /// Frames per second.
    pub(in super::super) fps: u32,
}

/// Bits of `pic_order_cnt_lsb`: twice as many values as are needed between two I frames.
const ORDER_BITS: u32 = 10;
/// The maximum number of frames from one I frame to the next.
pub(in super::super) const MAX_KEY_INTERVAL: u32 = 1 << (ORDER_BITS - 2);

/// The quantisation parameter relative to which slice headers state theirs.
const BASE_QP: i32 = 26;

/// `level_idc`, and the maximum of macroblocks per second and per frame (table A-1), without levels that differ in bit rate alone.
const LEVELS: &[(u8, u32, u32)] = &[
    (10, 1_485, 99),
    (11, 3_000, 396),
    (12, 6_000, 396),
    (20, 11_880, 396),
    (21, 19_800, 792),
    (22, 20_250, 1_620),
    (30, 40_500, 1_620),
    (31, 108_000, 3_600),
    (32, 216_000, 5_120),
    (40, 245_760, 8_192),
    (42, 522_240, 8_704),
    (50, 589_824, 22_080),
    (51, 983_040, 36_864),
    (52, 2_073_600, 36_864),
    (60, 4_177_920, 139_264),
    (61, 8_355_840, 139_264),
    (62, 16_711_680, 139_264),
];

impl Format {
    /// Columns and rows of macroblocks.
    fn macroblocks(self) -> (u32, u32) {
        (self.width.div_ceil(16), self.height.div_ceil(16))
    }

    /// The lowest level that allows this format; the highest if none does.
    fn level(self) -> u8 {
        let (columns, rows) = self.macroblocks();
        let frame_mbs = columns * rows;
        let fits = |&&(_, max_per_second, max_per_frame): &&(u8, u32, u32)| {
            // No side may exceed the square root of 8 times that number.
            let longest = columns.max(rows);
            frame_mbs <= max_per_frame
                && longest * longest <= 8 * max_per_frame
                && frame_mbs * self.fps <= max_per_second
        };
        let level = LEVELS.iter().find(fits).or(LEVELS.last());
        level.map_or(62, |&(level, _, _)| level)
    }

    /// The sequence parameter set, as a NAL unit.
    pub(super) fn sequence_parameter_set(self) -> Vec<u8> {
        let (columns, rows) = self.macroblocks();
        let mut bits = BitWriter::default();
        bits.put(66, 8); // profile_idc: baseline
        bits.put(0b1100_0000, 8); // also of the constrained baseline and main profiles
        bits.put(u32::from(self.level()), 8);
        bits.unsigned(0); // seq_parameter_set_id
        bits.unsigned(0); // log2_max_frame_num_minus4
        bits.unsigned(0); // pic_order_cnt_type
        bits.unsigned(ORDER_BITS - 4);
        bits.unsigned(1); // max_num_ref_frames
        bits.flag(false); // gaps_in_frame_num_value_allowed
        bits.unsigned(columns - 1);
        bits.unsigned(rows - 1);
        bits.flag(true); // frame_mbs_only
        bits.flag(true); // direct_8x8_inference
        let (right, bottom) = (columns * 16 - self.width, rows * 16 - self.height);
        bits.flag(right + bottom > 0);
        if right + bottom > 0 {
            // Left, right, top, bottom, in pairs of pixels.
            for side in [0, right / 2, 0, bottom / 2] {
                bits.unsigned(side);
            }
        }
        bits.flag(true); // vui_parameters_present
        self.write_vui(&mut bits);
        bits.finish(NalKind::Sequence)
    }

    /// Video usability information (annex E).
    fn write_vui(self, bits: &mut BitWriter) {
        bits.flag(true); // aspect_ratio_info_present
        bits.put(1, 8); // square pixels
        bits.flag(false); // overscan_info_present
        bits.flag(true); // video_signal_type_present
        bits.put(5, 3); // of no particular television system
        bits.flag(false); // video_full_range
        bits.flag(true); // colour_description_present
        bits.put(0x01_01_01, 24); // primaries, transfer, matrix: all of BT.709
        bits.flag(true); // chroma_loc_info_present
        bits.unsigned(1); // in the middle of four pixels
        bits.unsigned(1);
        bits.flag(true); // timing_info_present
        bits.put(1, 32); // num_units_in_tick
        bits.put(2 * self.fps, 32); // a tick is half a picture
        bits.flag(true); // fixed_frame_rate
        bits.flag(false); // nal_hrd_parameters_present
        bits.flag(false); // vcl_hrd_parameters_present
        bits.flag(false); // pic_struct_present
        bits.flag(true); // bitstream_restriction
        bits.flag(true); // motion_vectors_over_pic_boundaries
        bits.unsigned(0); // max_bytes_per_pic_denom: no promise
        bits.unsigned(0); // max_bits_per_mb_denom: no promise
        bits.unsigned(13); // log2_max_mv_length_horizontal
        bits.unsigned(13); // log2_max_mv_length_vertical
        bits.unsigned(0); // max_num_reorder_frames: pictures are shown as they come
        bits.unsigned(1); // max_dec_frame_buffering
    }
}

/// The picture parameter set, as a NAL unit.
pub(super) fn picture_parameter_set() -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.unsigned(0); // pic_parameter_set_id
    bits.unsigned(0); // seq_parameter_set_id
    bits.flag(false); // entropy_coding_mode: CAVLC
    bits.flag(false); // bottom_field_pic_order_in_frame_present
    bits.unsigned(0); // num_slice_groups_minus1
    bits.unsigned(0); // num_ref_idx_l0_default_active_minus1
    bits.unsigned(0); // num_ref_idx_l1_default_active_minus1
    bits.flag(false); // weighted_pred
    bits.put(0, 2); // weighted_bipred_idc
    bits.signed(BASE_QP - 26); // pic_init_qp_minus26
    bits.signed(0); // pic_init_qs_minus26
    bits.signed(0); // chroma_qp_index_offset
    bits.flag(true); // deblocking_filter_control_present
    bits.flag(true); // constrained_intra_pred: nothing is guessed from moved macroblocks
    bits.flag(false); // redundant_pic_cnt_present
    bits.finish(NalKind::Picture)
}

/// Begins the slice of an I frame. Consecutive I frames need different `parity`.
pub(super) fn write_key_slice_header(bits: &mut BitWriter, parity: u32, qp: i32) {
    bits.unsigned(0); // first_mb_in_slice
    bits.unsigned(7); // slice_type: all are I
    bits.unsigned(0); // pic_parameter_set_id
    bits.put(0, 4); // frame_num
    bits.unsigned(parity); // idr_pic_id
    bits.put(0, ORDER_BITS); // pic_order_cnt_lsb
    bits.flag(false); // no_output_of_prior_pics
    bits.flag(false); // long_term_reference
    bits.signed(qp - BASE_QP);
    bits.unsigned(0); // disable_deblocking_filter_idc: it is on
    bits.signed(0); // slice_alpha_c0_offset_div2
    bits.signed(0); // slice_beta_offset_div2
}

/// Begins the slice of a P frame that is shown `after` frames after the last I frame, which it refers to. No frame refers to it.
pub(super) fn write_motion_slice_header(bits: &mut BitWriter, after: u32, qp: i32) {
    assert!(after < MAX_KEY_INTERVAL);
    bits.unsigned(0); // first_mb_in_slice
    bits.unsigned(5); // slice_type: all are P
    bits.unsigned(0); // pic_parameter_set_id
    bits.put(1, 4); // frame_num: one more than the key picture's
    bits.put(2 * after, ORDER_BITS); // pic_order_cnt_lsb
    bits.flag(false); // num_ref_idx_active_override
    bits.flag(false); // ref_pic_list_modification_flag_l0
    bits.signed(qp - BASE_QP);
    // Neighbouring vectors differ only slightly: nothing to smooth.
    bits.unsigned(1); // disable_deblocking_filter_idc: it is off
}
