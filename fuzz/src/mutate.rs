//! Generates inputs by mutating valid ones, both their bytes and their JSON structure.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// Maximum length of an input in bytes.
pub(super) const LONGEST: usize = 256 * 1024;
/// Pieces that are inserted into inputs: JSON and event syntax, and values that often break parsers.
const TOKENS: &[&[u8]] = &[
    b"null",
    b"true",
    b"-1",
    b"0",
    b"1.0",
    b"1e400",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"\"\"",
    b"{}",
    b"[]",
    b"[[[[[[[[[[",
    b"{\"a\":",
    b"\"\\ud800\"",
    b"\"\\u0000\"",
    b"\xff",
    b"\xc3",
    b"\xe7\x8c\xab",
    b"\r\n\r\n",
    b"\r",
    b"\n\n",
    b"data: ",
    b"data:",
    b"event: error\n",
    b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
    b"data: [DONE]\n\n",
    b": c\n",
    b"id: 1\n\n",
    b"\"type\"",
    b"\"model\"",
    b"\"usage\"",
    b"\"index\":4294967295",
    b"\"index\":-1",
    b"\"content\"",
    b"\"error\":{}",
    b"\"tool_calls\"",
    b"\"arguments\":\"\"",
    b"\"finish_reason\":\"stop\"",
    b"data:image/png;base64,",
    b",,",
    b"}",
    b"]",
];

/// The inputs that are mutated.
pub(super) struct Corpus(Vec<Vec<u8>>);

impl Corpus {
    /// A corpus of `cases`, `{}` and the empty input.
    pub(super) fn new(mut cases: Vec<Vec<u8>>) -> Self {
        cases.extend([b"{}".to_vec(), Vec::new()]);
        Self(cases)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A random case with one or more random changes.
    pub(super) fn mutated(&self, rng: &mut StdRng) -> Vec<u8> {
        let mut bytes = self.pick(rng).clone();
        for _ in 0..=index(rng, 6) {
            self.change(&mut bytes, rng);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn pick(&self, rng: &mut StdRng) -> &Vec<u8> {
        &self.0[index(rng, self.0.len())]
    }

    fn change(&self, bytes: &mut Vec<u8>, rng: &mut StdRng) {
        let at = index(rng, bytes.len() + 1);
        let end = (at + index(rng, 40)).min(bytes.len());
        match index(rng, 9) {
            0 if !bytes.is_empty() => {
                let at = at.min(bytes.len() - 1);
                bytes[at] ^= 1 << index(rng, 8);
            }
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => drop(bytes.splice(at..end, TOKENS[index(rng, TOKENS.len())].iter().copied())),
            4 => drop(bytes.splice(at..at, TOKENS[index(rng, TOKENS.len())].iter().copied())),
            5 => {
                // Inserts copies of a piece, up to 64.
                let piece = bytes[at..end].repeat(1 + index(rng, 64));
                bytes.splice(at..at, piece);
            }
            6 => {
                // Joins the head of one case and the tail of another.
                let other = self.pick(rng);
                let from = index(rng, other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            7 => swap_values(bytes, self.pick(rng), rng),
            _ => deepen(bytes, at, rng),
        }
    }
}

/// Replaces a JSON value of `bytes` with one of `other`.
fn swap_values(bytes: &mut Vec<u8>, other: &[u8], rng: &mut StdRng) {
    if let (Some(here), Some(there)) = (value(bytes, rng), value(other, rng)) {
        bytes.splice(here, other[there].iter().copied());
    }
}

/// The span of a random JSON value: from after a random colon to the next comma or closing bracket outside the value. `None` if there is none.
fn value(bytes: &[u8], rng: &mut StdRng) -> Option<std::ops::Range<usize>> {
    let from = index(rng, bytes.len().max(1));
    let start = from + bytes.get(from..)?.iter().position(|b| *b == b':')? + 1;
    let (mut depth, mut in_string) = (0i32, false);
    for (offset, byte) in bytes[start..].iter().enumerate() {
        match byte {
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' | b',' if !in_string && depth == 0 => return Some(start..start + offset),
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Inserts up to 200 opening brackets at `at`.
fn deepen(bytes: &mut Vec<u8>, at: usize, rng: &mut StdRng) {
    let open: &[u8] = if index(rng, 2) == 0 {
        b"["
    } else {
        b"{\"content\":"
    };
    bytes.splice(at..at, open.repeat(1 + index(rng, 200)));
}

/// An index from 0 to `limit - 1`; 0 if `limit` is 0.
fn index(rng: &mut StdRng, limit: usize) -> usize {
    rng.random_range(0..limit.max(1))
}
