//! Encodes and decodes WAV files, 16-bit PCM, mono.
//!
//! `espeak-ng` writes to a pipe, and therefore a length beyond the end of the file. The crate `hound` 3.5.1 (evaluated on 2026-11-28) reports the end
//! of such a file as an error, as that of a damaged file, and rejects an odd length.

/// Peak amplitude after normalisation, about 1 dB below full scale.
const PEAK: f64 = 29_000.0;

/// Encodes `samples`, at `rate` samples a second, as a file. The samples are normalised to the peak amplitude of all such files.
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

/// Decodes the samples and the number of samples a second. Lengths beyond the end of the file are accepted, because programs that write to a pipe do
/// not know the length. `None` if the file is not 16-bit mono PCM.
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

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: usize = 20;

    #[test]
    fn an_encoded_file_is_decoded_with_its_loudest_sample_at_the_peak() {
        let file = encode(vec![0, 50, -100], 24_000);
        assert_eq!(decode(&file), Some((vec![0, 14_500, -29_000], 24_000)));
    }

    #[test]
    fn other_chunks_are_skipped_and_a_length_past_the_end_is_limited() {
        let file = encode(vec![100], 8_000);
        let mut piped = file[..36].to_vec();
        piped.extend(b"LIST\x03\0\0\0abc\0data\xff\xff\xff\x7f");
        piped.extend(&file[44..]);
        assert_eq!(decode(&piped), Some((vec![29_000], 8_000)));
    }

    #[test]
    fn files_of_other_formats_are_not_decoded() {
        let file = encode(vec![100, 200], 8_000);
        assert_eq!(decode(b"OggS"), None);
        assert_eq!(decode(&file[..40]), None);
        for (offset, value) in [(0, 3), (2, 2), (14, 8)] {
            let mut other = file.clone();
            other[FORMAT + offset] = value;
            assert_eq!(decode(&other), None, "{offset}");
        }
        let no_format = [&file[..12], &file[36..]].concat();
        assert_eq!(decode(&no_format), None);
    }
}
