//! Writes blocks of coefficients with context-adaptive variable-length coding (ITU-T H.264, 9.2).

use super::bit_writer::BitWriter;
use super::code_tables::{CODES, Code};

/// The context that selects the code table of `coeff_token`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// nC: the mean number of coefficients of the neighbouring blocks.
    Neighbours(u8),
    /// The four DC coefficients of a chroma plane.
    ChromaDc,
}

/// Writes `levels`, in zigzag order; the length of the slice is the size of the block. Returns the number of nonzero levels.
pub(super) fn write_block(bits: &mut BitWriter, levels: &[i32], context: Context) -> u8 {
    let mut values = [0; 16];
    let mut runs = [0; 16];
    let (mut total, mut run) = (0, 0);
    for &level in levels {
        if level == 0 {
            run += 1;
        } else {
            (values[total], runs[total]) = (level, run);
            (total, run) = (total + 1, 0);
        }
    }
    let (values, runs) = (&values[..total], &runs[..total]);
    let ones = values
        .iter()
        .rev()
        .take(3)
        .take_while(|value| value.abs() == 1)
        .count();
    write_coeff_token(bits, total, ones, context);
    if total > 0 {
        for value in values.iter().rev().take(ones) {
            bits.flag(*value < 0);
        }
        write_levels(bits, values, ones);
        write_zero_runs(bits, runs, levels.len());
    }
    total as u8
}

fn write_code(bits: &mut BitWriter, code: Code) {
    bits.put(u32::from(code.bits), u32::from(code.length));
}

/// Writes `coeff_token`: the number of nonzero coefficients, and of trailing ones (1 or -1).
fn write_coeff_token(bits: &mut BitWriter, total: usize, ones: usize, context: Context) {
    let column = match context {
        Context::Neighbours(0..2) => 0,
        Context::Neighbours(2..4) => 1,
        Context::Neighbours(4..8) => 2,
        Context::Neighbours(_) if total == 0 => return bits.put(0b11, 6),
        Context::Neighbours(_) => return bits.put(((total - 1) << 2 | ones) as u32, 6),
        Context::ChromaDc => 3,
    };
    write_code(bits, CODES.coeff_token[column][total][ones]);
}

/// Writes the levels before the trailing ones, from the highest frequency down. With a quantisation parameter of 12 or more, none
/// needs more than the 12 bits of the escape code.
fn write_levels(bits: &mut BitWriter, values: &[i32], ones: usize) {
    let mut suffix = u32::from(values.len() > 10 && ones < 3);
    for (at, &value) in values.iter().rev().skip(ones).enumerate() {
        let mut code = (value.unsigned_abs() << 1) - 2 + u32::from(value < 0);
        if at == 0 && ones < 3 {
            // The level is not 1 or -1, otherwise it would be a trailing one.
            code -= 2;
        }
        let escape = if suffix == 0 { 30 } else { 15 << suffix };
        if code >= escape {
            bits.put(1, 16);
            bits.put(code - escape, 12);
        } else if suffix > 0 {
            bits.put(1, (code >> suffix) + 1);
            bits.put(code & ((1 << suffix) - 1), suffix);
        } else if code >= 14 {
            bits.put(1, 15);
            bits.put(code - 14, 4);
        } else {
            bits.put(1, code + 1);
        }
        suffix = suffix.max(1);
        if value.unsigned_abs() > 3 << (suffix - 1) && suffix < 6 {
            suffix += 1;
        }
    }
}

/// Writes `total_zeros` and the runs of zeros before each coefficient.
fn write_zero_runs(bits: &mut BitWriter, runs: &[usize], block_size: usize) {
    let mut left: usize = runs.iter().sum();
    if runs.len() < block_size {
        let table = if block_size == 4 {
            &CODES.chroma_dc_zeros
        } else {
            &CODES.total_zeros
        };
        write_code(bits, table[runs.len() - 1][left]);
    }
    for &run in runs.iter().skip(1).rev() {
        if left == 0 {
            break;
        }
        write_code(bits, CODES.run_before[left.min(7) - 1][run]);
        left -= run;
    }
}
