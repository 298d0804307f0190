//! WAV files, 16-bit PCM, mono.

/// Peak amplitude after normalisation, about 1 dB below full scale.
const PEAK: f64 = 29_000.0;

/// A file of `samples`, `rate` a second, wav as loud as files of ours are.
pub(super) fn encode(mut samples: Vec<i16>, rate: u32) -> Vec<u8> {
    let loudest = samples.iter().map(|sample| sample.unsigned_abs()).max();
    let gain = PEAK / f64::from(loudest.unwrap_or_default().max(1));
    for sample in &mut samples {
        *sample = (f64::from(*sample) * gain).round() as i16;
    }
    let size = samples.len() as u32 * 2;
    let mut file = Vec::with_capacity(44 + samples.len() * 2);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + size).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16u32.to_le_bytes());
    file.extend_from_slice(&1u16.to_le_bytes()); // PCM
    file.extend_from_slice(&1u16.to_le_bytes()); // channels
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&(rate * 2).to_le_bytes()); // bytes per second
    file.extend_from_slice(&2u16.to_le_bytes()); // bytes per sample
    file.extend_from_slice(&16u16.to_le_bytes()); // bits per sample
    file.extend_from_slice(b"data");
    file.extend_from_slice(&size.to_le_bytes());
    for sample in samples {
        file.extend_from_slice(&sample.to_le_bytes());
    }
    file
}

/// Decodes samples and rate. Lengths beyond the end of the file are accepted, as programs that write to a pipe do not know
/// the length. `None` if it is not 16-bit mono PCM.
pub(super) fn decode(file: &[u8]) -> Option<(Vec<i16>, u32)> {
    let mut rest = file
        .strip_prefix(b"RIFF")?
        .get(4..)?
        .strip_prefix(b"WAVE")?;
    let mut rate = None;
    loop {
        let (kind, size) = (rest.get(..4)?, rest.get(4..8)?);
        let size = u32::from_le_bytes(size.try_into().ok()?) as usize;
        rest = &rest[8..];
        match kind {
            b"fmt " => {
                let format = rest.get(..16)?;
                // PCM, one channel; 16 bits.
                if format[..4] != [1, 0, 1, 0] || format[14..] != [16, 0] {
                    return None;
                }
                rate = Some(u32::from_le_bytes(format[4..8].try_into().ok()?));
            }
            b"data" => {
                let data = &rest[..size.min(rest.len())];
                let samples = data
                    .chunks_exact(2)
                    .map(|two| i16::from_le_bytes([two[0], two[1]]));
                return Some((samples.collect(), rate?));
            }
            _ => {}
        }
        rest = rest.get(size + size % 2..)?;
    }
}
