//! A reply that is sent in one piece.

use bytes::{Bytes, BytesMut};
use tollgate_chat::hub::{Kind, Reply};
use tollgate_chat::{Garbled, Rendering, custom_tool, json_tool};

use super::bill::Delivered;
use super::mount::Mount;
use super::prepare::Prepared;
use crate::app::App;

/// The greatest reply that is taken from an upstream: pictures in it are base64.
pub const REPLY_MAX: usize = 64 * 1_048_576;

/// Turns an upstream's whole reply into the client's.
pub fn answer(
    app: &App,
    mount: Mount,
    prepared: &Prepared,
    user_id: &str,
    body: Bytes,
    rendering: &Rendering<'_>,
) -> Result<(Bytes, Delivered), Garbled> {
    if prepared.forward {
        let answer = prepared.format.forward_reply(&body, rendering.model)?;
        let delivered = Delivered {
            usage: answer.usage,
            text_bytes: answer.text_bytes,
            complete: true,
        };
        return Ok((answer.body, delivered));
    }
    let mut reply = prepared.format.read_reply(&body)?;
    if let Some(tool) = &prepared.json_tool {
        json_tool::undo_reply(&mut reply, tool);
    }
    for choice in &mut reply.choices {
        for part in &mut choice.parts {
            if let Kind::ToolCall { name, .. } = &mut part.kind {
                name_back(&prepared.renamed, name);
            }
        }
        app.memory.keep(user_id, choice);
    }
    if !prepared.custom_tools.is_empty() {
        custom_tool::undo_reply(&mut reply, &prepared.custom_tools);
    }
    let delivered = Delivered {
        usage: reply.usage,
        text_bytes: text_bytes(&reply),
        complete: true,
    };
    Ok((
        mount.format.write_reply(&reply, rendering).into(),
        delivered,
    ))
}

/// The client's name of a tool that had to be renamed for the upstream.
pub fn name_back(renamed: &[(String, String)], name: &mut String) {
    if let Some((_, theirs)) = renamed.iter().find(|(sent, _)| sent == name) {
        name.clone_from(theirs);
    }
}

/// SPEC.md's envelope: `{code: 200, data: …}`.
pub fn in_envelope(mount: Mount, bare: Bytes) -> Bytes {
    const HEAD: &[u8] = br#"{"code":200,"data":"#;
    let data = mount.format.spec_reply(bare.into());
    let mut body = BytesMut::with_capacity(HEAD.len() + data.len() + 1);
    body.extend_from_slice(HEAD);
    body.extend_from_slice(&data);
    body.extend_from_slice(b"}");
    body.freeze()
}

fn text_bytes(reply: &Reply) -> u64 {
    let parts = reply.choices.iter().flat_map(|choice| &choice.parts);
    let len = parts.map(|part| match &part.kind {
        Kind::Text { text, .. } | Kind::Reasoning { text, .. } | Kind::Refusal(text) => text.len(),
        Kind::ToolCall {
            name, arguments, ..
        } => name.len() + arguments.len(),
        _ => 0,
    });
    len.sum::<usize>() as u64
}
