//! File types: recognises images, videos and audio by their first bytes, and checks that a result's type is one of the task's kind.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::Path;

use tollgate_core::TaskKind;
use tollgate_media::image::ImageMetadata;

use super::file_head::read_up_to;
use super::{audio_end, mp4_end};

/// A type of result file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileType {
    /// The extension of its files, without the dot.
    pub extension: &'static str,
    /// The `Content-Type`.
    pub media_type: &'static str,
}

const fn file_type(extension: &'static str, media_type: &'static str) -> FileType {
    FileType {
        extension,
        media_type,
    }
}

const MP4: FileType = file_type("mp4", "video/mp4");
const MOV: FileType = file_type("mov", "video/quicktime");
const WEBM: FileType = file_type("webm", "video/webm");
const M4A: FileType = file_type("m4a", "audio/mp4");
const MP3: FileType = file_type("mp3", "audio/mpeg");
const WAV: FileType = file_type("wav", "audio/wav");
const OGG: FileType = file_type("ogg", "audio/ogg");
const FLAC: FileType = file_type("flac", "audio/flac");
const AAC: FileType = file_type("aac", "audio/aac");

/// Every type of video and audio.
const VIDEO_AND_AUDIO: [FileType; 9] = [MP4, MOV, WEBM, M4A, MP3, WAV, OGG, FLAC, AAC];

/// The media type of videos and audio with that extension. `None` for any other extension.
pub fn media_type(extension: &str) -> Option<&'static str> {
    let found = VIDEO_AND_AUDIO.iter().find(|t| t.extension == extension);
    found.map(|t| t.media_type)
}

/// Recognises the type of a result of a task of that kind, and checks that the file is complete as far as that is possible without decoding it. A
/// video task's second result may be an image, the last frame: `earlier_results` is the number of results before this one.
///
/// # Errors
/// The end of a sentence that begins with "the result".
pub fn check_result(
    path: &Path,
    kind: TaskKind,
    earlier_results: usize,
) -> Result<FileType, String> {
    let unreadable = |e: io::Error| format!("cannot be read back: {e}");
    let mut file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes == 0 {
        return Err("is empty".to_owned());
    }
    if kind == TaskKind::Image {
        return recognize_image(file, bytes);
    }
    let mut head = [0; 16];
    let read = read_up_to(&mut file, &mut head).map_err(unreadable)?;
    let head = &head[..read];
    let found = match kind {
        TaskKind::Video if earlier_results > 0 && recognize_video(head).is_none() => {
            file.rewind().map_err(unreadable)?;
            return recognize_image(file, bytes);
        }
        TaskKind::Video => {
            recognize_video(head).ok_or("is not a video (MP4, QuickTime or WebM)")?
        }
        _ => recognize_audio(head).ok_or("is not audio (MP3, WAV, Ogg, FLAC, AAC or M4A)")?,
    };
    if [MP4, MOV, M4A].contains(&found) {
        mp4_end::check_boxes(&mut file, bytes)?;
    }
    let is_complete = match found {
        WAV => audio_end::is_complete_wav(&mut file, bytes),
        MP3 => audio_end::is_complete_mp3(&mut file, bytes),
        _ => Ok(true),
    };
    match is_complete.map_err(unreadable)? {
        true => Ok(found),
        false => Err("is cut off".to_owned()),
    }
}

fn recognize_image(file: File, bytes: u64) -> Result<FileType, String> {
    let found = ImageMetadata::read_complete(BufReader::new(file), bytes);
    let format = found.map_err(|e| e.to_string())?.format;
    Ok(file_type(format.extension(), format.media_type()))
}

fn recognize_video(head: &[u8]) -> Option<FileType> {
    if head.starts_with(b"\x1a\x45\xdf\xa3") {
        return Some(WEBM);
    }
    match (head.get(4..8)?, head.get(8..12)?) {
        (b"ftyp", b"qt  ") => Some(MOV),
        (b"ftyp", brand) if !brand.starts_with(b"M4A") => Some(MP4),
        _ => None,
    }
}

