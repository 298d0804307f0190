//! Generates PNG files of one colour: a palette with that colour and rows of zeros, which deflate to nearly nothing.

use super::low_bits::LowBits;

/// The bytes of an image of `size` pixels.
pub(super) fn encode(size: (u32, u32), colour: [u8; 3]) -> Vec<u8> {
    let (width, height) = size;
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::with_capacity(13);
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // One bit per pixel, a palette, the only compression, the only filter method, no interlacing.
    header.extend([1, 3, 0, 0, 0]);
    chunk(&mut png, b"IHDR", &header);
    chunk(&mut png, b"PLTE", &colour);
    // A row is the number of its filter, followed by its pixels.
    let row = 1 + u64::from(width).div_ceil(8);
    chunk(&mut png, b"IDAT", &zeros(row * u64::from(height)));
    chunk(&mut png, b"IEND", &[]);
    png
}

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let begin = png.len();
    png.extend(kind);
    png.extend(data);
    let sum = crc(&png[begin..]);
    png.extend(sum.to_be_bytes());
}

/// A zlib stream of `count` zeros: one zero, and references that repeat it.
fn zeros(count: u64) -> Vec<u8> {
    let mut bits = LowBits {
        bytes: vec![0x78, 0x01],
        free: 0,
    };
    // The last block, with fixed codes.
    bits.put(0b011, 3);
    // The literal 0.
    bits.put_code(0b0011_0000, 8);
    let repeats = count.saturating_sub(1);
    for _ in 0..repeats / 258 {
        // A reference: 258 bytes, copied from one byte before.
        bits.put_code(0b1100_0101, 8);
        bits.put_code(0, 5);
    }
    for _ in 0..repeats % 258 {
        bits.put_code(0b0011_0000, 8);
    }
    bits.put_code(0, 7);
    let mut stream = bits.bytes;
    // The Adler-32 checksum of zeros.
    let sum = ((count % 65521) as u32) << 16 | 1;
    stream.extend(sum.to_be_bytes());
    stream
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let odd = crc & 1 == 1;
            crc = crc >> 1 ^ if odd { 0xedb8_8320 } else { 0 };
        }
    }
    !crc
}
