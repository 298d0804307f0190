//! Writes a hub request as a Responses request for an upstream.

mod call_pairing;
mod content_parts;
mod input_items;
mod settings;
mod tools;
mod writer;

use crate::error::InvalidRequest;
use crate::format::{Target, WrittenRequest};
use crate::hub::{Request, ToolNames};
use crate::responses::constants::NAME;
pub(super) use writer::{RequestWriter, is_instruction_turn, turn_texts};

/// See [`crate::Format::write_request`].
pub(super) fn write_request(
    request: &Request,
    target: &Target<'_>,
) -> Result<WrittenRequest, InvalidRequest> {
    if let Some(member) = request.essential_extra_unknown_to(NAME) {
        let why = "is not supported by the upstream of this model";
        return Err(InvalidRequest::new(member, why));
    }
    if let Some(member) = request.essential_member_unknown_to(NAME) {
        let why = "is not available for this model";
        return Err(InvalidRequest::new(member, why));
    }
    let names = ToolNames::new(request, target.capabilities.max_tool_name_length, |_, c| {
        c.is_ascii_alphanumeric() || c == '_' || c == '-'
    });
    let mut writer = RequestWriter::new(request, target, &names);
    writer.set("model", target.model.into());
    writer.write_conversation()?;
    writer.write_limits()?;
    writer.write_sampling();
    writer.write_tools()?;
    writer.write_reasoning();
    writer.write_text();
    writer.write_client_info();
    writer.write_storage_options();
    if target.stream {
        writer.set("stream", true.into());
    }
    writer.write_extra();
    let RequestWriter { body, dropped, .. } = writer;
    Ok(WrittenRequest {
        body: crate::json_text::object_to_vec(&body),
        dropped,
        renamed_tools: names.into_renamed(),
        ..WrittenRequest::default()
    })
}
