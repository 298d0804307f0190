//! Sings notes: pulses of the vocal folds and rushing air, through resonances that glide from sound to
//! sound (a small formant synthesiser, after Klatt 1980).

use std::f64::consts::{PI, TAU};

use super::phones::Phone;
use super::tune::Note;

/// Samples a second.
pub(super) const RATE: u32 = 24_000;
/// Samples from one adjustment of the throat to the next: a millisecond.
const STEP: usize = RATE as usize / 1000;
/// What the sound is multiplied with before it is kept in 16 bits; the file is brought to its own
/// loudness afterwards.
const GAIN: f64 = 15_000.0;

/// Width of the resonances in Hz. The last two do not move: they make the voice's colour.
const WIDTHS: [f64; 5] = [70.0, 95.0, 160.0, 260.0, 320.0];
const UPPER: [f64; 2] = [3500.0, 4500.0];
/// Width of the hiss in Hz.
const HISS_WIDTH: f64 = 1600.0;
/// What hisses are multiplied with, so that a vowel of strength 1 and a hiss of strength 1 are about as loud.
const HISS_GAIN: f64 = 0.17;
/// How much of the low sounds the way from the lips to the ear takes out.
const BRIGHTNESS: f64 = 0.7;

/// The time in milliseconds in which resonances and loudness come most of the way to a new sound.
const GLIDE: f64 = 15.0;
const ATTACK: f64 = 6.0;
/// The same for pitch.
const BEND: f64 = 22.0;

/// Somebody's throat.
#[derive(Debug, Clone, Copy)]
pub(super) struct Throat {
    /// Pitch in Hz.
    pitch: f64,
    /// How small it is: what all resonances are multiplied with.
    size: f64,
    /// How breathy the voice is.
    breath: f64,
    /// How fast its owner speaks.
    pub(super) pace: f64,
}

impl Throat {
    /// The throat that goes with `character`.
    pub(super) fn of(character: u64) -> Self {
        let share = |at: u32| f64::from((character >> at) as u16) / f64::from(u16::MAX);
        let height = share(48);
        Self {
            pitch: 96.0 * (235.0_f64 / 96.0).powf(height),
            // High voices mostly have small throats.
            size: 0.93 + 0.20 * height + 0.05 * (share(32) - 0.5),
            breath: 0.015 + 0.05 * share(16),
            pace: 0.94 + 0.12 * share(0),
        }
    }

    /// The sound of `notes`.
    pub(super) fn say(&self, notes: &[Note]) -> Vec<i16> {
        let seconds: f64 = notes.iter().map(|note| note.length).sum();
        let mut sound = Vec::with_capacity((seconds * f64::from(RATE)) as usize + 1);
        let mut tract = Tract::new(self);
        let mut end = 0.0;
        for note in notes {
            let start = end;
            end += note.length * f64::from(RATE);
            // Fast speech needs fast lips.
            let haste = (note.phone.ms / 1000.0 / note.length.max(1e-4)).clamp(0.6, 3.0);
            while (sound.len() as f64) < end {
                if sound.len().is_multiple_of(STEP) {
                    let along = (sound.len() as f64 - start) / (end - start);
                    let (from, to) = note.pitch;
                    tract.adjust(
                        &note.phone,
                        from + (to - from) * along.clamp(0.0, 1.0),
                        haste,
                    );
                }
                sound.push((tract.sample() * GAIN).round() as i16);
            }
        }
        sound
    }
}

/// A throat in motion.
struct Tract {
    throat: Throat,
    formants: [f64; 3],
    voice: f64,
    breath: f64,
    hiss: f64,
    hiss_at: f64,
    /// As a multiple of the throat's.
    pitch: f64,
    /// How much of the vocal folds' swing has passed, 0 to 1.
    swing: f64,
    /// Milliseconds since the beginning.
    time: f64,
    resonances: [Resonance; 5],
    teeth: Resonance,
    /// The last sample that came out of the mouth.
    sound: f64,
    noise: u32,
}

impl Tract {
    fn new(throat: &Throat) -> Self {
        let mut tract = Self {
            throat: *throat,
            formants: [500.0, 1400.0, 2450.0],
            voice: 0.0,
            breath: 0.0,
            hiss: 0.0,
            hiss_at: 3000.0,
            pitch: 1.0,
            swing: 0.0,
            time: 0.0,
            resonances: [Resonance::default(); 5],
            teeth: Resonance::default(),
            sound: 0.0,
            noise: 1,
        };
        for (resonance, (at, width)) in tract.resonances[3..]
            .iter_mut()
            .zip(UPPER.into_iter().zip(&WIDTHS[3..]))
        {
            resonance.tune(at * throat.size, *width);
        }
        tract
    }

