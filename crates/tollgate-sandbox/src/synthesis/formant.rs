//! A small formant synthesiser after Klatt (1980): glottal pulses and noise, filtered by resonators that move from phone to
//! phone.

use std::f64::consts::{PI, TAU};

use super::phonemes::Phone;
use super::prosody::Segment;

/// Samples per second.
pub(super) const SAMPLE_RATE: u32 = 24_000;
/// Samples between two updates of the filters: a millisecond.
const SAMPLES_PER_UPDATE: usize = SAMPLE_RATE as usize / 1000;
/// The factor from filter output to 16-bit samples. [`super::wav::encode`] normalises the loudness afterwards.
const GAIN: f64 = 15_000.0;

/// Bandwidths of the formants in Hz.
const WIDTHS: [f64; 5] = [70.0, 95.0, 160.0, 260.0, 320.0];
/// Frequencies of the fourth and fifth formant in Hz. They are constant: they determine the timbre.
const UPPER: [f64; 2] = [3500.0, 4500.0];
/// Bandwidth of the hiss in Hz.
const HISS_WIDTH: f64 = 1600.0;
/// Makes a hiss of strength 1 about as loud as a vowel of strength 1.
const HISS_GAIN: f64 = 0.17;
/// Coefficient of the high-pass filter for the radiation at the lips.
const BRIGHTNESS: f64 = 0.7;

/// Time constants of formants and amplitudes, in milliseconds.
const GLIDE: f64 = 15.0;
const ATTACK: f64 = 6.0;
/// Time constant of the pitch, in milliseconds.
const BEND: f64 = 22.0;

/// The parameters of a voice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Voice {
    /// Pitch in Hz.
    pitch: f64,
    /// Factor on all formant frequencies: above 1 for a short vocal tract.
    tract_scale: f64,
    /// Breathiness: noise mixed into voiced phones.
    breath: f64,
    /// Factor on the speed of speech.
    pub(super) rate: f64,
}

impl Voice {
    /// The voice for a hash of the voice's name.
    pub(super) fn from_hash(hash: u64) -> Self {
        let share = |at: u32| f64::from((hash >> at) as u16) / f64::from(u16::MAX);
        let height = share(48);
        Self {
            pitch: 96.0 * (235.0_f64 / 96.0).powf(height),
            // High voices mostly have short vocal tracts.
            tract_scale: 0.93 + 0.20 * height + 0.05 * (share(32) - 0.5),
            breath: 0.015 + 0.05 * share(16),
            rate: 0.94 + 0.12 * share(0),
        }
    }

    /// Synthesises `segments` at [`SAMPLE_RATE`].
    pub(super) fn synthesise(&self, segments: &[Segment]) -> Vec<i16> {
        let seconds: f64 = segments.iter().map(|segment| segment.length).sum();
        let mut audio = Vec::with_capacity((seconds * f64::from(SAMPLE_RATE)) as usize + 1);
        let mut tract = VocalTract::new(self);
        let mut end = 0.0;
        for segment in segments {
            let start = end;
            end += segment.length * f64::from(SAMPLE_RATE);
            // The filters follow faster in fast speech.
            let agility = (segment.phone.ms / 1000.0 / segment.length.max(1e-4)).clamp(0.6, 3.0);
            while (audio.len() as f64) < end {
                if audio.len().is_multiple_of(SAMPLES_PER_UPDATE) {
                    let along = (audio.len() as f64 - start) / (end - start);
                    let (from, to) = segment.pitch;
                    tract.approach(
                        &segment.phone,
                        from + (to - from) * along.clamp(0.0, 1.0),
                        agility,
                    );
                }
                audio.push((tract.sample() * GAIN).round() as i16);
            }
        }
        audio
    }
}

/// The state of the synthesiser.
struct VocalTract {
    voice_params: Voice,
    /// The first three formants in Hz.
    formants: [f64; 3],
    /// Amplitude of voicing, 0 to 1.
    voice: f64,
    /// Amplitude of aspiration noise.
    breath: f64,
    /// Amplitude of frication noise (hiss).
    hiss: f64,
    /// Centre frequency of the hiss in Hz.
    hiss_at: f64,
    /// The pitch, as a multiple of the voice's pitch.
    pitch: f64,
    /// Phase of the glottal cycle, 0 to 1.
    phase: f64,
    /// Milliseconds since the start.
    time: f64,
    resonators: [Resonator; 5],
    hiss_filter: Resonator,
    /// The last sample before the radiation filter.
    before_lips: f64,
    /// The state of the noise generator.
    noise: u32,
}

impl VocalTract {
    fn new(voice: &Voice) -> Self {
        let mut tract = Self {
            voice_params: *voice,
            formants: [500.0, 1400.0, 2450.0],
            voice: 0.0,
            breath: 0.0,
            hiss: 0.0,
            hiss_at: 3000.0,
            pitch: 1.0,
            phase: 0.0,
            time: 0.0,
            resonators: [Resonator::default(); 5],
            hiss_filter: Resonator::default(),
            before_lips: 0.0,
            noise: 1,
        };
        for (resonator, (at, width)) in tract.resonators[3..]
            .iter_mut()
            .zip(UPPER.into_iter().zip(&WIDTHS[3..]))
        {
            resonator.tune(at * voice.tract_scale, *width);
        }
        tract
    }

