//! The blocks of a message: their fields, texts that hold something, media that are what they say.

use serde_json::Value;

use super::tables::{BLOCKS, MODEL, OTHER_BLOCKS, RESULT, SOURCES};
use super::words::{self, invalid};
use super::{SIGNATURE, sign};
use crate::media::{self, Media};
use crate::place::Place;
use crate::refusal::{Checked, Judged};
use crate::shape::{field, text_of};

const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// What blocks say.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) texts: Vec<String>,
    pub(super) media: Vec<Media>,
    /// The texts of tool results.
    pub(super) results: Vec<String>,
}

/// Checks a content that stands with `owner`, and gathers what it says.
pub(super) fn read(content: &Value, owner: u8, place: &Place, said: &mut Said) -> Checked {
    if let Some(text) = content.as_str() {
        said.texts.push(text.to_owned());
        return Ok(());
    }
    for (at, block) in content.as_array().into_iter().flatten().enumerate() {
        one(block, owner, &place.at(at), said)?;
    }
    Ok(())
}

fn one(block: &Value, owner: u8, place: &Place, said: &mut Said) -> Checked {
    let kind = text_of(block, "type").unwrap_or_default();
    let other = OTHER_BLOCKS.iter().find(|(known, _)| *known == kind);
    if other.is_some_and(|(_, owners)| owners & owner != 0) {
        return Ok(());
    }
    let found = BLOCKS.iter().find(|(known, _, _)| *known == kind);
    let legal = found.filter(|(_, owners, _)| owners & owner != 0);
    let Some((_, _, shape)) = legal else {
        let allowed = BLOCKS.iter().filter(|(_, owners, _)| owners & owner != 0);
        let names: Vec<String> = allowed.map(|(name, _, _)| format!("'{name}'")).collect();
        let message = format!(
            "{}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {}",
            place.write(),
            names.join(", ")
        );
        return Err(Box::new(invalid("block-type", message)));
    };
    let inner = place.field(kind);
    shape
        .check(block, &inner)
        .map_err(|flaw| words::flaw(&flaw))?;
    match kind {
        "text" => {
            let text = text_of(block, "text").unwrap_or_default();
            holds_something(text)?;
            said.texts.push(text.to_owned());
        }
        "image" => said.media.push(source(&block["source"], true, &inner)?),
        "document" => said.media.push(source(&block["source"], false, &inner)?),
        "tool_result" => {
            let mut result = Said::default();
            let content = field(block, "content").unwrap_or(&Value::Null);
            read(content, RESULT, &inner.field("content"), &mut result)?;
            let media: String = result.media.iter().map(Media::acknowledge).collect();
            said.results.push(result.texts.join(" ") + &media);
        }
        "tool_use" => id(text_of(block, "id").unwrap_or_default(), &inner)?,
        "thinking" if owner == MODEL => signature(block, place)?,
        _ => {}
    }
    Ok(())
}

/// Texts are neither empty nor blank.
pub(super) fn holds_something(text: &str) -> Checked {
    let message = if text.is_empty() {
        "messages: text content blocks must be non-empty"
    } else if text.trim().is_empty() {
        "messages: text content blocks must contain non-whitespace text"
    } else {
        return Ok(());
    };
    Err(Box::new(invalid("empty-text", message)))
}

fn id(id: &str, place: &Place) -> Checked {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(legal) {
        return Ok(());
    }
    let at = place.field("id").write();
    let message = format!("{at}: String should match pattern '^[a-zA-Z0-9_-]+$'");
    Err(Box::new(invalid("id-pattern", message)))
}

/// The signature is this fake's, and of this very thought.
fn signature(block: &Value, place: &Place) -> Checked {
    let at = place.write();
    let thought = text_of(block, "thinking").unwrap_or_default();
    let given = text_of(block, "signature").unwrap_or_default();
    let Some(rest) = given.strip_prefix(SIGNATURE) else {
        let message = format!("{at}: Invalid `signature` in `thinking` block");
        return Err(Box::new(invalid("signature", message)));
    };
    let minted = rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_hexdigit());
    if minted && !thought.is_empty() && sign(thought) != given {
        let message = format!(
            "{at}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot \
             be modified. These blocks must remain as they were in the original response."
        );
        return Err(Box::new(invalid("changed-thinking", message)));
    }
    Ok(())
}

fn source(source: &Value, image: bool, place: &Place) -> Judged<Media> {
    let kind = text_of(source, "type").unwrap_or_default();
    let place = place.field("source");
    let found = SOURCES
        .iter()
        .find(|(known, both, _)| *known == kind && (*both || !image));
    let Some((_, _, shape)) = found else {
        let allowed = SOURCES.iter().filter(|(_, both, _)| *both || !image);
        let names: Vec<String> = allowed.map(|(name, _, _)| format!("'{name}'")).collect();
        let message = format!(
            "{}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {}",
            place.write(),
            names.join(", ")
        );
        return Err(Box::new(invalid("source-type", message)));
    };
    let place = place.field(kind);
    shape
        .check(source, &place)
        .map_err(|flaw| words::flaw(&flaw))?;
    let get = |name: &str| text_of(source, name).unwrap_or_default();
    match kind {
        "base64" => bytes(get("media_type"), get("data"), image, &place),
        "url" => web(get("url"), image, &place),
        "file" => Ok(unseen(format!("file {}", get("file_id")))),
        "text" => Ok(Media {
            what: "text/plain".to_owned(),
            bytes: Some(get("data").len()),
        }),
        _ => Ok(unseen("document".to_owned())),
    }
}

fn unseen(what: String) -> Media {
    Media { what, bytes: None }
}

fn web(url: &str, image: bool, place: &Place) -> Judged<Media> {
    if media::is_web(url) {
        let what = if image { "image" } else { "document" };
        return Ok(unseen(format!("{what} {url}")));
    }
    let at = place.field("url").write();
    let message = format!("{at}: Only HTTPS URLs are supported.");
    Err(Box::new(invalid("url", message)))
}

/// The bytes are of the type that they are said to be.
fn bytes(media_type: &str, data: &str, image: bool, place: &Place) -> Judged<Media> {
    let allowed = if image { IMAGES } else { &["application/pdf"] };
    if !allowed.contains(&media_type) {
        let at = place.field("media_type").write();
        let names = allowed.join("' or '");
        let message = format!("{at}: Input should be '{names}'");
        return Err(Box::new(invalid("media-type", message)));
    }
    let at = place.field("data").write();
    let Some(bytes) = media::decode(data).filter(|bytes| !bytes.is_empty()) else {
        let message = format!("{at}: Invalid base64 data");
        return Err(Box::new(invalid("base64", message)));
    };
    let Some(sniffed) = media::sniff(&bytes).filter(|sniffed| allowed.contains(sniffed)) else {
        let message = if image {
            "Could not process image"
        } else {
            "The PDF specified was not valid."
        };
        return Err(Box::new(invalid("unreadable", message)));
    };
    if sniffed != media_type {
        let message = format!(
            "{at}: The image was specified using the {media_type} media type, but the image \
             appears to be a {sniffed} image"
        );
        return Err(Box::new(invalid("media-mismatch", message)));
    }
    Ok(Media {
        what: sniffed.to_owned(),
        bytes: Some(bytes.len()),
    })
}
