//! The code tables of CAVLC: tables 9-5, 9-7, 9-8, 9-9 and 9-10 of ITU-T H.264.

use std::sync::LazyLock;

/// One code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) bits: u16,
    /// The number of bits; 0 if there is no such code.
    pub(super) length: u8,
}

impl Code {
    fn from_digits(text: &str) -> Self {
        let bits = text
            .bytes()
            .fold(0, |bits, digit| bits << 1 | u16::from(digit == b'1'));
        Self {
            bits,
            length: text.len() as u8,
        }
    }
}

/// All codes, by their meaning.
pub(super) struct CodeTables {
    /// By column of table 9-5 (nC 0-1, 2-3, 4-7, chroma DC), number of coefficients, trailing ones.
    pub(super) coeff_token: [[[Code; 4]; 17]; 4],
    /// By number of coefficients (from 1) and zeros before the last.
    pub(super) total_zeros: Vec<Vec<Code>>,
    /// The `total_zeros` codes for the four coefficients of a chroma DC block.
    pub(super) chroma_dc_zeros: Vec<Vec<Code>>,
    /// By zeros left (from 1, all above 6 together) and zeros before this coefficient.
    pub(super) run_before: Vec<Vec<Code>>,
}

/// The codes, parsed once.
pub(super) static CODES: LazyLock<CodeTables> = LazyLock::new(|| CodeTables {
    coeff_token: parse_coeff_token(),
    total_zeros: parse_rows(TOTAL_ZEROS),
    chroma_dc_zeros: parse_rows(CHROMA_DC_ZEROS),
    run_before: parse_rows(RUN_BEFORE),
});

fn parse_coeff_token() -> [[[Code; 4]; 17]; 4] {
    let mut codes = [[[Code::default(); 4]; 17]; 4];
    for line in COEFF_TOKEN.lines() {
        let mut cells = line.split_whitespace();
        let mut number = || cells.next().and_then(|cell| cell.parse::<usize>().ok());
        let (Some(ones), Some(total)) = (number(), number()) else {
            continue;
        };
        for (column, cell) in cells.enumerate() {
            codes[column][total][ones] = Code::from_digits(cell);
        }
    }
    codes
}

fn parse_rows(table: &str) -> Vec<Vec<Code>> {
    table
        .trim()
        .lines()
        .map(|line| line.split_whitespace().map(Code::from_digits).collect())
        .collect()
}

/// Trailing ones, coefficients, and the codes for nC 0-1, 2-3, 4-7 and -1. (The codes for nC 8 and more
/// are plain numbers and need no table.)
const COEFF_TOKEN: &str = "
0  0  1                11             1111       01
0  1  000101           001011         001111     000111
0  2  00000111         000111         001011     000100
0  3  000000111        0000111        001000     000011
0  4  0000000111       00000111       0001111    000010
0  5  00000000111      00000100       0001011
0  6  0000000001111    000000111      0001001
0  7  0000000001011    00000001111    0001000
0  8  0000000001000    00000001011    00001111
0  9  00000000001111   000000001111   00001011
0 10  00000000001011   000000001011   000001111
0 11  000000000001111  000000001000   000001011
0 12  000000000001011  0000000001111  000001000
0 13  0000000000001111 0000000001011  0000001101
0 14  0000000000001011 0000000000111  0000001001
0 15  0000000000000111 00000000001001 0000000101
0 16  0000000000000100 00000000000111 0000000001
1  1  01               10             1110       1
1  2  000100           00111          01111      000110
1  3  00000110         001010         01100      0000011
1  4  000000110        000110         01010      00000011
1  5  0000000110       0000110        01000
1  6  00000000110      00000110       001110
1  7  0000000001110    000000110      001010
1  8  0000000001010    00000001110    0001110
1  9  00000000001110   00000001010    00001110
1 10  00000000001010   000000001110   00001010
1 11  000000000001110  000000001010   000001110
1 12  000000000001010  0000000001110  000001010
1 13  000000000000001  0000000001010  000000111
1 14  0000000000001110 00000000001011 0000001100
1 15  0000000000001010 00000000001000 0000001000
1 16  0000000000000110 00000000000110 0000000100
2  2  001              011            1101       001
2  3  0000101          001001         01110      0000010
2  4  00000101         000101         01011      00000010
2  5  000000101        0000101        01001
2  6  0000000101       00000101       001101
2  7  00000000101      000000101      001001
2  8  0000000001101    00000001101    0001101
2  9  0000000001001    00000001001    0001010
2 10  00000000001101   000000001101   00001101
2 11  00000000001001   000000001001   00001001
2 12  000000000001101  0000000001101  000001101
2 13  000000000001001  0000000001001  000001001
2 14  0000000000001101 0000000000110  0000001011
2 15  0000000000001001 00000000001010 0000000111
2 16  0000000000000101 00000000000101 0000000011
3  3  00011            0101           1100       000101
3  4  000011           0100           1011       0000000
3  5  0000100          00110          1010
3  6  00000100         001000         1001
3  7  000000100        000100         1000
3  8  0000000100       0000100        01101
3  9  00000000100      000000100      001100
3 10  0000000001100    00000001100    0001100
3 11  00000000001100   00000001000    00001100
3 12  00000000001000   000000001100   00001000
3 13  000000000001100  0000000001100  000001100
3 14  000000000001000  0000000001000  0000001010
3 15  0000000000001100 0000000000001  0000000110
3 16  0000000000001000 00000000000100 0000000010
";

