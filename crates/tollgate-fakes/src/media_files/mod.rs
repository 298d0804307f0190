//! Files that the fakes generate: images, videos, audio files. They are small, whatever their size in pixels, and valid for every reader of their
//! format.

mod audio;
mod blob;
mod jpeg;
mod low_bits;
mod png;
mod video;
mod webp;

pub(crate) use audio::{AudioFile, AudioFormat};
pub(crate) use blob::Blob;
pub(crate) use video::VideoFile;

/// The formats of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageFormat {
    Png,
    Jpeg,
    WebP,
}

impl ImageFormat {
    /// The format called `name`, such as `jpeg`.
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
    /// The size in pixels.
    pub(crate) size: (u32, u32),
    /// A number that determines the colour.
    pub(crate) number: u64,
}

/// The description of a file that is generated when it is requested.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FileRecipe {
    Image(ImageFile),
    Video(VideoFile),
    Audio(AudioFile),
}

impl FileRecipe {
    /// Generates the file, padded to `bytes` in total if that is more than it needs (for videos, at least 16 bytes more).
    pub(crate) fn make(self, bytes: Option<u64>) -> Blob {
        match self {
            Self::Image(ImageFile { form, size, number }) => {
                let [red, green, blue, ..] = crate::rng::mix(number).to_le_bytes();
                let file = match form {
                    ImageFormat::Png => png::encode(size, [red, green, blue]),
                    ImageFormat::Jpeg => jpeg::encode(size, red),
                    ImageFormat::WebP => webp::encode(size, [red, green, blue]),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_media_type_and_the_requested_size() {
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
            let audio = AudioFile::for_text("a text to be read aloud", form, 1.0);
            let recipe = FileRecipe::Audio(audio);
            assert_eq!(recipe.make(Some(9)).len(), recipe.make(None).len());
            assert_eq!(recipe.make(Some(1_000_000)).len(), 1_000_000);
        }
    }
}
