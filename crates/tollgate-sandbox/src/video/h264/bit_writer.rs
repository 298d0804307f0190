//! Writes bits and Exp-Golomb codes, and packs them into NAL units.

/// The type of a NAL unit (table 7-1 of ITU-T H.264).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NalKind {
    /// A P frame that no other frame refers to.
    Slice,
    /// An I frame that resets the decoder (IDR).
    KeySlice,
    /// A sequence parameter set.
    Sequence,
    /// A picture parameter set.
    Picture,
}

impl NalKind {
    /// The first byte of the NAL unit: `nal_ref_idc` and `nal_unit_type`.
    fn header(self) -> u8 {
        match self {
            Self::Slice => 0x01,
            Self::KeySlice => 0x65,
            Self::Sequence => 0x67,
            Self::Picture => 0x68,
        }
    }
}

/// Bits in the order of writing, the highest bit of each byte first.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// The bits that do not fill a byte yet, in its lowest `pending_bits` bits.
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    /// Writes `value` as `count` bits, at most 32; it must fit into them.
    pub(super) fn put(&mut self, value: u32, count: u32) {
        assert!(count <= 32 && u64::from(value) < 1 << count);
        self.pending = self.pending << count | u64::from(value);
        self.pending_bits += count;
        while self.pending_bits >= 8 {
            self.pending_bits -= 8;
            self.bytes.push((self.pending >> self.pending_bits) as u8);
        }
        self.pending &= (1 << self.pending_bits) - 1;
    }

    pub(super) fn flag(&mut self, value: bool) {
        self.put(u32::from(value), 1);
    }

    /// Writes an unsigned Exp-Golomb code, `ue(v)`.
    pub(super) fn unsigned(&mut self, value: u32) {
        let length = (value + 1).ilog2();
        self.put(0, length);
        self.put(value + 1, length + 1);
    }

    /// Writes a signed Exp-Golomb code, `se(v)`.
    pub(super) fn signed(&mut self, value: i32) {
        let code = if value > 0 { 2 * value - 1 } else { -2 * value };
        self.unsigned(code as u32);
    }

    /// Ends the payload and returns the NAL unit, without length prefix or start code.
    pub(super) fn finish(mut self, unit: NalKind) -> Vec<u8> {
        self.flag(true);
        if self.pending_bits > 0 {
            self.put(0, 8 - self.pending_bits);
        }
        let mut packed = Vec::with_capacity(self.bytes.len() + self.bytes.len() / 64 + 1);
        packed.push(unit.header());
        let mut zeros = 0;
        for byte in self.bytes {
            // Emulation prevention: two zeros and a byte up to 3 would look like a start code.
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
