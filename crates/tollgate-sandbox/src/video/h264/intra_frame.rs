//! Intra-coded macroblocks (type `Intra16x16`): a prediction from neighbouring pixels and the quantised residual.

use super::super::frame::{Frame, Plane};
use super::bit_writer::BitWriter;
use super::cavlc::{self, Context};
use super::intra_prediction::{self, Edges, Mode};
use super::transform::{self, Block, Quantiser, ZIGZAG};

/// The content above the first row of an intra-coded frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Above {
    /// Nothing: the row is at the edge of the frame.
    Nothing,
    /// P macroblocks: not available for prediction, without coefficients.
    MotionCoded,
}

/// The best prediction of one plane of a macroblock.
struct Prediction<const PIXELS: usize> {
    mode: Mode,
    prediction: [u8; PIXELS],
}

/// Quantised coefficients of one plane of a macroblock, its blocks in raster order.
struct Levels<const BLOCKS: usize> {
    dc: [i32; BLOCKS],
    ac: [Block; BLOCKS],
}

impl<const BLOCKS: usize> Levels<BLOCKS> {
    fn has_dc(&self) -> bool {
        self.dc.iter().any(|&level| level != 0)
    }

    fn has_ac(&self) -> bool {
        self.ac
            .iter()
            .any(|block| block[1..].iter().any(|&level| level != 0))
    }
}

/// Encodes a frame macroblock by macroblock in raster order, and replaces its pixels by those that a decoder reconstructs before
/// deblocking.
pub(super) struct IntraCoder<'a> {
    frame: &'a mut Frame,
    luma: Quantiser,
    chroma: Quantiser,
    /// The number of coefficients of each 4x4 block, by plane.
    counts: [Counts; 3],
}

impl<'a> IntraCoder<'a> {
    /// An encoder for `frame` with quantisation parameter `qp`, 12 to 51.
    pub(super) fn new(frame: &'a mut Frame, above: Above, qp: i32) -> Self {
        let counts = [4, 2, 2].map(|blocks| Counts {
            stride: frame.columns * blocks,
            counts: vec![0; frame.columns * frame.rows * blocks * blocks],
            above,
        });
        Self {
            frame,
            luma: Quantiser::luma(qp),
            chroma: Quantiser::chroma(qp),
            counts,
        }
    }

    /// Encodes the next macroblock. `first_type` is the number of type `I_NxN` in this kind of slice.
    pub(super) fn macroblock(
        &mut self,
        bits: &mut BitWriter,
        column: usize,
        row: usize,
        first_type: u32,
    ) {
        let (luma_mode, luma) = self.code_luma(column, row);
        let (chroma_mode, chroma) = self.code_chroma(column, row);
        let has_luma_ac = luma.has_ac();
        let chroma_pattern = if chroma.iter().any(Levels::has_ac) {
            2
        } else {
            u32::from(chroma.iter().any(Levels::has_dc))
        };
        let kind = 1 + luma_mode.luma() + 4 * chroma_pattern + 12 * u32::from(has_luma_ac);
        bits.unsigned(first_type + kind);
        bits.unsigned(chroma_mode.chroma());
        bits.signed(0); // mb_qp_delta

        let context = self.counts[0].context(column * 4, row * 4);
        cavlc::write_block(bits, &ZIGZAG.map(|at| luma.dc[at]), context);
        if has_luma_ac {
            for at in 0..16 {
                // Blocks are in order of 8x8 quarters.
                let (x, y) = (at & 1 | at >> 1 & 2, at >> 1 & 1 | at >> 2 & 2);
                self.counts[0].code(bits, &luma.ac[y * 4 + x], column * 4 + x, row * 4 + y);
            }
        }
        if chroma_pattern > 0 {
            for plane in &chroma {
                cavlc::write_block(bits, &plane.dc, Context::ChromaDc);
            }
        }
        if chroma_pattern > 1 {
            for (plane, counts) in chroma.iter().zip(&mut self.counts[1..]) {
                for (at, block) in plane.ac.iter().enumerate() {
                    counts.code(bits, block, column * 2 + at % 2, row * 2 + at / 2);
                }
            }
        }
    }

