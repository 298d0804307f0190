//! Smooth random lines, the outlines of ridges, dunes and waves.

use crate::sandbox::picture::seed::Dice;

/// A line of a few random waves, the longer the higher.
pub(super) struct Line {
    waves: Vec<(f32, f32, f32)>,
    /// 0 rolls softly; towards 1 the tops turn into peaks.
    sharpness: f32,
}

impl Line {
    /// About `count` waves to every `unit` pixels, `octaves` of detail (1 to 6).
    pub(super) fn new(
        dice: &mut Dice,
        unit: f32,
        count: f32,
        octaves: u32,
        sharpness: f32,
    ) -> Self {
        let mut share = 1.0;
        let mut frequency = count * std::f32::consts::TAU / unit;
        let waves = (0..octaves)
            .map(|_| {
                let wave = (
                    frequency * dice.between(0.8, 1.25),
                    dice.between(0.0, std::f32::consts::TAU),
                    share,
                );
                share *= 0.48;
                frequency *= 2.07;
                wave
            })
            .collect();
        Self { waves, sharpness }
    }

    /// Its height at `x` pixels, between -1 and 1, mostly.
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