/// Each line is a number of coefficients from 1, each word a number of zeros from 0.
const TOTAL_ZEROS: &str = "
1 011 010 0011 0010 00011 00010 000011 000010 0000011 0000010 00000011 00000010 000000011 000000010 000000001
111 110 101 100 011 0101 0100 0011 0010 00011 00010 000011 000010 000001 000000
0101 111 110 101 0100 0011 100 011 0010 00011 00010 000001 00001 000000
00011 111 0101 0100 110 101 100 0011 011 0010 00010 00001 00000
0101 0100 0011 111 110 101 100 011 0010 00001 0001 00000
000001 00001 111 110 101 100 011 010 0001 001 000000
000001 00001 101 100 011 11 010 0001 001 000000
000001 0001 00001 011 11 10 010 001 000000
000001 000000 0001 11 10 001 01 00001
00001 00000 001 11 10 01 0001
0000 0001 001 010 1 011
0000 0001 01 1 001
000 001 1 01
00 01 1
0 1
";

const CHROMA_DC_ZEROS: &str = "
1 01 001 000
1 01 00
1 0
";

/// Each line is a number of zeros left from 1, each word a run from 0.
const RUN_BEFORE: &str = "
1 0
1 01 00
11 10 01 00
11 10 01 001 000
11 10 011 010 001 000
11 000 001 011 010 101 100
111 110 101 100 011 010 001 0001 00001 000001 0000001 00000001 000000001 0000000001 00000000001
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that no code is a prefix of another, otherwise a decoder could not distinguish them.
    fn check(codes: &[Code], count: usize) {
        let codes: Vec<_> = codes.iter().filter(|word| word.length > 0).collect();
        assert_eq!(codes.len(), count);
        for (at, one) in codes.iter().enumerate() {
            for other in &codes[at + 1..] {
                let shared = one.length.min(other.length);
                let start = |word: &Code| word.bits >> (word.length - shared);
                assert_ne!(start(one), start(other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn no_code_is_a_prefix_of_another() {
        for (column, count) in [(0, 62), (1, 62), (2, 62), (3, 14)] {
            check(CODES.coeff_token[column].as_flattened(), count);
        }
        for (at, row) in CODES.total_zeros.iter().enumerate() {
            check(row, 16 - at);
        }
        for (at, row) in CODES.chroma_dc_zeros.iter().enumerate() {
            check(row, 4 - at);
        }
        for (at, row) in CODES.run_before.iter().enumerate() {
            check(row, if at < 6 { at + 2 } else { 15 });
        }
        assert_eq!((CODES.total_zeros.len(), CODES.run_before.len()), (15, 7));
    }
}
