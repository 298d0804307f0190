//! Writes bits, the lowest of each byte first.

/// Collects bits, the first bit in the lowest position of a byte.
#[derive(Default)]
pub(super) struct LowBits {
    pub(super) bytes: Vec<u8>,
    /// The number of bits of the last byte that are not used yet.
    pub(super) free: u32,
}

impl LowBits {
    /// Writes the lowest `count` bits of `value`, lowest first.
    pub(super) fn put(&mut self, value: u32, count: u32) {
        for at in 0..count {
            self.bit(value >> at & 1);
        }
    }

    /// Writes the lowest `count` bits of `value`, highest first.
    pub(super) fn put_code(&mut self, value: u32, count: u32) {
        for at in (0..count).rev() {
            self.bit(value >> at & 1);
        }
    }

    pub(super) fn bit(&mut self, bit: u32) {
        if self.free == 0 {
            self.bytes.push(0);
            self.free = 8;
        }
        let at = 8 - self.free;
        if let Some(last) = self.bytes.last_mut() {
            *last |= (bit as u8) << at;
        }
        self.free -= 1;
    }
}
