//! The integer transforms of ITU-T H.264 (8.5) and quantisation, forward and inverse. Blocks are 4x4 in raster order unless noted.

/// The zigzag scan, as raster positions.
pub(super) const ZIGZAG: [usize; 16] = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];

pub(super) type Block = [i32; 16];

/// Inverse quantisation factors by `qp % 6`, at (even, even), (odd, odd) and other positions.
const INVERSE_FACTORS: [[i32; 3]; 6] = [
    [10, 16, 13],
    [11, 18, 14],
    [13, 20, 16],
    [14, 23, 18],
    [16, 25, 20],
    [18, 29, 23],
];

/// Forward quantisation factors by `qp % 6`, in 1/32768.
const FORWARD_FACTORS: [[i32; 3]; 6] = [
    [13107, 5243, 8066],
    [11916, 4660, 7490],
    [10082, 4194, 6554],
    [9362, 3647, 5825],
    [8192, 3355, 5243],
    [7282, 2893, 4559],
];

/// The index of each position's factor in [`INVERSE_FACTORS`] and [`FORWARD_FACTORS`].
const CLASS: [usize; 16] = [0, 2, 0, 2, 2, 1, 2, 1, 0, 2, 0, 2, 2, 1, 2, 1];

/// A quantiser for one quantisation parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantiser {
    forward_factors: [i32; 3],
    inverse_factors: [i32; 3],
    /// `qp / 6`: the step size doubles with each.
    octave: i32,
}

impl Quantiser {
    /// The quantiser of luma parameter `qp`, 0 to 51.
    pub(super) fn luma(qp: i32) -> Self {
        let octave = qp / 6;
        let within = (qp % 6) as usize;
        Self {
            forward_factors: FORWARD_FACTORS[within],
            inverse_factors: INVERSE_FACTORS[within],
            octave,
        }
    }

    /// The quantiser of chroma if luma has `qp` (table 8-15, no offset).
    pub(super) fn chroma(qp: i32) -> Self {
        const ABOVE_29: [i32; 22] = [
            29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39,
        ];
        Self::luma(if qp < 30 {
            qp
        } else {
            ABOVE_29[(qp - 30) as usize]
        })
    }

    /// Quantises all but the first coefficient of a transformed block.
    pub(super) fn quantise_ac(self, block: &mut Block) {
        let shift = 15 + self.octave;
        // Rounds down below two thirds, which saves bits for noise.
        let third = (1 << shift) / 3;
        for (value, class) in block.iter_mut().zip(CLASS).skip(1) {
            let level = (value.abs() * self.forward_factors[class] + third) >> shift;
            *value = level * value.signum();
        }
    }

    /// Reverses the scaling of [`Self::quantise_ac`], as a decoder does.
    pub(super) fn restore_ac(self, block: &mut Block) {
        for (value, class) in block.iter_mut().zip(CLASS).skip(1) {
            *value = (*value * self.inverse_factors[class]) << self.octave;
        }
    }

    /// Quantises one value of a transformed block of DC coefficients.
    fn quantise_dc(self, value: i32) -> i32 {
        let shift = 16 + self.octave;
        let third = (1 << shift) / 3;
        ((value.abs() * self.forward_factors[0] + third) >> shift) * value.signum()
    }

    /// Transforms and quantises the DC coefficients of the sixteen blocks of a macroblock.
    pub(super) fn quantise_luma_dc(self, dc: &Block) -> Block {
        hadamard(dc).map(|value| self.quantise_dc((value + (value > 0) as i32) / 2))
    }

    /// The DC coefficients of the sixteen blocks that a decoder restores from their levels.
    pub(super) fn restore_luma_dc(self, levels: &Block) -> Block {
        let scale = self.inverse_factors[0] << self.octave;
        hadamard(levels).map(|value| (value * scale + 2) >> 2)
    }

    /// Transforms and quantises the DC coefficients of the four blocks of one chroma plane.
    pub(super) fn quantise_chroma_dc(self, dc: [i32; 4]) -> [i32; 4] {
        hadamard_2x2(dc).map(|value| self.quantise_dc(value))
    }

    /// The DC coefficients of the four blocks of one chroma plane that a decoder restores from their levels.
    pub(super) fn restore_chroma_dc(self, levels: [i32; 4]) -> [i32; 4] {
        let scale = self.inverse_factors[0] << self.octave;
        hadamard_2x2(levels).map(|value| (value * scale) >> 1)
    }
}

/// The forward core transform.
pub(super) fn forward(block: &mut Block) {
    let step = |a: i32, b: i32, c: i32, d: i32| {
        let (outer, inner) = (a + d, b + c);
        let (across, between) = (a - d, b - c);
        [
            outer + inner,
            2 * across + between,
            outer - inner,
            across - 2 * between,
        ]
    };
    apply_to_rows_and_columns(block, step);
}

/// The inverse core transform, without the final rounding.
pub(super) fn inverse(block: &mut Block) {
    let step = |a: i32, b: i32, c: i32, d: i32| {
        let (sum, difference) = (a + c, a - c);
        let (low, high) = ((b >> 1) - d, b + (d >> 1));
        [sum + high, difference + low, difference - low, sum - high]
    };
    apply_to_rows_and_columns(block, step);
}

/// The 4x4 Hadamard transform; its own inverse except for a factor of 16.
fn hadamard(block: &Block) -> Block {
    let step = |a: i32, b: i32, c: i32, d: i32| {
        let (outer, inner) = (a + d, b + c);
        let (across, between) = (a - d, b - c);
        [
            outer + inner,
            across + between,
            outer - inner,
            across - between,
        ]
    };
    let mut result = *block;
    apply_to_rows_and_columns(&mut result, step);
    result
}

fn hadamard_2x2([a, b, c, d]: [i32; 4]) -> [i32; 4] {
    [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d]
}

/// Applies `step` to each row, then to each column.
fn apply_to_rows_and_columns(block: &mut Block, step: impl Fn(i32, i32, i32, i32) -> [i32; 4]) {
    for row in block.chunks_exact_mut(4) {
        let transformed = step(row[0], row[1], row[2], row[3]);
        row.copy_from_slice(&transformed);
    }
    for x in 0..4 {
        let transformed = step(block[x], block[4 + x], block[8 + x], block[12 + x]);
        for (y, value) in transformed.into_iter().enumerate() {
            block[y * 4 + x] = value;
        }
    }
}
