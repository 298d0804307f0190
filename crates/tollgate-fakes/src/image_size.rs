//! The size of a image in pixels, read from its beginning.

/// Width and height of a PNG, JPEG, WebP, GIF or BMP.
pub(crate) fn measure(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big(bytes, 16, 4)?, big(bytes, 20, 4)?));
    }
    if bytes.starts_with(b"\xff\xd8") {
        return jpeg(bytes);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
        return webp(bytes);
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little(bytes, 6, 2)?, little(bytes, 8, 2)?));
    }
    if bytes.starts_with(b"BM") {
        return Some((little(bytes, 18, 4)?, little(bytes, 22, 4)?));
    }
    None
}

fn big(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + count)?;
    Some(bytes.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)))
}

fn little(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + count)?;
    let bytes = bytes.iter().rev();
    Some(bytes.fold(0, |n, byte| n << 8 | u32::from(*byte)))
}

/// The first segment that begins a frame.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = big(bytes, at, 2)?;
        let is_frame =
            matches!(marker, 0xffc0..=0xffcf) && ![0xffc4, 0xffc8, 0xffcc].contains(&marker);
        if is_frame {
            return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
        }
        at += 2 + big(bytes, at + 2, 2)? as usize;
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        b"VP8L" => {
            let both = little(bytes, 21, 4)?;
            Some(((both & 0x3fff) + 1, (both >> 14 & 0x3fff) + 1))
        }
        _ => Some((
            little(bytes, 26, 2)? & 0x3fff,
            little(bytes, 28, 2)? & 0x3fff,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media_files::{FileRecipe, ImageFile, ImageFormat};

    #[test]
    fn sizes_are_found() {
        for form in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            let size = (1300, 77);
            let number = 1;
            let file = FileRecipe::Image(ImageFile { form, size, number }).make(None);
            assert_eq!(measure(&file.bytes()), Some(size));
            assert_eq!(measure(&file.first(11).bytes()), None);
        }
        let other = image::RgbImage::new(33, 44);
        for format in [image::ImageFormat::Gif, image::ImageFormat::Bmp] {
            let mut file = std::io::Cursor::new(Vec::new());
            other.write_to(&mut file, format).expect("a picture");
            assert_eq!(measure(file.get_ref()), Some((33, 44)));
        }
    }
}
