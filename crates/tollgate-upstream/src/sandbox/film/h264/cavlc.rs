//! Writes blocks of coefficients: context-adaptive variable-length coding (ITU-T H.264, 9.2).

use super::bits::Bits;
use super::words::{WORDS, Word};

/// Which words a block's `coeff_token` is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// About so many coefficients are expected, from what the neighbours have.
    Expect(u8),
    /// The four DC coefficients of a chroma plane.
    ChromaDc,
}

/// Writes `levels`, in the order of the zigzag; the slice is as long as the block can be. Gives the
/// number of those that are not zero.
pub(super) fn block(bits: &mut Bits, levels: &[i32], context: Context) -> u8 {
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
    token(bits, total, ones, context);
    if total > 0 {
        for value in values.iter().rev().take(ones) {
            bits.flag(*value < 0);
        }
        magnitudes(bits, values, ones);
        zeros(bits, runs, levels.len());
    }
    total as u8
}

fn word(bits: &mut Bits, word: Word) {
    bits.put(u32::from(word.bits), u32::from(word.length));
}

/// `coeff_token`: how many coefficients there are, and how many of the last are 1 or -1.
fn token(bits: &mut Bits, total: usize, ones: usize, context: Context) {
    let column = match context {
        Context::Expect(0..2) => 0,
        Context::Expect(2..4) => 1,
        Context::Expect(4..8) => 2,
        Context::Expect(_) if total == 0 => return bits.put(0b11, 6),
        Context::Expect(_) => return bits.put(((total - 1) << 2 | ones) as u32, 6),
        Context::ChromaDc => 3,
    };
    word(bits, WORDS.coeff_token[column][total][ones]);
}

/// The levels before the trailing ones, from the highest frequency down. Quantisers of parameter 12
/// and above leave none that needs more than the 12 bits of the escape.
fn magnitudes(bits: &mut Bits, values: &[i32], ones: usize) {
    let mut suffix = u32::from(values.len() > 10 && ones < 3);
    for (at, &value) in values.iter().rev().skip(ones).enumerate() {
        let mut code = (value.unsigned_abs() << 1) - 2 + u32::from(value < 0);
        if at == 0 && ones < 3 {
            // It cannot be 1 or -1: that would have been one more trailing one.
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

/// Where the zeros lie among the coefficients.
fn zeros(bits: &mut Bits, runs: &[usize], longest: usize) {
    let mut left: usize = runs.iter().sum();
    if runs.len() < longest {
        let table = if longest == 4 {
            &WORDS.chroma_dc_zeros
        } else {
            &WORDS.total_zeros
        };
        word(bits, table[runs.len() - 1][left]);
    }
    for &run in runs.iter().skip(1).rev() {
        if left == 0 {
            break;
        }
        word(bits, WORDS.run_before[left.min(7) - 1][run]);
        left -= run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads what [`block`] wrote, by the standard's clauses 9.2.1 to 9.2.4.
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

        /// The place in `words` of the one that comes next.
        fn word(&mut self, words: &[Word]) -> usize {
            let rest = &self.bits[self.at..];
            let found = words.iter().position(|word| {
                let length = usize::from(word.length);
                let starts =
                    |at: usize| rest.get(at) == Some(&(word.bits >> (length - 1 - at) & 1 == 1));
                length > 0 && (0..length).all(starts)
            });
            let found = found.expect("a word of the table");
            self.at += usize::from(words[found].length);
            found
        }

        fn block(&mut self, length: usize, context: Context) -> Vec<i32> {
            let (total, ones) = match context {
                Context::Expect(8..) => match self.number(6) {
                    0b11 => (0, 0),
                    token => ((token >> 2) as usize + 1, (token & 3) as usize),
                },
                Context::Expect(count @ 2..) => self.token(count.ilog2() as usize),
                Context::Expect(_) => self.token(0),
                Context::ChromaDc => self.token(3),
            };
            let mut levels = vec![0; length];
            if total == 0 {
                return levels;
            }
            let values = self.values(total, ones);
            let mut left = match (total == length, length) {
                (true, _) => 0,
                (false, 4) => self.word(&WORDS.chroma_dc_zeros[total - 1]),
                (false, _) => self.word(&WORDS.total_zeros[total - 1]),
            };
            let mut place = total + left;
            for (at, value) in values.into_iter().enumerate() {
                place -= 1;
                levels[place] = value;
                if left > 0 && at + 1 < total {
                    let run = self.word(&WORDS.run_before[left.min(7) - 1]);
                    (place, left) = (place - run, left - run);
                }
            }
            levels
        }

        fn token(&mut self, column: usize) -> (usize, usize) {
            let place = self.word(WORDS.coeff_token[column].as_flattened());
            (place / 4, place % 4)
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
    fn what_is_written_can_be_read() {
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
                1 => (15, Context::Expect(roll(17) as u8)),
                _ => (16, Context::Expect(roll(17) as u8)),
            };
            let (density, largest) = (roll(11), [1, 2, 8, 40, 2000][roll(5) as usize]);
            let levels: Vec<i32> = (0..length)
                .map(|_| match roll(10) < density {
                    true => roll(2 * largest + 1) as i32 - largest as i32,
                    false => 0,
                })
                .collect();
            let mut bits = Bits::default();
            let count = block(&mut bits, &levels, context);
            assert_eq!(
                usize::from(count),
                levels.iter().filter(|&&level| level != 0).count()
            );
            let unit = bits.finish(super::super::bits::Unit::Slice);
            let mut reader = Reader {
                bits: unpack(&unit),
                at: 0,
            };
            assert_eq!(reader.block(length, context), levels, "{context:?}");
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
