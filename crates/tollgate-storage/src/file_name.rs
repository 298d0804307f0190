//! Names of stored files: 7 base-32 digits of the second in which the file expires, 26 random ones, and an extension.

use tollgate_core::{Millis, id};
use tollgate_media::image::ImageFormat;

use crate::types;

const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const EXPIRY_DIGITS: usize = 7;
const RANDOM_DIGITS: usize = 26;

/// Whether a file's name is valid, and the file's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameStatus {
    /// The name does not have the format of names that `generate` returns.
    Invalid,
    /// The file has expired.
    Expired,
    /// The file exists until it expires, unless it was deleted earlier.
    Valid {
        /// In Unix seconds.
        expires_at: i64,
    },
}

/// Reads the expiry out of `name`; `now` decides whether the file has expired.
pub fn parse(name: &str, now: Millis) -> NameStatus {
    let Some((stem, extension)) = name.split_once('.') else {
        return NameStatus::Invalid;
    };
    let digits =
        stem.len() == EXPIRY_DIGITS + RANDOM_DIGITS && stem.bytes().all(|b| BASE32.contains(&b));
    if !digits || media_type(extension).is_none() {
        return NameStatus::Invalid;
    }
    let expires_at = stem.bytes().take(EXPIRY_DIGITS).fold(0, |n, b| {
        let digit = BASE32.iter().position(|c| *c == b).unwrap_or_default();
        n * 32 + digit as i64
    });
    if expires_at * 1000 <= now {
        NameStatus::Expired
    } else {
        NameStatus::Valid { expires_at }
    }
}

/// Returns a new name for a file that expires at `expires_at` (Unix seconds).
pub(super) fn generate(expires_at: i64, extension: &str) -> String {
    let expires_at = expires_at.clamp(0, (1 << (5 * EXPIRY_DIGITS)) - 1);
    let mut name = String::with_capacity(40);
    for position in (0..EXPIRY_DIGITS).rev() {
        let digit = usize::try_from(expires_at >> (5 * position) & 31).unwrap_or_default();
        name.push(char::from(BASE32[digit]));
    }
    name.push_str(&id::file_name());
    name.push('.');
    name.push_str(extension);
    name
}

/// The media type of files with that extension. `None` for extensions that no stored file has.
fn media_type(extension: &str) -> Option<&'static str> {
    const UNKNOWN: &str = "bin";
    if extension == UNKNOWN {
        return Some("application/octet-stream");
    }
    let mut formats = ImageFormat::ALL.into_iter();
    let image = formats.find(|f| f.extension() == extension);
    image
        .map(ImageFormat::media_type)
        .or_else(|| types::media_type(extension))
}

/// The media type of the stored file of that name; `application/octet-stream` if the extension is unknown.
pub fn media_type_of(name: &str) -> &'static str {
    let extension = name.rsplit('.').next().unwrap_or_default();
    media_type(extension).unwrap_or("application/octet-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_contains_its_expiry_and_any_other_name_is_invalid() {
        let name = generate(1_700_000_000, "png");
        assert_eq!(
            parse(&name, 1_699_999_999_999),
            NameStatus::Valid {
                expires_at: 1_700_000_000
            }
        );
        assert_eq!(parse(&name, 1_700_000_000_000), NameStatus::Expired);
        let stem = name.strip_suffix(".png").unwrap();
        for other in [
            "",
            ".png",
            "../x.png",
            "x.png",
            "..%2f.png",
            &format!("{stem}.exe"),
            &format!("{stem}.png/"),
            stem,
        ] {
            assert_eq!(parse(other, 0), NameStatus::Invalid, "{other}");
        }
        assert_eq!(
            parse(&format!("{}.png", stem.to_uppercase()), 0),
            NameStatus::Invalid
        );
    }
}
