//! The blocks of a message: their fields, texts that hold something, media that are what they say.

use serde_json::Value;

use super::invalid;
use super::{SIGNATURE, check, is_known, sign, unknown_tag};
use crate::encoding::{self, Attachment};
use crate::rejection::{Checked, OrRejected};
use crate::tables::functions::is_name;
use crate::tables::path::JsonPath;
use crate::tables::schema::{field, text_of};

const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// What blocks say.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) texts: Vec<String>,
    pub(super) media: Vec<Attachment>,
    /// The texts of tool results.
    pub(super) results: Vec<String>,
}

/// Checks a content that stands with `owner`, and gathers what it says.
pub(super) fn read(content: &Value, owner: &str, place: &JsonPath, found: &mut Content) -> Checked {
    if let Some(text) = content.as_str() {
        found.texts.push(text.to_owned());
        return Ok(());
    }
    for (at, block) in content.as_array().into_iter().flatten().enumerate() {
        one(block, owner, &place.at(at), found)?;
    }
    Ok(())
}

fn one(block: &Value, owner: &str, place: &JsonPath, found: &mut Content) -> Checked {
    let kind = text_of(block, "type").unwrap_or_default();
    if is_known("other_blocks", kind, owner) {
        return Ok(());
    }
    if !is_known("blocks", kind, owner) {
        return Err(unknown_tag(
            "block-type",
            "blocks",
            owner,
            kind,
            &place.write(),
        ));
    }
    let inner = place.field(kind);
    check(&format!("block_{kind}"), block, &inner)?;
    match kind {
        "text" => {
            let text = text_of(block, "text").unwrap_or_default();
            holds_something(text)?;
            found.texts.push(text.to_owned());
        }
        "image" => found.media.push(source(&block["source"], true, &inner)?),
        "document" => found.media.push(source(&block["source"], false, &inner)?),
        "tool_result" => {
            let mut result = Content::default();
            let content = field(block, "content").unwrap_or(&Value::Null);
            read(content, "result", &inner.field("content"), &mut result)?;
            let media: String = result.media.iter().map(Attachment::acknowledge).collect();
            found.results.push(result.texts.join(" ") + &media);
        }
        "tool_use" => id(text_of(block, "id").unwrap_or_default(), &inner)?,
        "thinking" if owner == "assistant" => signature(block, place)?,
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

fn id(id: &str, place: &JsonPath) -> Checked {
    if is_name(id) {
        return Ok(());
    }
    let at = place.field("id").write();
    let message = format!("{at}: String should match pattern '^[a-zA-Z0-9_-]+$'");
    Err(Box::new(invalid("id-pattern", message)))
}

/// The signature is this fake's, and of this very thought.
fn signature(block: &Value, place: &JsonPath) -> Checked {
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

fn source(source: &Value, image: bool, place: &JsonPath) -> OrRejected<Attachment> {
    let kind = text_of(source, "type").unwrap_or_default();
    let place = place.field("source");
    let owner = if image { "image" } else { "document" };
    if !is_known("sources", kind, owner) {
        return Err(unknown_tag(
            "source-type",
            "sources",
            owner,
            kind,
            &place.write(),
        ));
    }
    let place = place.field(kind);
    check(&format!("source_{kind}"), source, &place)?;
    let get = |name: &str| text_of(source, name).unwrap_or_default();
    match kind {
        "base64" => bytes(get("media_type"), get("data"), image, &place),
        "url" => web(get("url"), image, &place),
        "file" => Ok(unseen(format!("file {}", get("file_id")))),
        "text" => Ok(Attachment {
            what: "text/plain".to_owned(),
            bytes: Some(get("data").len()),
        }),
        _ => Ok(unseen("document".to_owned())),
    }
}

fn unseen(what: String) -> Attachment {
    Attachment { what, bytes: None }
}

fn web(url: &str, image: bool, place: &JsonPath) -> OrRejected<Attachment> {
    if encoding::is_web(url) {
        let what = if image { "image" } else { "document" };
        return Ok(unseen(format!("{what} {url}")));
    }
    let at = place.field("url").write();
    let message = format!("{at}: Only HTTPS URLs are supported.");
    Err(Box::new(invalid("url", message)))
}

/// The bytes are of the type that they are said to be.
fn bytes(media_type: &str, data: &str, image: bool, place: &JsonPath) -> OrRejected<Attachment> {
    let allowed = if image { IMAGES } else { &["application/pdf"] };
    if !allowed.contains(&media_type) {
        let at = place.field("media_type").write();
        let names = allowed.join("' or '");
        let message = format!("{at}: Input should be '{names}'");
        return Err(Box::new(invalid("media-type", message)));
    }
    let at = place.field("data").write();
    let Some(bytes) = encoding::decode(data).filter(|bytes| !bytes.is_empty()) else {
        let message = format!("{at}: Invalid base64 data");
        return Err(Box::new(invalid("base64", message)));
    };
    let Some(sniffed) = encoding::sniff(&bytes).filter(|sniffed| allowed.contains(sniffed)) else {
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
    Ok(Attachment {
        what: sniffed.to_owned(),
        bytes: Some(bytes.len()),
    })
}
