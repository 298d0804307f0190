//! P macroblocks that only move: they have motion vectors but no residual.

use super::bit_writer::BitWriter;

/// A motion vector in quarter pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct MotionVector {
    /// To the right.
    pub(in super::super) x: i32,
    /// Down.
    pub(in super::super) y: i32,
}

/// Writes the macroblocks of a P slice in raster order.
pub(super) struct MotionCoder {
    columns: usize,
    /// The vectors of the row above.
    above: Vec<MotionVector>,
    /// The vectors of this row so far.
    here: Vec<MotionVector>,
    /// Whether this is the first row.
    top: bool,
    /// Macroblocks skipped since the last written one.
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
    pub(super) fn macroblock(&mut self, bits: &mut BitWriter, vector: MotionVector) {
        if vector == self.skip_vector() {
            self.skipped += 1;
        } else {
            let predicted = self.predicted_vector();
            self.write_skip_run(bits);
            bits.unsigned(0); // mb_type: P_L0_16x16
            bits.signed(vector.x - predicted.x);
            bits.signed(vector.y - predicted.y);
            bits.unsigned(0); // coded_block_pattern: no corrections
        }
        self.here.push(vector);
        if self.here.len() == self.columns {
            std::mem::swap(&mut self.above, &mut self.here);
            self.here.clear();
            self.top = false;
        }
    }

    /// Writes `mb_skip_run`: before each macroblock that is not skipped, and at the end of the slice.
    pub(super) fn write_skip_run(&mut self, bits: &mut BitWriter) {
        bits.unsigned(std::mem::take(&mut self.skipped));
    }

    /// Whether macroblocks were skipped since the last written one.
    pub(super) fn has_skipped(&self) -> bool {
        self.skipped > 0
    }

    /// The vectors of the neighbours: left, above, above right (in the last column, above left). `None` for those outside the frame.
    fn neighbours(&self) -> [Option<MotionVector>; 3] {
        let column = self.here.len();
        let left = self.here.last().copied();
        if self.top {
            return [left, None, None];
        }
        let before = column.checked_sub(1).map(|column| self.above[column]);
        let after = self.above.get(column + 1).copied();
        [left, Some(self.above[column]), after.or(before)]
    }

    /// The predicted vector (8.4.1.3).
    fn predicted_vector(&self) -> MotionVector {
        let neighbours = self.neighbours();
        let mut known = neighbours.iter().flatten();
        if let (Some(only), None) = (known.next(), known.next()) {
            return *only;
        }
        let [a, b, c] = neighbours.map(Option::unwrap_or_default);
        MotionVector {
            x: median(a.x, b.x, c.x),
            y: median(a.y, b.y, c.y),
        }
    }

    /// The vector of a skipped macroblock (8.4.1.1).
    fn skip_vector(&self) -> MotionVector {
        let [left, above, _] = self.neighbours();
        match (left, above) {
            (Some(left), Some(above))
                if left != MotionVector::default() && above != MotionVector::default() =>
            {
                self.predicted_vector()
            }
            _ => MotionVector::default(),
        }
    }
}

fn median(a: i32, b: i32, c: i32) -> i32 {
    a.max(b).min(a.min(b).max(c))
}
