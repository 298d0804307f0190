//! Writes bits, and packs them into NAL units.

/// What a NAL unit holds (table 7-1 of ITU-T H.264), and whether other pictures refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A picture that nothing refers to.
    Slice,
    /// A picture that decoding can begin with.
    KeySlice,
    /// A sequence parameter set.
    Sequence,
    /// A picture parameter set.
    Picture,
}

impl Unit {
    /// The first byte: `nal_ref_idc` and `nal_unit_type`.
    fn header(self) -> u8 {
        match self {
            Self::Slice => 0x01,
            Self::KeySlice => 0x65,
            Self::Sequence => 0x67,
            Self::Picture => 0x68,
        }
    }
}

/// Bits in the order of writing, the highest of each byte first.
#[derive(Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    /// The bits that make no full byte yet, in its lowest `waiting` bits.
    rest: u64,
    waiting: u32,
}

impl Bits {
    /// Writes the lowest `count` bits of `value`, at most 32.
    pub(super) fn put(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(value) < 1 << count);
        self.rest = self.rest << count | u64::from(value);
        self.waiting += count;
        while self.waiting >= 8 {
            self.waiting -= 8;
            self.bytes.push((self.rest >> self.waiting) as u8);
        }
        self.rest &= (1 << self.waiting) - 1;
    }

    pub(super) fn flag(&mut self, value: bool) {
        self.put(u32::from(value), 1);
    }

    /// An unsigned Exp-Golomb code, `ue(v)`.
    pub(super) fn unsigned(&mut self, value: u32) {
        let length = (value + 1).ilog2();
        self.put(0, length);
        self.put(value + 1, length + 1);
    }

    /// A signed Exp-Golomb code, `se(v)`.
    pub(super) fn signed(&mut self, value: i32) {
        let code = if value > 0 { 2 * value - 1 } else { -2 * value };
        self.unsigned(code as u32);
    }

    /// Ends the payload of a NAL unit and gives the whole unit, without a length or start code.
    pub(super) fn finish(mut self, unit: Unit) -> Vec<u8> {
        self.flag(true);
        if self.waiting > 0 {
            self.put(0, 8 - self.waiting);
        }
        let mut packed = Vec::with_capacity(self.bytes.len() + self.bytes.len() / 64 + 1);
        packed.push(unit.header());
        let mut zeros = 0;
        for byte in self.bytes {
            // Two zeros and a byte up to 3 would look like the start of another unit.
            if zeros == 2 && byte <= 3 {
                packed.push(3);
                zeros = 0;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            packed.push(byte);
        }
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_golomb_codes_are_those_of_the_standard() {
        for (value, code) in [
            (0, "1"),
            (1, "010"),
            (2, "011"),
            (3, "00100"),
            (7, "0001000"),
        ] {
            let mut bits = Bits::default();
            bits.unsigned(value);
            assert_eq!(shown(bits), code);
        }
        for (value, code) in [
            (0, "1"),
            (1, "010"),
            (-1, "011"),
            (2, "00100"),
            (-2, "00101"),
        ] {
            let mut bits = Bits::default();
            bits.signed(value);
            assert_eq!(shown(bits), code);
        }
    }

    fn shown(bits: Bits) -> String {
        let mut text: String = bits
            .bytes
            .iter()
            .map(|byte| format!("{byte:08b}"))
            .collect();
        for at in (0..bits.waiting).rev() {
            text.push(if bits.rest >> at & 1 == 1 { '1' } else { '0' });
        }
        text
    }

    #[test]
    fn no_start_code_inside_a_unit() {
        let mut bits = Bits::default();
        for byte in [0, 0, 0, 0, 0, 1, 9, 0, 0, 3, 0, 0, 4] {
            bits.put(byte, 8);
        }
        assert_eq!(
            bits.finish(Unit::Slice),
            [1, 0, 0, 3, 0, 0, 3, 0, 1, 9, 0, 0, 3, 3, 0, 0, 4, 0x80]
        );
    }
}
