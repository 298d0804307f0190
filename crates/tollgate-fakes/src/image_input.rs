//! Images in requests: links, data URIs, bare base64; their type and size.

use crate::encoding;
use crate::image_size::measure;

/// A image whose bytes came in the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlineImage {
    /// What its bytes are.
    pub(crate) media_type: &'static str,
    /// In pixels.
    pub(crate) size: (u32, u32),
    pub(crate) bytes: usize,
}

impl InlineImage {
    /// Its longer side by its shorter.
    pub(crate) fn ratio(&self) -> f64 {
        let (width, height) = (f64::from(self.size.0), f64::from(self.size.1));
        width.max(height) / width.min(height).max(1.0)
    }

    pub(crate) fn long_side(&self) -> u32 {
        self.size.0.max(self.size.1)
    }

    pub(crate) fn short_side(&self) -> u32 {
        self.size.0.min(self.size.1)
    }
}

/// A image in whatever form.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ImageInput {
    /// Of the web; the fakes fetch nothing.
    Link,
    InlineImage(InlineImage),
}

/// What is wrong with a image: a rule and a text.
pub(crate) type InvalidImage = (&'static str, String);

/// A link of the web, or a data URI that declares its media type.
pub(crate) fn link_or_data(text: &str) -> Result<ImageInput, InvalidImage> {
    if encoding::is_web(text) {
        return Ok(ImageInput::Link);
    }
    if !text.starts_with("data:") {
        let begin: String = text.chars().take(24).collect();
        let what = format!("expected an http(s) URL or a data URI, got `{begin}`");
        return Err(("image-url", what));
    }
    let bad = || ("image-data", "the data URI holds no base64".to_owned());
    let (declared, bytes) = encoding::data_uri(text).ok_or_else(bad)?;
    let inline = read_image(&bytes)?;
    named(&declared, &inline)?;
    Ok(ImageInput::InlineImage(inline))
}

/// Base64 without anything before it.
pub(crate) fn base64(text: &str) -> Result<InlineImage, InvalidImage> {
    if text.starts_with("data:") {
        let what = "expected base64 without a `data:` prefix".to_owned();
        return Err(("data-uri", what));
    }
    let bytes = encoding::decode(text).ok_or_else(|| ("image-data", "not base64".to_owned()))?;
    read_image(&bytes)
}

/// Bytes that have to be a image.
pub(crate) fn read_image(bytes: &[u8]) -> Result<InlineImage, InvalidImage> {
    let bad = || ("image-data", "the bytes are no picture".to_owned());
    let media_type = match bytes {
        [b'B', b'M', ..] => "image/bmp",
        _ => encoding::sniff(bytes).ok_or_else(bad)?,
    };
    let size = measure(bytes).filter(|size| size.0 > 0 && size.1 > 0);
    Ok(InlineImage {
        media_type,
        size: size.ok_or_else(bad)?,
        bytes: bytes.len(),
    })
}

/// Whether a image is of the media type that it is said to be.
pub(crate) fn named(declared: &str, inline: &InlineImage) -> Result<(), InvalidImage> {
    let declared = if declared == "image/jpg" {
        "image/jpeg"
    } else {
        declared
    };
    if declared == inline.media_type {
        return Ok(());
    }
    let is = inline.media_type;
    Err((
        "image-type",
        format!("declared as {declared}, but it is {is}"),
    ))
}