    /// Moves on by a millisecond towards `phone` and `pitch`.
    fn adjust(&mut self, phone: &Phone, pitch: f64, haste: f64) {
        let towards = |value: &mut f64, target: f64, time: f64| {
            *value += (target - *value) * (1.0 - (-haste / time).exp());
        };
        for (value, target) in self.formants.iter_mut().zip(phone.formants) {
            if target > 0.0 {
                towards(value, target, GLIDE);
            }
        }
        towards(&mut self.voice, phone.voice, ATTACK);
        towards(&mut self.breath, phone.breath, ATTACK);
        towards(&mut self.hiss, phone.hiss, ATTACK);
        if phone.hiss > 0.0 {
            towards(&mut self.hiss_at, phone.hiss_at, ATTACK / 2.0);
        }
        towards(&mut self.pitch, pitch, BEND);
        self.time += 1.0;
        let moving = self.formants.iter().zip(WIDTHS).zip(&mut self.resonances);
        for ((at, width), resonance) in moving {
            resonance.tune(at * self.throat.size, width);
        }
        self.teeth.tune(self.hiss_at, HISS_WIDTH);
        // As loud at any frequency.
        self.teeth.now = 1.0;
    }

    /// The next sample; loud vowels come to about 1.
    fn sample(&mut self) -> f64 {
        // No voice holds a pitch quite still.
        let waver =
            1.0 + 0.010 * (TAU * self.time / 190.0).sin() + 0.006 * (TAU * self.time / 71.0).sin();
        self.swing += self.throat.pitch * self.pitch * waver / f64::from(RATE);
        self.swing -= self.swing.floor();
        let noise = self.rush();
        // Air passes while the folds are open.
        let air = self.breath
            + self.throat.breath * self.voice * if self.swing < 0.6 { 1.0 } else { 0.3 };
        let mut sound = self.voice * pulse(self.swing) + 0.5 * air * noise;
        for resonance in &mut self.resonances {
            sound = resonance.pass(sound);
        }
        let lips = sound - BRIGHTNESS * self.sound;
        self.sound = sound;
        // The difference takes out the low sounds that a resonance lets pass.
        let before = self.teeth.last;
        let teeth = self.teeth.pass(self.hiss * noise) - before;
        lips + HISS_GAIN * teeth
    }

    /// Noise between -1 and 1.
    fn rush(&mut self) -> f64 {
        // xorshift32
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 17;
        self.noise ^= self.noise << 5;
        f64::from(self.noise) / f64::from(u32::MAX) * 2.0 - 1.0
    }
}

/// How the flow of air changes at `swing`, 0 to 1, of the vocal folds (Rosenberg's pulse): it grows, breaks
/// off, and rests.
fn pulse(swing: f64) -> f64 {
    const OPENING: f64 = 0.42;
    const CLOSING: f64 = 0.16;
    let rise = PI / OPENING / 2.0;
    let fall = PI / CLOSING / 2.0;
    if swing < OPENING {
        rise * (PI * swing / OPENING).sin() / fall
    } else if swing < OPENING + CLOSING {
        -(PI / 2.0 * (swing - OPENING) / CLOSING).sin()
    } else {
        0.0
    }
}

/// A resonance: two poles, and as loud as before at the lowest frequencies.
#[derive(Debug, Clone, Copy, Default)]
struct Resonance {
    now: f64,
    once: f64,
    twice: f64,
    last: f64,
    before: f64,
}

impl Resonance {
    /// Sets it to frequency `at` and `width`, in Hz.
    fn tune(&mut self, at: f64, width: f64) {
        let radius = (-PI * width / f64::from(RATE)).exp();
        let at = at.min(f64::from(RATE) * 0.46);
        self.once = 2.0 * radius * (TAU * at / f64::from(RATE)).cos();
        self.twice = -radius * radius;
        self.now = 1.0 - self.once - self.twice;
    }

    fn pass(&mut self, sound: f64) -> f64 {
        let result = self.now * sound + self.once * self.last + self.twice * self.before;
        self.before = self.last;
        self.last = result;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::phones;
    use super::*;

    /// The loudest and the mean loudness of half a second of `sign`.
    fn loudness(throat: &Throat, sign: &str) -> (f64, f64) {
        let phone = phones::spell(sign).last().expect("a sound");
        let note = Note {
            phone,
            length: 0.5,
            pitch: (1.0, 1.0),
        };
        let sound = throat.say(&[note]);
        assert_eq!(sound.len(), RATE as usize / 2);
        let squares = sound.iter().map(|&sample| f64::from(sample).powi(2));
        let loudest = sound.iter().map(|sample| sample.unsigned_abs()).max();
        let mean = (squares.sum::<f64>() / sound.len() as f64).sqrt();
        (f64::from(loudest.unwrap_or_default()), mean)
    }

    #[test]
    fn every_voice_is_loud_and_clear() {
        for character in 0..20u64 {
            let throat = Throat::of(character.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let (_, usual) = loudness(&throat, "@");
            for sign in ["i", "A", "u", "O", "e", "3", "{"] {
                let (loudest, mean) = loudness(&throat, sign);
                assert!(loudest < 30_000.0, "{sign}: {loudest} would be cut off");
                assert!(
                    (0.3..4.0).contains(&(mean / usual)),
                    "{sign}: {mean} of {usual}"
                );
            }
            for sign in ["s", "S", "f", "T", "z", "m"] {
                let (_, mean) = loudness(&throat, sign);
                assert!(
                    (0.03..0.6).contains(&(mean / usual)),
                    "{sign}: {mean} of {usual}"
                );
            }
        }
    }
}
