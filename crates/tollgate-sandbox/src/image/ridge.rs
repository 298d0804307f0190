//! Random outlines of hill ranges: sums of sine waves.

use super::rng::Rng;

/// A sum of sine waves whose amplitude falls with their frequency.
pub(super) struct Ridge {
    /// Frequency in radians per pixel, phase in radians, relative amplitude.
    waves: Vec<(f32, f32, f32)>,
    /// 0 for round tops, 1 for pointed ones.
    sharpness: f32,
}

impl Ridge {
    /// A sum of `octaves` waves, each of about twice the frequency of the one before. The first has about `count` periods in `unit` pixels.
    pub(super) fn new(rng: &mut Rng, unit: f32, count: f32, octaves: u32, sharpness: f32) -> Self {
        let mut share = 1.0;
        let mut frequency = count * std::f32::consts::TAU / unit;
        let waves = (0..octaves)
            .map(|_| {
                let wave = (
                    frequency * rng.between(0.8, 1.25),
                    rng.between(0.0, std::f32::consts::TAU),
                    share,
                );
                share *= 0.48;
                frequency *= 2.07;
                wave
            })
            .collect();
        Self { waves, sharpness }
    }

    /// Its height at `x` pixels, roughly -1 to 1.
    pub(super) fn at(&self, x: f32) -> f32 {
        let mut sum = 0.0;
        for &(frequency, phase, share) in &self.waves {
            let soft = (x * frequency + phase).sin();
            let sharp = 1.0 - 2.0 * soft.abs();
            sum += share * (soft + (sharp - soft) * self.sharpness);
        }
        sum / 1.6
    }
}
