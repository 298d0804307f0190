//! Tests synthesised speech: valid WAV files whose audio follows the text.

use tollgate_sandbox::synthesis::{Espeak, SpeechEngine, Utterance, synthesise};

const RATE: f64 = 24_000.0;

fn utterance(text: &str) -> Utterance<'_> {
    Utterance {
        text,
        voice: "",
        speed: 1.0,
        language: None,
    }
}

/// Rate and samples of a WAV file. Asserts that all its lengths are correct.
fn parse_wav(file: &[u8]) -> (u32, Vec<f64>) {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((&file[..4], &file[8..16]), (&b"RIFF"[..], &b"WAVEfmt "[..]));
    assert_eq!(number(4) as usize, file.len() - 8);
    assert_eq!(
        (number(16), number(20)),
        (16, 0x0001_0001),
        "plain, one channel"
    );
    assert_eq!((number(28), number(32)), (number(24) * 2, 0x0010_0002));
    assert_eq!(
        (&file[36..40], number(40) as usize),
        (&b"data"[..], file.len() - 44)
    );
    let samples = file[44..].chunks_exact(2);
    let samples = samples.map(|two| f64::from(i16::from_le_bytes([two[0], two[1]])));
    (number(24), samples.collect())
}

fn seconds(utterance: &Utterance<'_>) -> f64 {
    parse_wav(&synthesise(utterance)).1.len() as f64 / RATE
}

#[test]
fn every_text_gives_an_audible_wav_file() {
    for text in ["Hello there!", "雪山脚下的小村庄", "42", "Привет", "🎉", ""] {
        let (rate, samples) = parse_wav(&synthesise(&utterance(text)));
        assert_eq!(f64::from(rate), RATE);
        let squares: f64 = samples.iter().map(|sample| sample * sample).sum();
        let mean = (squares / samples.len() as f64).sqrt();
        assert!((1_500.0..12_000.0).contains(&mean), "{text}: {mean}");
        let peak = samples
            .iter()
            .fold(0.0, |peak: f64, sample| peak.max(sample.abs()));
        assert!((28_990.0..=29_000.0).contains(&peak), "{text}: {peak}");
        let balance = samples.iter().sum::<f64>() / samples.len() as f64;
        assert!(balance.abs() < 100.0, "{text}: {balance}");
        // The audio begins and ends with silence.
        let mut margins = samples[..240].iter().chain(&samples[samples.len() - 240..]);
        assert!(margins.all(|sample| sample.abs() < 100.0), "{text}");
    }
}

#[test]
fn pauses_are_quiet() {
    let (_, samples) = parse_wav(&synthesise(&utterance("One. Two.")));
    let loud: Vec<bool> = samples
        .chunks(480)
        .map(|piece| piece.iter().any(|sample| sample.abs() > 2_000.0))
        .collect();
    let starts = loud.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    assert!(starts >= 2, "a gap between the sentences");
    let longest = loud.split(|loud| *loud).map(<[bool]>::len).max().unwrap();
    assert!(longest as f64 * 480.0 / RATE > 0.25);
}

#[test]
fn longer_texts_and_pauses_lengthen_the_audio() {
    let seconds_of = |text: &str| seconds(&utterance(text));
    let (one, two) = (
        seconds_of("A red fox."),
        seconds_of("A red fox. A red fox."),
    );
    assert!(two > one * 1.7, "{one} {two}");
    // Without the pauses around it, a Chinese character takes a fifth of a second.
    let (four, eight) = (seconds_of("雪山村庄"), seconds_of("雪山村庄雪山村庄"));
    assert!((0.7..0.9).contains(&(eight - four)), "{four} {eight}");
    assert!(seconds_of("Wait, what, no") > seconds_of("Wait what no") + 0.2);
}

#[test]
fn the_duration_is_divided_by_the_speed() {
    let text = "The quick brown fox jumps over the lazy dog.";
    let usual = seconds(&utterance(text));
    for speed in [0.25, 0.5, 2.0, 4.0] {
        let fast = Utterance {
            speed,
            ..utterance(text)
        };
        let ratio = usual / seconds(&fast) / speed;
        assert!((ratio - 1.0).abs() < 0.01, "{speed}: {ratio}");
    }
}

#[test]
fn the_same_utterance_gives_the_same_bytes_and_each_voice_differs() {
    let base = utterance("Good morning");
    let file = synthesise(&base);
    assert_eq!(synthesise(&base), file);
    let mut files = vec![file];
    for voice in ["alloy", "nova", "阿杰"] {
        let other = synthesise(&Utterance { voice, ..base });
        assert!(!files.contains(&other), "{voice}");
        files.push(other);
    }
}

#[tokio::test]
async fn without_espeak_the_built_in_synthesiser_is_used() {
    let utterance = utterance("Good morning");
    assert_eq!(
        SpeechEngine::default().speak(&utterance).await,
        synthesise(&utterance)
    );
}

/// Tests nothing if `espeak-ng` is not installed.
#[tokio::test]
async fn espeak_is_used_if_it_is_installed() {
    let Some(espeak) = Espeak::find() else {
        return;
    };
    // Without the pipe, parts of this text would be interpreted as options, signs or commands.
    let short = utterance("--help $(id) [[x]] `id` One.");
    let long = utterance(
        "This is a much longer text, which takes much more time to say than the other one does.",
    );
    let mut lengths = Vec::new();
    for utterance in [short, long, Utterance { speed: 2.0, ..long }] {
        let (rate, samples) = parse_wav(&espeak.speak(&utterance).await.expect("it speaks"));
        assert_eq!(rate, 22_050);
        assert!(samples.iter().any(|sample| sample.abs() > 20_000.0));
        lengths.push(samples.len() as f64 / f64::from(rate));
    }
    assert!(
        lengths[1] > 3.0 && lengths[2] < lengths[1] * 0.7,
        "{lengths:?}"
    );
    let unknown = Utterance {
        language: Some("qx-none"),
        ..short
    };
    assert!(espeak.speak(&unknown).await.is_err());
    // If `espeak-ng` fails, the engine still returns audio.
    parse_wav(&SpeechEngine::find().speak(&unknown).await);
}
