//! Video frames: YCbCr 4:2:0, a luma plane and two chroma planes of half the size.

/// One plane, padded to whole macroblocks.
#[derive(Debug, Clone)]
pub(super) struct Plane {
    /// Bytes per row.
    pub(super) stride: usize,
    /// The rows, one after the other.
    pub(super) data: Vec<u8>,
}

impl Plane {
    fn new(stride: usize, rows: usize) -> Self {
        Self {
            stride,
            data: vec![0; stride * rows],
        }
    }

    /// Row `y`.
    pub(super) fn row(&self, y: usize) -> &[u8] {
        &self.data[y * self.stride..][..self.stride]
    }

    /// Row `y`, for writing.
    pub(super) fn row_mut(&mut self, y: usize) -> &mut [u8] {
        &mut self.data[y * self.stride..][..self.stride]
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.data.len() / self.stride
    }
}

/// A frame in YCbCr 4:2:0 (ITU-R BT.709, limited range), padded to whole macroblocks.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Columns of macroblocks.
    pub(super) columns: usize,
    /// Rows of macroblocks.
    pub(super) rows: usize,
    /// Luma.
    pub(super) luma: Plane,
    /// Cb and Cr, each at half the width and height.
    pub(super) chroma: [Plane; 2],
}

/// Weights of red, green and blue in 1/65536: Y, Cb, Cr.
const WEIGHTS: [[i32; 3]; 3] = [
    [11966, 40254, 4064],
    [-6596, -22189, 28785],
    [28785, -26145, -2640],
];

impl Frame {
    /// A black frame of `columns` x `rows` macroblocks.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self {
            columns,
            rows,
            luma: Plane::new(columns * 16, rows * 16),
            chroma: [(); 2].map(|()| Plane::new(columns * 8, rows * 8)),
        }
    }

    /// Converts RGBA pixels of even `width` and `height`; alpha is ignored. The padding repeats the last pixels.
    pub(super) fn from_rgba(rgba: &[u8], width: usize, height: usize) -> Self {
        let mut frame = Self::new(width.div_ceil(16), height.div_ceil(16));
        for y in 0..frame.luma.rows() {
            let line = &rgba[y.min(height - 1) * width * 4..][..width * 4];
            for (pixel, rgb) in frame.luma.row_mut(y).iter_mut().zip(repeated(line, 4)) {
                *pixel = weigh(WEIGHTS[0], [rgb[0], rgb[1], rgb[2]].map(i32::from), 16, 0);
            }
        }
        for y in 0..frame.chroma[0].rows() {
            let upper = (2 * y).min(height - 2);
            let line = |y: usize| &rgba[y * width * 4..][..width * 4];
            let pairs = repeated(line(upper), 8).zip(repeated(line(upper + 1), 8));
            for (x, (above, below)) in pairs.take(frame.columns * 8).enumerate() {
                let sum = [0, 1, 2].map(|channel| {
                    [
                        above[channel],
                        above[channel + 4],
                        below[channel],
                        below[channel + 4],
                    ]
                    .into_iter()
                    .map(i32::from)
                    .sum()
                });
                for (plane, weights) in frame.chroma.iter_mut().zip(&WEIGHTS[1..]) {
                    plane.row_mut(y)[x] = weigh(*weights, sum, 128, 2);
                }
            }
        }
        frame
    }
}

/// The chunks of `line` of `size` bytes, followed by endless repetitions of the last chunk.
fn repeated(line: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let last = &line[line.len() - size..];
    line.chunks_exact(size).chain(std::iter::repeat(last))
}

/// `zero` plus the weighted sum of channels that are scaled by 2^`shift`.
fn weigh(weights: [i32; 3], rgb: [i32; 3], zero: i32, shift: i32) -> u8 {
    let sum: i32 = weights
        .iter()
        .zip(rgb)
        .map(|(weight, value)| weight * value)
        .sum();
    let bits = 16 + shift;
    // The limited range (16 to 240) always fits a byte.
    (zero + ((sum + (1 << (bits - 1))) >> bits)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_bt_709() {
        for (rgb, expected) in [
            ([0, 0, 0], [16, 128, 128]),
            ([255, 255, 255], [235, 128, 128]),
            ([255, 0, 0], [63, 102, 240]),
            ([0, 255, 0], [173, 42, 26]),
            ([0, 0, 255], [32, 240, 118]),
        ] {
            let pixel = [rgb[0], rgb[1], rgb[2], 255];
            let frame = Frame::from_rgba(&pixel.repeat(18 * 2), 18, 2);
            assert_eq!((frame.columns, frame.rows), (2, 1));
            let planes = [&frame.luma, &frame.chroma[0], &frame.chroma[1]];
            for (plane, expected) in planes.into_iter().zip(expected) {
                assert!(plane.data.iter().all(|&value| value == expected), "{rgb:?}");
            }
        }
    }
}
