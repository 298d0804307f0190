//! A complete (not streamed) response: converted from the upstream's format to the client's, and wrapped in the envelope.

use bytes::{Bytes, BytesMut};
use tollgate_chat::hub::{PartKind, Response};
use tollgate_chat::{MalformedResponse, RenderOptions, custom_tool, json_tool, thoughts, tokens};

use crate::chat::billing::Delivered;
use crate::chat::endpoint::Endpoint;
use crate::chat::signature_cache::SignatureCache;
use crate::chat::translate::{PreparedRequest, restore_tool_name};

/// Converts an upstream's complete response to the client's format. Also returns the id of a forwarded response; `None` if the response was
/// translated, or providers of the format store no conversations.
///
/// # Errors
/// The response is malformed, or contains an error of the upstream.
pub fn convert_response(
    signatures: &SignatureCache,
    endpoint: Endpoint,
    prepared: &PreparedRequest,
    user_id: &str,
    body: Bytes,
    options: &RenderOptions<'_>,
) -> Result<(Bytes, Delivered, Option<String>), MalformedResponse> {
    if prepared.forward {
        let forwarded = prepared.format.forward_response(&body, options.model)?;
        let delivered = Delivered {
            usage: forwarded.usage,
            text_bytes: forwarded.text_bytes,
            complete: true,
        };
        return Ok((forwarded.body, delivered, forwarded.id));
    }
    let mut response = prepared.format.read_response(&body)?;
    if let Some(tool) = &prepared.json_tool {
        json_tool::restore_in_response(&mut response, tool);
    }
    for choice in &mut response.choices {
        for part in &mut choice.parts {
            if let PartKind::ToolCall { name, .. } = &mut part.kind {
                restore_tool_name(&prepared.renamed_tools, name);
            }
        }
        signatures.insert(user_id, choice);
    }
    if !prepared.custom_tools.is_empty() {
        custom_tool::restore_in_response(&mut response, &prepared.custom_tools);
    }
    let delivered = Delivered {
        usage: response.usage,
        text_bytes: text_bytes(&response),
        complete: true,
    };
    if prepared.hides_thoughts {
        thoughts::hide_in_response(&mut response, endpoint.format);
    }
    let body = endpoint.format.write_response(&response, options);
    Ok((body.into(), delivered, None))
}

/// Wraps a response in the envelope `{code: 200, data: …}`.
pub fn wrap_in_envelope(endpoint: Endpoint, bare: Bytes) -> Bytes {
    const HEAD: &[u8] = br#"{"code":200,"data":"#;
    let data = endpoint.format.envelope_response(bare.into());
    let mut body = BytesMut::with_capacity(HEAD.len() + data.len() + 1);
    body.extend_from_slice(HEAD);
    body.extend_from_slice(&data);
    body.extend_from_slice(b"}");
    body.freeze()
}

/// The size of the response's output as bytes of text.
fn text_bytes(response: &Response) -> u64 {
    let parts = response.choices.iter().flat_map(|choice| &choice.parts);
    parts.map(|part| tokens::generated_bytes(&part.kind)).sum()
}
