//! Macroblocks that need no other picture: a guess from their neighbours and, quantised, what the
//! guess misses.

use super::super::frame::{Frame, Plane};
use super::bits::Bits;
use super::cavlc::{self, Context};
use super::predict::{self, Edges, Mode};
use super::transform::{self, Block, Quantiser, ZIGZAG};

/// What is above the first row of a frame that is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Above {
    /// The end of the picture.
    Nothing,
    /// Macroblocks that were moved from another picture: not to guess from, and without coefficients.
    Moved,
}

/// The pixels of a square of a macroblock in one plane, and the best guess at them.
struct Guess<const PIXELS: usize> {
    mode: Mode,
    guess: [u8; PIXELS],
}

/// Quantised coefficients of one plane's part of a macroblock: its blocks in raster order.
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

/// Codes a frame, macroblock by macroblock in raster order, and leaves in it what a decoder will see
/// (before deblocking).
pub(super) struct IntraCoder<'a> {
    frame: &'a mut Frame,
    luma: Quantiser,
    chroma: Quantiser,
    /// How many coefficients each 4x4 block has, by plane.
    counts: [Counts; 3],
}

impl<'a> IntraCoder<'a> {
    /// A coder for `frame` with quantisation parameter `qp`, 12 to 51.
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

    /// Codes the next macroblock as type `Intra16x16`. `first_type` is the number that the type
    /// `I_NxN` has in this kind of slice.
    pub(super) fn macroblock(
        &mut self,
        bits: &mut Bits,
        column: usize,
        row: usize,
        first_type: u32,
    ) {
        let (luma_mode, luma) = self.code_luma(column, row);
        let (chroma_mode, chroma) = self.code_chroma(column, row);
        let details = luma.has_ac();
        let chroma_pattern = if chroma.iter().any(Levels::has_ac) {
            2
        } else {
            u32::from(chroma.iter().any(Levels::has_dc))
        };
        let kind = 1 + luma_mode.luma() + 4 * chroma_pattern + 12 * u32::from(details);
        bits.unsigned(first_type + kind);
        bits.unsigned(chroma_mode.chroma());
        bits.signed(0); // mb_qp_delta

        let context = self.counts[0].context(column * 4, row * 4);
        cavlc::block(bits, &ZIGZAG.map(|at| luma.dc[at]), context);
        if details {
            for at in 0..16 {
                // The blocks of each quarter stand together.
                let (x, y) = (at & 1 | at >> 1 & 2, at >> 1 & 1 | at >> 2 & 2);
                self.counts[0].code(bits, &luma.ac[y * 4 + x], column * 4 + x, row * 4 + y);
            }
        }
        if chroma_pattern > 0 {
            for plane in &chroma {
                cavlc::block(bits, &plane.dc, Context::ChromaDc);
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
        let source: [u8; 256] = read::<16, 256>(plane, x, y);
        let edges = edges::<16>(plane, x, y);
        let modes = Mode::ALL.into_iter().filter_map(|mode| {
            let guess = predict::luma(&edges, mode)?;
            Some((distance(&source, &guess), Guess { mode, guess }))
        });
        let (_, Guess { mode, guess }) = modes
            .min_by_key(|(distance, _)| *distance)
            .expect("the mean needs no edge");
        let (dc, ac) = analyse::<16, 4>(&source, &guess, self.luma);
        let levels = Levels {
            dc: self.luma.quantise_luma_dc(&dc),
            ac,
        };
        let dc = self.luma.restore_luma_dc(&levels.dc);
        let seen = restore::<16, 4, 256>(&guess, &dc, &levels.ac, self.luma);
        write::<16>(plane, x, y, &seen);
        (mode, levels)
    }

    /// Both chroma planes, which share their mode.
    fn code_chroma(&mut self, column: usize, row: usize) -> (Mode, [Levels<4>; 2]) {
        let (x, y) = (column * 8, row * 8);
        let planes = &self.frame.chroma;
        let sources = [0, 1].map(|at| read::<8, 64>(&planes[at], x, y));
        let edges = [0, 1].map(|at| edges::<8>(&planes[at], x, y));
        let modes = Mode::ALL.into_iter().filter_map(|mode| {
            let guesses = [
                predict::chroma(&edges[0], mode)?,
                predict::chroma(&edges[1], mode)?,
            ];
            let distance = distance(&sources[0], &guesses[0]) + distance(&sources[1], &guesses[1]);
            Some((distance, mode, guesses))
        });
        let (_, mode, guesses) = modes
            .min_by_key(|(distance, _, _)| *distance)
            .expect("the mean needs no edge");
        let levels = [0, 1].map(|at| {
            let (dc, ac) = analyse::<4, 2>(&sources[at], &guesses[at], self.chroma);
            let dc = self.chroma.quantise_chroma_dc(dc);
            let levels = Levels { dc, ac };
            let dc = self.chroma.restore_chroma_dc(dc);
            let seen = restore::<4, 2, 64>(&guesses[at], &dc, &levels.ac, self.chroma);
            write::<8>(&mut self.frame.chroma[at], x, y, &seen);
            levels
        });
        (mode, levels)
    }
}

/// How many coefficients the blocks of a plane have: what `coeff_token` is chosen by.
struct Counts {
    stride: usize,
    counts: Vec<u8>,
    above: Above,
}

impl Counts {
    /// What the neighbours of the block at `x`, `y` let expect (9.2.1).
    fn context(&self, x: usize, y: usize) -> Context {
        let at = y * self.stride + x;
        let left = (x > 0).then(|| self.counts[at - 1]);
        let above = match self.above {
            _ if y > 0 => Some(self.counts[at - self.stride]),
            Above::Moved => Some(0),
            Above::Nothing => None,
        };
        Context::Expect(match (left, above) {
            (Some(left), Some(above)) => (left + above).div_ceil(2),
            (Some(count), None) | (None, Some(count)) => count,
            (None, None) => 0,
        })
    }

    /// Writes the AC coefficients of the block at `x`, `y`.
    fn code(&mut self, bits: &mut Bits, block: &Block, x: usize, y: usize) {
        let levels = ZIGZAG.map(|at| block[at]);
        let count = cavlc::block(bits, &levels[1..], self.context(x, y));
        self.counts[y * self.stride + x] = count;
    }
}

fn read<const N: usize, const PIXELS: usize>(plane: &Plane, x: usize, y: usize) -> [u8; PIXELS] {
    let mut pixels = [0; PIXELS];
    for (row, pixels) in pixels.chunks_exact_mut(N).enumerate() {
        pixels.copy_from_slice(&plane.row(y + row)[x..][..N]);
    }
    pixels
}

fn write<const N: usize>(plane: &mut Plane, x: usize, y: usize, pixels: &[u8]) {
    for (row, pixels) in pixels.chunks_exact(N).enumerate() {
        plane.row_mut(y + row)[x..][..N].copy_from_slice(pixels);
    }
}

/// What a square may be guessed from: never from outside the frame, even where the picture goes on.
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

fn distance(source: &[u8], guess: &[u8]) -> u32 {
    source
        .iter()
        .zip(guess)
        .map(|(&a, &b)| u32::from(a.abs_diff(b)))
        .sum()
}

/// Transforms what `guess` misses, in squares of `SIDE` x `SIDE` blocks; gives the DC coefficients as
/// they are and the others quantised.
fn analyse<const BLOCKS: usize, const SIDE: usize>(
    source: &[u8],
    guess: &[u8],
    quantiser: Quantiser,
) -> ([i32; BLOCKS], [Block; BLOCKS]) {
    let mut dc = [0; BLOCKS];
    let mut ac = [[0; 16]; BLOCKS];
    for (at, (dc, block)) in dc.iter_mut().zip(&mut ac).enumerate() {
        for (pixel, value) in block.iter_mut().enumerate() {
            let at = place::<SIDE>(at, pixel);
            *value = i32::from(source[at]) - i32::from(guess[at]);
        }
        transform::forward(block);
        *dc = block[0];
        quantiser.quantise_ac(block);
    }
    (dc, ac)
}

/// The pixels that a decoder makes of a guess and coefficients.
fn restore<const BLOCKS: usize, const SIDE: usize, const PIXELS: usize>(
    guess: &[u8; PIXELS],
    dc: &[i32; BLOCKS],
    ac: &[Block; BLOCKS],
    quantiser: Quantiser,
) -> [u8; PIXELS] {
    let mut pixels = *guess;
    for (at, (dc, levels)) in dc.iter().zip(ac).enumerate() {
        let mut block = *levels;
        quantiser.restore_ac(&mut block);
        block[0] = *dc;
        transform::inverse(&mut block);
        for (pixel, value) in block.iter().enumerate() {
            let pixel = &mut pixels[place::<SIDE>(at, pixel)];
            *pixel = (i32::from(*pixel) + ((value + 32) >> 6)).clamp(0, 255) as u8;
        }
    }
    pixels
}

/// Where pixel `pixel` of block `block` stands in a square of `SIDE` x `SIDE` blocks.
fn place<const SIDE: usize>(block: usize, pixel: usize) -> usize {
    let (x, y) = (block % SIDE * 4 + pixel % 4, block / SIDE * 4 + pixel / 4);
    y * SIDE * 4 + x
}
