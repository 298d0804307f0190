//! What a result's bytes are, and whether they are what the task makes.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use tollgate_core::TaskKind;
use tollgate_media::image::facts;

/// A type of file that results come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileType {
    /// The ending of its files, without the dot.
    pub extension: &'static str,
    /// As `content-type` has it.
    pub media_type: &'static str,
}

const fn of(extension: &'static str, media_type: &'static str) -> FileType {
    FileType {
        extension,
        media_type,
    }
}

const MP4: FileType = of("mp4", "video/mp4");
const MOV: FileType = of("mov", "video/quicktime");
const WEBM: FileType = of("webm", "video/webm");
const M4A: FileType = of("m4a", "audio/mp4");
const MP3: FileType = of("mp3", "audio/mpeg");
const WAV: FileType = of("wav", "audio/wav");
const OGG: FileType = of("ogg", "audio/ogg");
const FLAC: FileType = of("flac", "audio/flac");
const AAC: FileType = of("aac", "audio/aac");

/// Every type of film and sound.
const FILMS_AND_SOUNDS: [FileType; 9] = [MP4, MOV, WEBM, M4A, MP3, WAV, OGG, FLAC, AAC];

/// The media type of films and sounds with that ending.
pub fn media_type(extension: &str) -> Option<&'static str> {
    let found = FILMS_AND_SOUNDS.iter().find(|t| t.extension == extension);
    found.map(|t| t.media_type)
}

/// What the file is, if it is such as tasks of that kind make and nothing is missing that can be seen without decoding it.
/// Beside a film, `others` before it, its last frame may come as a picture.
///
/// # Errors
/// A sentence that goes on after "the result".
pub fn check(path: &Path, kind: TaskKind, others: usize) -> Result<FileType, String> {
    let unreadable = |e: io::Error| format!("cannot be read back: {e}");
    let mut file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes == 0 {
        return Err("is empty".to_owned());
    }
    if kind == TaskKind::Image {
        return picture(file, bytes);
    }
    let mut head = [0; 16];
    let read = read_up_to(&mut file, &mut head).map_err(unreadable)?;
    let head = &head[..read];
    let found = match kind {
        TaskKind::Video if others > 0 && film(head).is_none() => {
            file.rewind().map_err(unreadable)?;
            return picture(file, bytes);
        }
        TaskKind::Video => film(head).ok_or("is no film (MP4, QuickTime or WebM)")?,
        _ => sound(head).ok_or("is no sound (MP3, WAV, Ogg, FLAC, AAC or M4A)")?,
    };
    if [MP4, MOV, M4A].contains(&found) {
        boxes(&mut file, bytes)?;
    }
    Ok(found)
}

fn picture(file: File, bytes: u64) -> Result<FileType, String> {
    let found = facts::read(BufReader::new(file), bytes);
    let format = found.map_err(|e| e.to_string())?.format;
    Ok(of(format.extension(), format.media_type()))
}

fn film(head: &[u8]) -> Option<FileType> {
    if head.starts_with(b"\x1a\x45\xdf\xa3") {
        return Some(WEBM);
    }
    match (head.get(4..8)?, head.get(8..12)?) {
        (b"ftyp", b"qt  ") => Some(MOV),
        (b"ftyp", brand) if !brand.starts_with(b"M4A") => Some(MP4),
        _ => None,
    }
}

fn sound(head: &[u8]) -> Option<FileType> {
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
        // Eleven set bits begin a frame; a layer of 0 is ADTS, anything else MPEG audio.
        [0xff, ..] if second & 0xf6 == 0xf0 => Some(AAC),
        [0xff, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0 => Some(MP3),
        _ => None,
    }
}

/// Walks the boxes of an MP4: they must fill the file, and the index must be among them.
fn boxes(file: &mut File, bytes: u64) -> Result<(), String> {
    let unreadable = |e: io::Error| format!("cannot be read back: {e}");
    let (mut at, mut has_index) = (0, false);
    while at < bytes {
        file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
        let mut head = [0; 16];
        let read = read_up_to(file, &mut head).map_err(unreadable)?;
        if read < 8 {
            return Err("is cut off".to_owned());
        }
        let name = [head[4], head[5], head[6], head[7]];
        has_index |= &name == b"moov" || &name == b"moof";
        let size = u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        at += match size {
            // To the end of the file.
            0 => bytes - at,
            1 if read == 16 => {
                let long = head[8..].try_into().unwrap_or_default();
                u64::from_be_bytes(long).max(16)
            }
            1 => return Err("is cut off".to_owned()),
            size => size.max(8),
        };
    }
    match (at == bytes, has_index) {
        (true, true) => Ok(()),
        (false, _) => Err("is cut off".to_owned()),
        (true, false) => Err("has no index of its frames".to_owned()),
    }
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(bytes: &[u8], kind: TaskKind) -> Result<&'static str, String> {
        let path = std::env::temp_dir().join(tollgate_core::id::short_id("tollgate-type-"));
        std::fs::write(&path, bytes).unwrap();
        let found = check(&path, kind, 0).map(|found| found.extension);
        std::fs::remove_file(&path).unwrap();
        found
    }

    fn film_of(boxes: &[(&[u8; 4], usize)]) -> Vec<u8> {
        let mut film = Vec::new();
        for (name, content) in boxes {
            let size = u32::try_from(content + 8).unwrap();
            film.extend(size.to_be_bytes());
            film.extend(*name);
            film.extend(std::iter::repeat_n(b'i', *content));
        }
        film
    }

    #[test]
    fn films_are_whole_or_refused() {
        let whole = film_of(&[(b"ftyp", 12), (b"moov", 20), (b"mdat", 100)]);
        assert_eq!(checked(&whole, TaskKind::Video), Ok("mp4"));
        for cut in [1, 7, 20, 50, 99, 130] {
            let cut = &whole[..whole.len() - cut];
            assert!(checked(cut, TaskKind::Video).is_err(), "{}", cut.len());
        }
        let bare = film_of(&[(b"ftyp", 12), (b"mdat", 100)]);
        let error = checked(&bare, TaskKind::Video).unwrap_err();
        assert_eq!(error, "has no index of its frames");
        assert_eq!(
            checked(b"\x1a\x45\xdf\xa3rest", TaskKind::Video),
            Ok("webm")
        );
        for other in [b"<html>".as_slice(), b"", b"\x89PNG\r\n\x1a\n", b"{}"] {
            assert!(checked(other, TaskKind::Video).is_err());
        }
        assert!(checked(&whole, TaskKind::Image).is_err());
    }

    #[test]
    fn sounds_are_known_by_their_beginning() {
        for (bytes, expected) in [
            (b"RIFF\x24\0\0\0WAVEfmt ".as_slice(), "wav"),
            (b"ID3\x04\0\0", "mp3"),
            (b"\xff\xfb\x90\x64", "mp3"),
            (b"\xff\xf3\x40\xc4", "mp3"),
            (b"\xff\xf1\x50\x80", "aac"),
            (b"OggS\0\x02", "ogg"),
            (b"fLaC\0\0", "flac"),
        ] {
            assert_eq!(checked(bytes, TaskKind::Speech), Ok(expected));
        }
        for other in [b"{\"error\":1}".as_slice(), b"\xff\xe0", b"text"] {
            assert!(checked(other, TaskKind::Speech).is_err());
        }
    }
}