fn recognize_audio(head: &[u8]) -> Option<FileType> {
    let second = head.get(1).copied().unwrap_or_default();
    match head {
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'A',
            b'V',
            b'E',
            ..,
        ] => Some(WAV),
        [b'I', b'D', b'3', ..] => Some(MP3),
        [b'O', b'g', b'g', b'S', ..] => Some(OGG),
        [b'f', b'L', b'a', b'C', ..] => Some(FLAC),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(M4A),
        // A frame begins with eleven set bits. Layer 0 means ADTS (AAC), any other layer MPEG audio.
        [0xff, ..] if second & 0xf6 == 0xf0 => Some(AAC),
        [0xff, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0 => Some(MP3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extension_of(bytes: &[u8], kind: TaskKind) -> Result<&'static str, String> {
        let path = std::env::temp_dir().join(tollgate_core::id::short_id("tollgate-type-"));
        std::fs::write(&path, bytes).unwrap();
        let found = check_result(&path, kind, 0).map(|found| found.extension);
        std::fs::remove_file(&path).unwrap();
        found
    }

    fn mp4_with(boxes: &[(&[u8; 4], usize)]) -> Vec<u8> {
        let mut file = Vec::new();
        for (name, content) in boxes {
            let size = u32::try_from(content + 8).unwrap();
            file.extend(size.to_be_bytes());
            file.extend(*name);
            file.extend(std::iter::repeat_n(b'i', *content));
        }
        file
    }

    #[test]
    fn a_truncated_video_is_rejected() {
        let complete = mp4_with(&[(b"ftyp", 12), (b"moov", 20), (b"mdat", 100)]);
        assert_eq!(extension_of(&complete, TaskKind::Video), Ok("mp4"));
        for cut in [1, 7, 20, 50, 99, 130] {
            let cut = &complete[..complete.len() - cut];
            assert!(extension_of(cut, TaskKind::Video).is_err(), "{}", cut.len());
        }
        let without_index = mp4_with(&[(b"ftyp", 12), (b"mdat", 100)]);
        let error = extension_of(&without_index, TaskKind::Video).unwrap_err();
        assert_eq!(error, "has no index of its frames");
        assert_eq!(
            extension_of(b"\x1a\x45\xdf\xa3rest", TaskKind::Video),
            Ok("webm")
        );
        for other in [b"<html>".as_slice(), b"", b"\x89PNG\r\n\x1a\n", b"{}"] {
            assert!(extension_of(other, TaskKind::Video).is_err());
        }
        assert!(extension_of(&complete, TaskKind::Image).is_err());
    }

    #[test]
    fn audio_is_recognized_by_its_first_bytes() {
        for (bytes, expected) in [
            (b"RIFF\x08\0\0\0WAVEfmt ".as_slice(), "wav"),
            (b"ID3\x04\0\0", "mp3"),
            (b"\xff\xfb\x00\x64", "mp3"),
            (b"\xff\xf3\x00\xc4", "mp3"),
            (b"\xff\xf1\x50\x80", "aac"),
            (b"OggS\0\x02", "ogg"),
            (b"fLaC\0\0", "flac"),
        ] {
            assert_eq!(extension_of(bytes, TaskKind::Speech), Ok(expected));
        }
        for other in [b"{\"error\":1}".as_slice(), b"\xff\xe0", b"text"] {
            assert!(extension_of(other, TaskKind::Speech).is_err());
        }
    }
    #[test]
    fn truncated_audio_is_rejected() {
        let data = vec![7; 1_000];
        let wav = |announced: u32| {
            let size = announced.to_le_bytes();
            [b"RIFF", &size[..], b"WAVEfmt ", &data].concat()
        };
        let frames = |head: [u8; 4], len: usize| {
            let mut frame = vec![0; len];
            frame[..4].copy_from_slice(&head);
            frame.repeat(5)
        };
        let mpeg1 = frames([0xff, 0xfb, 0x90, 0x64], 417);
        let mpeg2 = frames([0xff, 0xf3, 0x84, 0xc4], 192);
        let tagged = [b"ID3\x04\0\0\0\0\x01\x02", &data[..130], &mpeg1].concat();
        for complete in [wav(1_008), mpeg1.clone(), mpeg2, tagged] {
            let cut = &complete[..complete.len() - 100];
            assert!(extension_of(&complete, TaskKind::Speech).is_ok());
            let error = extension_of(cut, TaskKind::Speech).unwrap_err();
            assert_eq!(error, "is cut off", "{:?}", &cut[..4]);
        }
        let with_tag = [mpeg1, b"TAG of the end".to_vec()].concat();
        for unknown in [wav(0), wav(u32::MAX), with_tag] {
            assert!(extension_of(&unknown, TaskKind::Speech).is_ok());
        }
    }
}
