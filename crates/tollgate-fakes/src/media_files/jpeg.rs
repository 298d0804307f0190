//! Generates JPEG files of one grey: two bits for every block but the first state that it does not differ from the previous one.

/// The bytes of an image of `size` pixels, of which each side is at most 65,535. Only the lowest seven bits of `grey` are used.
pub(super) fn encode(size: (u32, u32), grey: u8) -> Vec<u8> {
    let (width, height) = (size.0 as u16, size.1 as u16);
    let mut jpeg = vec![0xff, 0xd8];
    segment(&mut jpeg, 0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    // With quantisation steps of 8, a change of the mean by one is one level of grey.
    let mut steps = vec![0];
    steps.extend([8; 64]);
    segment(&mut jpeg, 0xdb, &steps);
    let [high, low] = height.to_be_bytes();
    let [wide, narrow] = width.to_be_bytes();
    let frame = [8, high, low, wide, narrow, 1, 1, 0x11, 0];
    segment(&mut jpeg, 0xc0, &frame);
    segment(&mut jpeg, 0xc4, &means());
    segment(&mut jpeg, 0xc4, &details());
    segment(&mut jpeg, 0xda, &[1, 1, 0x00, 0, 63, 0]);
    jpeg.extend(encode_blocks(size, grey));
    jpeg.extend([0xff, 0xd9]);
    jpeg
}

fn segment(jpeg: &mut Vec<u8>, marker: u8, data: &[u8]) {
    jpeg.extend([0xff, marker]);
    jpeg.extend((data.len() as u16 + 2).to_be_bytes());
    jpeg.extend(data);
}

/// Codes for the mean of a block: `0` no change, `10` a change written in seven bits.
fn means() -> Vec<u8> {
    let mut table = vec![0x00, 1, 1];
    table.extend([0; 14]);
    table.extend([0, 7]);
    table
}

/// Codes for the other coefficients of a block: `0` for none. The table has a second, unused code because some readers reject a table with only one
/// code.
fn details() -> Vec<u8> {
    let mut table = vec![0x10, 1, 1];
    table.extend([0; 14]);
    table.extend([0, 1]);
    table
}

/// The entropy-coded blocks, row by row.
fn encode_blocks(size: (u32, u32), grey: u8) -> Vec<u8> {
    let blocks = u64::from(size.0.div_ceil(8)) * u64::from(size.1.div_ceil(8));
    // Changes of exactly seven bits range from 64 to 127 and from -127 to -64, relative to mid grey.
    let mut bits = vec![true, false];
    bits.extend((0..7).rev().map(|at| grey >> at & 1 == 1));
    bits.push(false);
    // A block without change is two zeros; the last byte is filled up with ones.
    let zeros = (blocks - 1) * 2;
    let mut bytes = Vec::with_capacity(4 + (zeros / 8) as usize);
    bits.extend(std::iter::repeat_n(false, zeros as usize));
    for eight in bits.chunks(8) {
        let mut byte = 0xff_u8;
        for (at, bit) in eight.iter().enumerate() {
            if !bit {
                byte &= !(0x80 >> at);
            }
        }
        bytes.push(byte);
        if byte == 0xff {
            bytes.push(0);
        }
    }
    bytes
}
