//! Files that the fakes make: images, videos, audio files. They are small, whatever their size in
//! pixels, and every reader of their format takes them.

mod audio;
mod jpeg;
mod png;
mod video;
mod webp;

use bytes::Bytes;

pub(crate) use audio::{AudioFile, AudioFormat};
pub(crate) use video::VideoFile;

/// Bytes that need not be in memory: a beginning, so many zeros, an end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blob {
    pub(crate) head: Bytes,
    pub(crate) zeros: u64,
    pub(crate) tail: Bytes,
}

impl Blob {
    pub(crate) fn new(head: impl Into<Bytes>) -> Self {
        Self {
            head: head.into(),
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.head.len() as u64 + self.zeros + self.tail.len() as u64
    }

    /// The first `count` bytes.
    pub(crate) fn first(&self, count: u64) -> Self {
        let upto = |bytes: &Bytes, count: u64| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            bytes.slice(..count.min(bytes.len()))
        };
        let after_head = count.saturating_sub(self.head.len() as u64);
        let after_zeros = after_head.saturating_sub(self.zeros);
        Self {
            head: upto(&self.head, count),
            zeros: self.zeros.min(after_head),
            tail: upto(&self.tail, after_zeros),
        }
    }

    /// All of it in memory.
    pub(crate) fn bytes(&self) -> Bytes {
        if self.zeros == 0 && self.tail.is_empty() {
            return self.head.clone();
        }
        let mut all = Vec::from(&self.head[..]);
        all.resize(all.len() + usize::try_from(self.zeros).unwrap_or(0), 0);
        all.extend_from_slice(&self.tail);
        Bytes::from(all)
    }

    /// With zeros at its end, up to `bytes` in all; never shorter than it was.
    fn padded(mut self, bytes: Option<u64>) -> Self {
        self.zeros += bytes.unwrap_or(0).saturating_sub(self.len());
        self
    }
}

/// The formats of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageFormat {
    Png,
    Jpeg,
    WebP,
}

impl ImageFormat {
    /// The format of a name such as `jpeg`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "png" => Some(Self::Png),
            "jpeg" | "jpg" => Some(Self::Jpeg),
            "webp" => Some(Self::WebP),
            _ => None,
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::WebP => "image/webp",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::WebP => "webp",
        }
    }
}

/// An image of one colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageFile {
    pub(crate) form: ImageFormat,
    /// In pixels.
    pub(crate) size: (u32, u32),
    /// The colour depends on it.
    pub(crate) number: u64,
}

/// A file that is made when it is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FileRecipe {
    Image(ImageFile),
    Video(VideoFile),
    Audio(AudioFile),
}

impl FileRecipe {
    /// The file, of `bytes` in all if that is more than it needs.
    pub(crate) fn make(self, bytes: Option<u64>) -> Blob {
        match self {
            Self::Image(ImageFile { form, size, number }) => {
                let [red, green, blue, ..] = crate::rng::mix(number).to_le_bytes();
                let file = match form {
                    ImageFormat::Png => png::make(size, [red, green, blue]),
                    ImageFormat::Jpeg => jpeg::make(size, red),
                    ImageFormat::WebP => webp::make(size, [red, green, blue]),
                };
                Blob::new(file).padded(bytes)
            }
            Self::Video(video) => video.make(bytes),
            Self::Audio(audio) => audio.make().padded(bytes),
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Image(image) => image.form.media_type(),
            Self::Video(_) => "video/mp4",
            Self::Audio(audio) => audio.form.media_type(),
        }
    }

    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Image(image) => image.form.extension(),
            Self::Video(_) => "mp4",
            Self::Audio(audio) => audio.form.extension(),
        }
    }
}

/// Bits, put together with the first in the lowest place of a byte.
#[derive(Default)]
struct LowBits {
    bytes: Vec<u8>,
    free: u32,
}

impl LowBits {
    /// The lowest `count` bits of `value`, lowest first.
    fn put(&mut self, value: u32, count: u32) {
        for at in 0..count {
            self.bit(value >> at & 1);
        }
    }

    /// The lowest `count` bits of `value`, highest first.
    fn put_code(&mut self, value: u32, count: u32) {
        for at in (0..count).rev() {
            self.bit(value >> at & 1);
        }
    }

    fn bit(&mut self, bit: u32) {
        if self.free == 0 {
            self.bytes.push(0);
            self.free = 8;
        }
        let at = 8 - self.free;
        if let Some(last) = self.bytes.last_mut() {
            *last |= (bit as u8) << at;
        }
        self.free -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_what_they_say_and_as_large_as_requested() {
        use ImageFormat::{Jpeg, Png, WebP};
        let sizes = [(1, 1), (17, 5), (1280, 720), (4096, 4096), (3, 3000)];
        for (form, size) in [Png, Jpeg, WebP]
            .into_iter()
            .flat_map(|form| sizes.map(|size| (form, size)))
        {
            let decode = |number, bytes| {
                let recipe = FileRecipe::Image(ImageFile { form, size, number });
                let file = recipe.make(bytes).bytes();
                assert!(file.len() < 400_000, "{form:?} {size:?}: {}", file.len());
                let format = image::guess_format(&file).expect("a format");
                assert_eq!(format.to_mime_type(), recipe.media_type());
                let image = image::load_from_memory(&file);
                image
                    .unwrap_or_else(|e| panic!("{form:?} {size:?}: {e}"))
                    .to_rgb8()
            };
            let (one, other) = (decode(1, None), decode(2, Some(300_000)));
            assert_eq!(one.dimensions(), size);
            assert_ne!(one.get_pixel(0, 0), other.get_pixel(0, 0));
        }
        for form in [AudioFormat::Mp3, AudioFormat::Wav, AudioFormat::Pcm] {
            let audio = AudioFile::of("a text to be read aloud", form, 1.0);
            let recipe = FileRecipe::Audio(audio);
            assert_eq!(recipe.make(Some(9)).len(), recipe.make(None).len());
            assert_eq!(recipe.make(Some(1_000_000)).len(), 1_000_000);
        }
    }
}