    fn code_luma(&mut self, column: usize, row: usize) -> (Mode, Levels<16>) {
        let plane = &mut self.frame.luma;
        let (x, y) = (column * 16, row * 16);
        let source: [u8; 256] = read_square::<16, 256>(plane, x, y);
        let edges = edges::<16>(plane, x, y);
        let modes = Mode::ALL.into_iter().filter_map(|mode| {
            let prediction = intra_prediction::luma(&edges, mode)?;
            Some((
                sum_of_differences(&source, &prediction),
                Prediction { mode, prediction },
            ))
        });
        let (_, Prediction { mode, prediction }) = modes
            .min_by_key(|(difference, _)| *difference)
            .expect("the mean needs no edge");
        let (dc, ac) = transform_residual::<16, 4>(&source, &prediction, self.luma);
        let levels = Levels {
            dc: self.luma.quantise_luma_dc(&dc),
            ac,
        };
        let dc = self.luma.restore_luma_dc(&levels.dc);
        let decoded = reconstruct::<16, 4, 256>(&prediction, &dc, &levels.ac, self.luma);
        write_square::<16>(plane, x, y, &decoded);
        (mode, levels)
    }

    /// Both chroma planes, which share their mode.
    fn code_chroma(&mut self, column: usize, row: usize) -> (Mode, [Levels<4>; 2]) {
        let (x, y) = (column * 8, row * 8);
        let planes = &self.frame.chroma;
        let sources = [0, 1].map(|at| read_square::<8, 64>(&planes[at], x, y));
        let edges = [0, 1].map(|at| edges::<8>(&planes[at], x, y));
        let modes = Mode::ALL.into_iter().filter_map(|mode| {
            let predictions = [
                intra_prediction::chroma(&edges[0], mode)?,
                intra_prediction::chroma(&edges[1], mode)?,
            ];
            let difference = sum_of_differences(&sources[0], &predictions[0])
                + sum_of_differences(&sources[1], &predictions[1]);
            Some((difference, mode, predictions))
        });
        let (_, mode, predictions) = modes
            .min_by_key(|(difference, _, _)| *difference)
            .expect("the mean needs no edge");
        let levels = [0, 1].map(|at| {
            let (dc, ac) = transform_residual::<4, 2>(&sources[at], &predictions[at], self.chroma);
            let dc = self.chroma.quantise_chroma_dc(dc);
            let levels = Levels { dc, ac };
            let dc = self.chroma.restore_chroma_dc(dc);
            let decoded = reconstruct::<4, 2, 64>(&predictions[at], &dc, &levels.ac, self.chroma);
            write_square::<8>(&mut self.frame.chroma[at], x, y, &decoded);
            levels
        });
        (mode, levels)
    }
}

/// The number of coefficients of each block of a plane, which selects the code table.
struct Counts {
    stride: usize,
    counts: Vec<u8>,
    above: Above,
}

impl Counts {
    /// The context of the block at `x`, `y` from its neighbours (9.2.1).
    fn context(&self, x: usize, y: usize) -> Context {
        let at = y * self.stride + x;
        let left = (x > 0).then(|| self.counts[at - 1]);
        let above = match self.above {
            _ if y > 0 => Some(self.counts[at - self.stride]),
            Above::MotionCoded => Some(0),
            Above::Nothing => None,
        };
        Context::Neighbours(match (left, above) {
            (Some(left), Some(above)) => (left + above).div_ceil(2),
            (Some(count), None) | (None, Some(count)) => count,
            (None, None) => 0,
        })
    }