    /// Moves all parameters towards `phone` and `pitch` by one millisecond, `agility` times as fast as the time constants state.
    fn approach(&mut self, phone: &Phone, pitch: f64, agility: f64) {
        let towards = |value: &mut f64, target: f64, time: f64| {
            *value += (target - *value) * (1.0 - (-agility / time).exp());
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
        let moving = self.formants.iter().zip(WIDTHS).zip(&mut self.resonators);
        for ((at, width), resonator) in moving {
            resonator.tune(at * self.voice_params.tract_scale, width);
        }
        self.hiss_filter.tune(self.hiss_at, HISS_WIDTH);
        // Keeps the gain the same at any frequency.
        self.hiss_filter.input_gain = 1.0;
    }

    /// The next sample; loud vowels reach about 1.
    fn sample(&mut self) -> f64 {
        // Vibrato: a constant pitch sounds artificial.
        let waver =
            1.0 + 0.010 * (TAU * self.time / 190.0).sin() + 0.006 * (TAU * self.time / 71.0).sin();
        self.phase += self.voice_params.pitch * self.pitch * waver / f64::from(SAMPLE_RATE);
        self.phase -= self.phase.floor();
        let noise = self.next_noise();
        // Noise passes while the glottis is open.
        let air = self.breath
            + self.voice_params.breath * self.voice * if self.phase < 0.6 { 1.0 } else { 0.3 };
        let mut audio = self.voice * glottal_pulse(self.phase) + 0.5 * air * noise;
        for resonator in &mut self.resonators {
            audio = resonator.filter(audio);
        }
        let lips = audio - BRIGHTNESS * self.before_lips;
        self.before_lips = audio;
        // The difference of two samples removes low frequencies that the resonator passes.
        let before = self.hiss_filter.outputs[0];
        let hiss = self.hiss_filter.filter(self.hiss * noise) - before;
        lips + HISS_GAIN * hiss
    }

    /// Noise between -1 and 1, by xorshift32. The same utterance must give the same bytes, but the generators of `rand` may change between versions.
    /// `rand_xorshift` has only the generator with 128 bits of state, which gives other numbers.
    fn next_noise(&mut self) -> f64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 17;
        self.noise ^= self.noise << 5;
        f64::from(self.noise) / f64::from(u32::MAX) * 2.0 - 1.0
    }
}

/// The derivative of the glottal flow at `phase`, 0 to 1 (Rosenberg's pulse): opening, closing, closed.
fn glottal_pulse(phase: f64) -> f64 {
    const OPENING: f64 = 0.42;
    const CLOSING: f64 = 0.16;
    let rise = PI / OPENING / 2.0;
    let fall = PI / CLOSING / 2.0;
    if phase < OPENING {
        rise * (PI * phase / OPENING).sin() / fall
    } else if phase < OPENING + CLOSING {
        -(PI / 2.0 * (phase - OPENING) / CLOSING).sin()
    } else {
        0.0
    }
}

/// A two-pole resonator with unity gain at 0 Hz.
#[derive(Debug, Clone, Copy, Default)]
struct Resonator {
    /// Coefficient of the input.
    input_gain: f64,
    /// Coefficients of the last output and of the one before it.
    feedback: [f64; 2],
    /// The last output and the one before it.
    outputs: [f64; 2],
}

impl Resonator {
    /// Sets frequency and bandwidth, in Hz.
    fn tune(&mut self, at: f64, width: f64) {
        let radius = (-PI * width / f64::from(SAMPLE_RATE)).exp();
        let at = at.min(f64::from(SAMPLE_RATE) * 0.46);
        self.feedback = [
            2.0 * radius * (TAU * at / f64::from(SAMPLE_RATE)).cos(),
            -radius * radius,
        ];
        self.input_gain = 1.0 - self.feedback[0] - self.feedback[1];
    }

    /// The output for one sample of input.
    fn filter(&mut self, input: f64) -> f64 {
        let output = self.input_gain * input
            + self.feedback[0] * self.outputs[0]
            + self.feedback[1] * self.outputs[1];
        self.outputs = [output, self.outputs[0]];
        output
    }
}

#[cfg(test)]
mod tests {
    use super::super::phonemes;
    use super::*;

    /// Peak and RMS of half a second of `symbol`.
    fn loudness(voice: &Voice, symbol: &str) -> (f64, f64) {
        let phone = phonemes::phones_of(symbol).last().expect("a phone");
        let segment = Segment {
            phone,
            length: 0.5,
            pitch: (1.0, 1.0),
        };
        let audio = voice.synthesise(&[segment]);
        assert_eq!(audio.len(), SAMPLE_RATE as usize / 2);
        let squares = audio.iter().map(|&sample| f64::from(sample).powi(2));
        let loudest = audio.iter().map(|sample| sample.unsigned_abs()).max();
        let mean = (squares.sum::<f64>() / audio.len() as f64).sqrt();
        (f64::from(loudest.unwrap_or_default()), mean)
    }

    #[test]
    fn every_phone_of_every_voice_is_audible_and_does_not_clip() {
        for character in 0..20u64 {
            let voice = Voice::from_hash(character.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let (_, usual) = loudness(&voice, "@");
            for symbol in ["i", "A", "u", "O", "e", "3", "{"] {
                let (loudest, mean) = loudness(&voice, symbol);
                assert!(loudest < 30_000.0, "{symbol}: {loudest} would be cut off");
                assert!(
                    (0.3..4.0).contains(&(mean / usual)),
                    "{symbol}: {mean} of {usual}"
                );
            }
            for symbol in ["s", "S", "f", "T", "z", "m"] {
                let (_, mean) = loudness(&voice, symbol);
                assert!(
                    (0.03..0.6).contains(&(mean / usual)),
                    "{symbol}: {mean} of {usual}"
                );
            }
        }
    }
}
