//! Intra prediction from the pixels above and to the left of a block (ITU-T H.264, 8.3.3 and 8.3.4).

/// The neighbouring pixels of a square block of side `N`.
#[derive(Debug, Clone)]
pub(super) struct Edges<const N: usize> {
    /// The row above, if prediction may use it.
    pub(super) above: Option<[u8; N]>,
    /// The column to the left, if prediction may use it.
    pub(super) left: Option<[u8; N]>,
    /// The pixel above the left column; 0 unless both edges are available.
    pub(super) corner: u8,
}

/// A prediction mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Each column repeats the pixel above.
    Vertical,
    /// Each row repeats the pixel to the left.
    Horizontal,
    /// The mean of the edges.
    Dc,
    /// A plane fitted to both edges.
    Plane,
}

impl Mode {
    /// Every mode.
    pub(super) const ALL: [Self; 4] = [Self::Dc, Self::Vertical, Self::Horizontal, Self::Plane];

    /// `Intra16x16PredMode` (table 8-4).
    pub(super) fn luma(self) -> u32 {
        match self {
            Self::Vertical => 0,
            Self::Horizontal => 1,
            Self::Dc => 2,
            Self::Plane => 3,
        }
    }

    /// `intra_chroma_pred_mode` (table 8-5).
    pub(super) fn chroma(self) -> u32 {
        match self {
            Self::Dc => 0,
            Self::Horizontal => 1,
            Self::Vertical => 2,
            Self::Plane => 3,
        }
    }
}

/// The prediction of a luma macroblock. `None` if `mode` needs an edge that is not available.
pub(super) fn luma(edges: &Edges<16>, mode: Mode) -> Option<[u8; 256]> {
    let mut prediction = [0; 256];
    match mode {
        Mode::Dc => {
            let sum = |edge: &[u8; 16]| edge.iter().map(|&pixel| u32::from(pixel)).sum::<u32>();
            let mean = match (&edges.above, &edges.left) {
                (Some(above), Some(left)) => (sum(above) + sum(left) + 16) >> 5,
                (Some(edge), None) | (None, Some(edge)) => (sum(edge) + 8) >> 4,
                (None, None) => 128,
            };
            prediction.fill(mean as u8);
        }
        Mode::Plane => fill_plane(edges, 5, &mut prediction)?,
        Mode::Vertical | Mode::Horizontal => fill_straight(edges, mode, &mut prediction)?,
    }
    Some(prediction)
}

/// The prediction of one chroma plane. `None` if `mode` needs an edge that is not available.
pub(super) fn chroma(edges: &Edges<8>, mode: Mode) -> Option<[u8; 64]> {
    let mut prediction = [0; 64];
    match mode {
        Mode::Dc => fill_chroma_dc(edges, &mut prediction),
        Mode::Plane => fill_plane(edges, 34, &mut prediction)?,
        Mode::Vertical | Mode::Horizontal => fill_straight(edges, mode, &mut prediction)?,
    }
    Some(prediction)
}

/// Chroma DC prediction: one mean per 4x4 block. Blocks off the diagonal use only the edge that they touch, if available.
fn fill_chroma_dc(edges: &Edges<8>, prediction: &mut [u8; 64]) {
    let sum = |edge: &[u8; 8], half: usize| -> u32 {
        edge[half * 4..][..4]
            .iter()
            .map(|&pixel| u32::from(pixel))
            .sum()
    };
    for (half_y, half_x) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let above = edges.above.as_ref().map(|edge| sum(edge, half_x));
        let left = edges.left.as_ref().map(|edge| sum(edge, half_y));
        let (above, left) = match (half_y, half_x) {
            (0, 1) if above.is_some() => (above, None),
            (1, 0) if left.is_some() => (None, left),
            _ => (above, left),
        };
        let mean = match (above, left) {
            (Some(above), Some(left)) => (above + left + 4) >> 3,
            (Some(sum), None) | (None, Some(sum)) => (sum + 2) >> 2,
            (None, None) => 128,
        };
        for row in 0..4 {
            prediction[(half_y * 4 + row) * 8 + half_x * 4..][..4].fill(mean as u8);
        }
    }
}

fn fill_straight<const N: usize>(
    edges: &Edges<N>,
    mode: Mode,
    prediction: &mut [u8],
) -> Option<()> {
    if mode == Mode::Vertical {
        let above = edges.above.as_ref()?;
        prediction
            .chunks_exact_mut(N)
            .for_each(|row| row.copy_from_slice(above));
    } else {
        let left = edges.left.as_ref()?;
        prediction
            .chunks_exact_mut(N)
            .zip(left)
            .for_each(|(row, &pixel)| row.fill(pixel));
    }
    Some(())
}

fn fill_plane<const N: usize>(edges: &Edges<N>, factor: i32, prediction: &mut [u8]) -> Option<()> {
    let (above, left) = (edges.above.as_ref()?, edges.left.as_ref()?);
    let half = N / 2;
    let rise = |edge: &[u8; N]| -> i32 {
        (0..half)
            .map(|step| {
                let near = if step + 1 == half {
                    edges.corner
                } else {
                    edge[half - 2 - step]
                };
                (step as i32 + 1) * (i32::from(edge[half + step]) - i32::from(near))
            })
            .sum()
    };
    let across = (factor * rise(above) + 32) >> 6;
    let down = (factor * rise(left) + 32) >> 6;
    let end = 16 * (i32::from(above[N - 1]) + i32::from(left[N - 1]));
    let middle = half as i32 - 1;
    for (y, row) in prediction.chunks_exact_mut(N).enumerate() {
        for (x, pixel) in row.iter_mut().enumerate() {
            let value = end + across * (x as i32 - middle) + down * (y as i32 - middle);
            *pixel = ((value + 16) >> 5).clamp(0, 255) as u8;
        }
    }
    Some(())
}
