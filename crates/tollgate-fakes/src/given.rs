//! Pictures as requests give them: links, data URIs, bare base64.

use crate::measure::measure;
use crate::media;

/// A picture whose bytes came in the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inline {
    /// What its bytes are.
    pub(crate) media_type: &'static str,
    /// In pixels.
    pub(crate) size: (u32, u32),
    pub(crate) bytes: usize,
}

impl Inline {
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

/// A picture in whatever form.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given {
    /// Of the web; the fakes fetch nothing.
    Link,
    Inline(Inline),
}

/// What is wrong with a picture: a rule and a text.
pub(crate) type Wrong = (&'static str, String);

/// A link of the web, or a data URI that says of its bytes what they are.
pub(crate) fn link_or_data(text: &str) -> Result<Given, Wrong> {
    if media::is_web(text) {
        return Ok(Given::Link);
    }
    if !text.starts_with("data:") {
        let begin: String = text.chars().take(24).collect();
        let what = format!("expected an http(s) URL or a data URI, got `{begin}`");
        return Err(("image-url", what));
    }
    let bad = || ("image-data", "the data URI holds no base64".to_owned());
    let (said, bytes) = media::data_uri(text).ok_or_else(bad)?;
    let inline = picture(&bytes)?;
    named(&said, &inline)?;
    Ok(Given::Inline(inline))
}

/// Base64 without anything before it.
pub(crate) fn base64(text: &str) -> Result<Inline, Wrong> {
    if text.starts_with("data:") {
        let what = "expected base64 without a `data:` prefix".to_owned();
        return Err(("data-uri", what));
    }
    let bytes = media::decode(text).ok_or_else(|| ("image-data", "not base64".to_owned()))?;
    picture(&bytes)
}

/// Bytes that have to be a picture.
pub(crate) fn picture(bytes: &[u8]) -> Result<Inline, Wrong> {
    let bad = || ("image-data", "the bytes are no picture".to_owned());
    let media_type = match bytes {
        [b'B', b'M', ..] => "image/bmp",
        _ => media::sniff(bytes).ok_or_else(bad)?,
    };
    let size = measure(bytes).filter(|size| size.0 > 0 && size.1 > 0);
    Ok(Inline {
        media_type,
        size: size.ok_or_else(bad)?,
        bytes: bytes.len(),
    })
}

/// Whether a picture is of the media type that it is said to be.
pub(crate) fn named(said: &str, inline: &Inline) -> Result<(), Wrong> {
    let said = if said == "image/jpg" {
        "image/jpeg"
    } else {
        said
    };
    if said == inline.media_type {
        return Ok(());
    }
    let is = inline.media_type;
    Err(("image-type", format!("said to be {said}, but it is {is}")))
}
