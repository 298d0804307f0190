//! Macroblocks that are moved from the key picture, whole and without corrections.

use super::bits::Bits;

/// Where a macroblock comes from, relative to where it goes, in quarters of a pixel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Vector {
    /// To the right.
    pub(in super::super) x: i32,
    /// Down.
    pub(in super::super) y: i32,
}

/// Writes a field of vectors, in raster order.
pub(super) struct MotionCoder {
    columns: usize,
    /// The vectors of the row above and, as far as it is written, of this row.
    above: Vec<Vector>,
    here: Vec<Vector>,
    top: bool,
    /// Macroblocks that were left out, as they follow from their neighbours.
    skipped: u32,
}

impl MotionCoder {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            columns,
            above: Vec::new(),
            here: Vec::with_capacity(columns),
            top: true,
            skipped: 0,
        }
    }

    /// Writes the next macroblock.
    pub(super) fn macroblock(&mut self, bits: &mut Bits, vector: Vector) {
        if vector == self.skip_vector() {
            self.skipped += 1;
        } else {
            let expected = self.expected();
            self.skip_run(bits);
            bits.unsigned(0); // mb_type: P_L0_16x16
            bits.signed(vector.x - expected.x);
            bits.signed(vector.y - expected.y);
            bits.unsigned(0); // coded_block_pattern: no corrections
        }
        self.here.push(vector);
        if self.here.len() == self.columns {
            std::mem::swap(&mut self.above, &mut self.here);
            self.here.clear();
            self.top = false;
        }
    }

    /// Writes how many macroblocks were left out: before each that is not, and at the slice's end.
    pub(super) fn skip_run(&mut self, bits: &mut Bits) {
        bits.unsigned(std::mem::take(&mut self.skipped));
    }

    /// Whether macroblocks were left out since the last that was written.
    pub(super) fn has_skipped(&self) -> bool {
        self.skipped > 0
    }

    /// The vectors to the left, above, and above to the right or else to the left.
    fn neighbours(&self) -> [Option<Vector>; 3] {
        let column = self.here.len();
        let left = self.here.last().copied();
        if self.top {
            return [left, None, None];
        }
        let before = column.checked_sub(1).map(|column| self.above[column]);
        let after = self.above.get(column + 1).copied();
        [left, Some(self.above[column]), after.or(before)]
    }

    /// The vector that the neighbours let expect (8.4.1.3).
    fn expected(&self) -> Vector {
        let neighbours = self.neighbours();
        let mut known = neighbours.iter().flatten();
        if let (Some(only), None) = (known.next(), known.next()) {
            return *only;
        }
        let [a, b, c] = neighbours.map(Option::unwrap_or_default);
        Vector {
            x: median(a.x, b.x, c.x),
            y: median(a.y, b.y, c.y),
        }
    }

    /// The vector of a macroblock that is left out (8.4.1.1).
    fn skip_vector(&self) -> Vector {
        let [left, above, _] = self.neighbours();
        match (left, above) {
            (Some(left), Some(above))
                if left != Vector::default() && above != Vector::default() =>
            {
                self.expected()
            }
            _ => Vector::default(),
        }
    }
}

fn median(a: i32, b: i32, c: i32) -> i32 {
    a.max(b).min(a.min(b).max(c))
}
