//! Generates WebP files of one colour, in the lossless format: codes with one symbol need no bits.

use super::low_bits::LowBits;

/// The bytes of an image of `size` pixels, of which each side is at most 16,384.
pub(super) fn encode(size: (u32, u32), colour: [u8; 3]) -> Vec<u8> {
    let mut bits = LowBits {
        bytes: vec![0x2f],
        free: 0,
    };
    bits.put(size.0 - 1, 14);
    bits.put(size.1 - 1, 14);
    // No alpha, version 0; no transform, no colour cache, one group of codes.
    bits.put(0, 1 + 3);
    bits.put(0, 1 + 1 + 1);
    let [red, green, blue] = colour;
    for symbol in [green, red, blue, 255] {
        // A simple code with one symbol, written in eight bits.
        bits.put(0b101, 3);
        bits.put(u32::from(symbol), 8);
    }
    // Distances: a simple code with one symbol, written in one bit.
    bits.put(0b0001, 4);
    let mut data = bits.bytes;
    let length = data.len() as u32;
    if data.len() % 2 == 1 {
        data.push(0);
    }
    let mut webp = b"RIFF".to_vec();
    webp.extend((data.len() as u32 + 12).to_le_bytes());
    webp.extend(b"WEBPVP8L");
    webp.extend(length.to_le_bytes());
    webp.extend(data);
    webp
}
