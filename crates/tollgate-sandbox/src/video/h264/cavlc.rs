//! Writes blocks of coefficients with context-adaptive variable-length coding (ITU-T H.264, 9.2).

use super::bit_writer::BitWriter;
use super::code_tables::{CODES, Code};

/// What the code table of `coeff_token` depends on.
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
            // It is not 1 or -1, or it would be a trailing one.
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
fn write_zero_runs(bits: &mut BitWriter, runs: &[usize], longest: usize) {
    let mut left: usize = runs.iter().sum();
    if runs.len() < longest {
        let table = if longest == 4 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads what [`write_block`] wrote, by the standard's clauses 9.2.1 to 9.2.4.
    struct Reader {
        bits: Vec<bool>,
        at: usize,
    }

    impl Reader {
        fn number(&mut self, count: u32) -> i32 {
            let mut value = 0;
            for _ in 0..count {
                value = value << 1 | i32::from(self.bits[self.at]);
                self.at += 1;
            }
            value
        }

        /// The position in `codes` of the one that comes next.
        fn code(&mut self, codes: &[Code]) -> usize {
            let rest = &self.bits[self.at..];
            let found = codes.iter().position(|code| {
                let length = usize::from(code.length);
                let starts =
                    |at: usize| rest.get(at) == Some(&(code.bits >> (length - 1 - at) & 1 == 1));
                length > 0 && (0..length).all(starts)
            });
            let found = found.expect("a word of the table");
            self.at += usize::from(codes[found].length);
            found
        }

        fn read_block(&mut self, length: usize, context: Context) -> Vec<i32> {
            let (total, ones) = match context {
                Context::Neighbours(8..) => match self.number(6) {
                    0b11 => (0, 0),
                    token => ((token >> 2) as usize + 1, (token & 3) as usize),
                },
                Context::Neighbours(count @ 2..) => self.token(count.ilog2() as usize),
                Context::Neighbours(_) => self.token(0),
                Context::ChromaDc => self.token(3),
            };
            let mut levels = vec![0; length];
            if total == 0 {
                return levels;
            }
            let values = self.values(total, ones);
            let mut left = match (total == length, length) {
                (true, _) => 0,
                (false, 4) => self.code(&CODES.chroma_dc_zeros[total - 1]),
                (false, _) => self.code(&CODES.total_zeros[total - 1]),
            };
            let mut position = total + left;
            for (at, value) in values.into_iter().enumerate() {
                position -= 1;
                levels[position] = value;
                if left > 0 && at + 1 < total {
                    let run = self.code(&CODES.run_before[left.min(7) - 1]);
                    (position, left) = (position - run, left - run);
                }
            }
            levels
        }

        fn token(&mut self, column: usize) -> (usize, usize) {
            let position = self.code(CODES.coeff_token[column].as_flattened());
            (position / 4, position % 4)
        }

        fn values(&mut self, total: usize, ones: usize) -> Vec<i32> {
            let mut values: Vec<i32> = (0..ones).map(|_| 1 - 2 * self.number(1)).collect();
            let mut suffix = u32::from(total > 10 && ones < 3);
            for at in ones..total {
                let mut prefix = 0;
                while self.number(1) == 0 {
                    prefix += 1;
                }
                let size = match (prefix, suffix) {
                    (14, 0) => 4,
                    (15, _) => 12,
                    _ => suffix,
                };
                let mut code = (prefix.min(15) << suffix) + self.number(size);
                if prefix == 15 && suffix == 0 {
                    code += 15;
                }
                if at == ones && ones < 3 {
                    code += 2;
                }
                let value = if code % 2 == 0 {
                    (code + 2) >> 1
                } else {
                    (-code - 1) >> 1
                };
                values.push(value);
                suffix = suffix.max(1);
                if value.abs() > 3 << (suffix - 1) && suffix < 6 {
                    suffix += 1;
                }
            }
            values
        }
    }

    #[test]
    fn written_blocks_can_be_decoded() {
        let mut state = 1u64;
        let mut roll = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for round in 0..20_000 {
            let (length, context) = match round % 3 {
                0 => (4, Context::ChromaDc),
                1 => (15, Context::Neighbours(roll(17) as u8)),
                _ => (16, Context::Neighbours(roll(17) as u8)),
            };
            let (density, largest) = (roll(11), [1, 2, 8, 40, 2000][roll(5) as usize]);
            let levels: Vec<i32> = (0..length)
                .map(|_| match roll(10) < density {
                    true => roll(2 * largest + 1) as i32 - largest as i32,
                    false => 0,
                })
                .collect();
            let mut bits = BitWriter::default();
            let count = write_block(&mut bits, &levels, context);
            assert_eq!(
                usize::from(count),
                levels.iter().filter(|&&level| level != 0).count()
            );
            let unit = bits.finish(super::super::bit_writer::NalKind::Slice);
            let mut reader = Reader {
                bits: unpack(&unit),
                at: 0,
            };
            assert_eq!(reader.read_block(length, context), levels, "{context:?}");
            assert_eq!(reader.number(1), 1, "nothing is left but the end");
        }
    }

    /// The bits of a NAL unit's payload.
    fn unpack(unit: &[u8]) -> Vec<bool> {
        let (mut bytes, mut zeros) = (Vec::new(), 0);
        for &byte in &unit[1..] {
            let escape = byte == 3 && zeros == 2;
            if !escape {
                bytes.push(byte);
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
        }
        let bits = bytes
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 1));
        bits.collect()
    }
}