    /// Writes the AC coefficients of the block at `x`, `y`.
    fn code(&mut self, bits: &mut BitWriter, block: &Block, x: usize, y: usize) {
        let levels = ZIGZAG.map(|at| block[at]);
        let count = cavlc::write_block(bits, &levels[1..], self.context(x, y));
        self.counts[y * self.stride + x] = count;
    }
}

fn read_square<const N: usize, const PIXELS: usize>(
    plane: &Plane,
    x: usize,
    y: usize,
) -> [u8; PIXELS] {
    let mut pixels = [0; PIXELS];
    for (row, pixels) in pixels.chunks_exact_mut(N).enumerate() {
        pixels.copy_from_slice(&plane.row(y + row)[x..][..N]);
    }
    pixels
}

fn write_square<const N: usize>(plane: &mut Plane, x: usize, y: usize, pixels: &[u8]) {
    for (row, pixels) in pixels.chunks_exact(N).enumerate() {
        plane.row_mut(y + row)[x..][..N].copy_from_slice(pixels);
    }
}

/// The neighbouring pixels of a square that are inside the frame.
fn edges<const N: usize>(plane: &Plane, x: usize, y: usize) -> Edges<N> {
    let mut edges = Edges {
        above: None,
        left: None,
        corner: 0,
    };
    if y > 0 {
        let mut row = [0; N];
        row.copy_from_slice(&plane.row(y - 1)[x..][..N]);
        edges.above = Some(row);
    }
    if x > 0 {
        edges.left = Some(std::array::from_fn(|row| plane.row(y + row)[x - 1]));
    }
    if x > 0 && y > 0 {
        edges.corner = plane.row(y - 1)[x - 1];
    }
    edges
}

fn sum_of_differences(source: &[u8], prediction: &[u8]) -> u32 {
    source
        .iter()
        .zip(prediction)
        .map(|(&a, &b)| u32::from(a.abs_diff(b)))
        .sum()
}

/// Transforms the residual in squares of `SIDE` x `SIDE` blocks. Returns the DC coefficients unquantised and the others quantised.
fn transform_residual<const BLOCKS: usize, const SIDE: usize>(
    source: &[u8],
    prediction: &[u8],
    quantiser: Quantiser,
) -> ([i32; BLOCKS], [Block; BLOCKS]) {
    let mut dc = [0; BLOCKS];
    let mut ac = [[0; 16]; BLOCKS];
    for (at, (dc, block)) in dc.iter_mut().zip(&mut ac).enumerate() {
        for (pixel, value) in block.iter_mut().enumerate() {
            let at = pixel_index::<SIDE>(at, pixel);
            *value = i32::from(source[at]) - i32::from(prediction[at]);
        }
        transform::forward(block);
        *dc = block[0];
        quantiser.quantise_ac(block);
    }
    (dc, ac)
}

/// The pixels that a decoder reconstructs from prediction and coefficients.
fn reconstruct<const BLOCKS: usize, const SIDE: usize, const PIXELS: usize>(
    prediction: &[u8; PIXELS],
    dc: &[i32; BLOCKS],
    ac: &[Block; BLOCKS],
    quantiser: Quantiser,
) -> [u8; PIXELS] {
    let mut pixels = *prediction;
    for (at, (dc, levels)) in dc.iter().zip(ac).enumerate() {
        let mut block = *levels;
        quantiser.restore_ac(&mut block);
        block[0] = *dc;
        transform::inverse(&mut block);
        for (pixel, value) in block.iter().enumerate() {
            let pixel = &mut pixels[pixel_index::<SIDE>(at, pixel)];
            *pixel = (i32::from(*pixel) + ((value + 32) >> 6)).clamp(0, 255) as u8;
        }
    }
    pixels
}

/// Index of pixel `pixel` of block `block` in a square of `SIDE` x `SIDE` blocks.
fn pixel_index<const SIDE: usize>(block: usize, pixel: usize) -> usize {
    let (x, y) = (block % SIDE * 4 + pixel % 4, block / SIDE * 4 + pixel / 4);
    y * SIDE * 4 + x
}
