//! Writes a request for an upstream.
//!
//! This file writes the settings; separate files write the conversation and the tools.

mod conversation;
mod dropped;
mod parts;
mod tools;

use serde_json::{Map, Value, json};

use self::dropped::DroppedFields;
use super::constants::{
    DOCUMENTED_EXTRA, EFFORT_BESIDE_VENDOR_REASONING, MAX_STOP_SEQUENCES, NAME,
    SHARED_WITH_RESPONSES, USER_SPELLING, VENDOR_REASONING,
};
use super::json_fields::insert_some;
use super::model_limits::{limit_max_tokens, supported_effort};
use crate::error::InvalidRequest;
use crate::format::{Target, WrittenRequest};
use crate::hub::{
    Effort, ModelCapabilities, OutputFormat, Reasoning, Request, RequestField, SamplingSupport,
    ToolChoice, ToolNames, flatten_namespaces, sanitize_id,
};
use crate::openai_service_tiers::SERVICE_TIERS;
use crate::strict_schema::may_be_strict;

/// Writes a request; see [`crate::Format::write_request`].
pub(super) fn write_request(
    request: &Request,
    target: &Target<'_>,
) -> Result<WrittenRequest, InvalidRequest> {
    let request = &*flatten_namespaces(request)?;
    if let Some(name) = request.essential_extra_unknown_to(NAME) {
        return Err(InvalidRequest::new(
            name,
            "is not supported by this model's provider",
        ));
    }
    if let Some(member) = request.essential_member_unknown_to(NAME) {
        let why = "is not available for this model";
        return Err(InvalidRequest::new(member, why));
    }
    let capabilities = target.capabilities;
    let mut dropped = DroppedFields::default();
    let names = ToolNames::new(request, capabilities.max_tool_name_length, |_, c| {
        is_name_char(c)
    });
    let mut body = Map::new();
    body.insert("model".to_owned(), target.model.into());
    let messages = conversation::write_messages(request, &names, capabilities, &mut dropped)?;
    body.insert("messages".to_owned(), messages.into());
    write_stream_options(request, target, &mut body);
    write_max_tokens(request, capabilities, &mut body, &mut dropped);
    write_sampling(request, capabilities, &mut body, &mut dropped);
    write_stop_sequences(request, capabilities, &mut body)?;
    write_output_format(request, capabilities, &mut body, &mut dropped);
    let can_search = capabilities.supports_chat_search;
    tools::write_tools(request, &names, can_search, &mut body, &mut dropped)?;
    write_tool_use(request, &names, capabilities, &mut body, &mut dropped);
    write_reasoning(request, capabilities, &mut body, &mut dropped);
    write_other_fields(request, &mut body, &mut dropped);
    write_extra_fields(request, capabilities, &mut body, &mut dropped);
    Ok(WrittenRequest {
        body: crate::json_text::object_to_vec(&body),
        dropped: dropped.into_names(),
        renamed_tools: names.into_renamed(),
        json_tool: None,
    })
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Usage is always requested because charges need it. The stream writer removes it unless the client requested it.
fn write_stream_options(request: &Request, target: &Target<'_>, body: &mut Map<String, Value>) {
    if target.stream {
        let extra = request
            .extra
            .for_format(NAME)
            .and_then(|extra| extra.get("stream_options"));
        let mut options = extra
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        options.insert("include_usage".to_owned(), true.into());
        body.insert("stream".to_owned(), true.into());
        body.insert("stream_options".to_owned(), options.into());
    }
}

fn write_max_tokens(
    request: &Request,
    capabilities: &ModelCapabilities,
    body: &mut Map<String, Value>,
    dropped: &mut DroppedFields,
) {
    let name = if capabilities.uses_max_completion_tokens {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    if let Some(requested) = request.max_tokens {
        let cap = limit_max_tokens(requested, capabilities);
        if cap < requested {
            dropped.push(request.client_field_name(RequestField::MaxTokens));
        }
        body.insert(name.to_owned(), cap.into());
    }
}

fn write_sampling(
    request: &Request,
    capabilities: &ModelCapabilities,
    body: &mut Map<String, Value>,
    dropped: &mut DroppedFields,
) {
    let supports = |field: RequestField| match (capabilities.sampling, field) {
        (SamplingSupport::None, _) => false,
        (SamplingSupport::TemperatureOrTopP, RequestField::TopP) => request.temperature.is_none(),
        (_, RequestField::TopK) => {
            capabilities.accepts_top_k && !capabilities.rejects_unknown_fields
        }
        _ => true,
    };
    let fields = [
        (
            RequestField::Temperature,
            "temperature",
            request.temperature.map(Value::from),
        ),
        (RequestField::TopP, "top_p", request.top_p.map(Value::from)),
        (RequestField::TopK, "top_k", request.top_k.map(Value::from)),
    ];
    for (field, name, value) in fields {
        match value {
            Some(value) if supports(field) => drop(body.insert(name.to_owned(), value)),
            Some(_) => dropped.push(request.client_field_name(field)),
            None => {}
        }
    }
}

fn write_stop_sequences(
    request: &Request,
    capabilities: &ModelCapabilities,
    body: &mut Map<String, Value>,
) -> Result<(), InvalidRequest> {
    let field = request.client_field_name(RequestField::Stop);
    match request.stop.as_slice() {
        [] => Ok(()),
        _ if !capabilities.accepts_stop => {
            Err(InvalidRequest::new(field, "is not supported by this model"))
        }
        stops if stops.len() > MAX_STOP_SEQUENCES => Err(InvalidRequest::new(
            field,
            format!("must hold at most {MAX_STOP_SEQUENCES} strings for this model"),
        )),
        stops => {
            body.insert("stop".to_owned(), stops.into());
            Ok(())
        }
    }
}

fn write_output_format(
    request: &Request,
    capabilities: &ModelCapabilities,
    body: &mut Map<String, Value>,
    dropped: &mut DroppedFields,
) {
    let format = match &request.output {
        None => return,
        Some(OutputFormat::Text) => json!({"type": "text"}),
        Some(OutputFormat::Json) => json!({"type": "json_object"}),
        Some(OutputFormat::Schema { schema, .. }) if !capabilities.supports_json_schema => {
            // The schema is added to the system prompt, which the model may not follow exactly, so the field is reported as dropped.
            dropped.push(request.client_field_name(RequestField::Output));
            let instruction = format!(
                "Answer with one JSON object, without any other text. It must keep to this JSON Schema: {schema}"
            );
            if let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) {
                let at = messages
                    .iter()
                    .take_while(|m| m["role"] == "system" || m["role"] == "developer")
                    .count();
                messages.insert(at, json!({"role": "system", "content": instruction}));
            }
            json!({"type": "json_object"})
        }
        Some(OutputFormat::Schema {
            name,
            description,
            schema,
            strict,
        }) => {
            let name = name
                .as_deref()
                .filter(|name| !name.is_empty())
                .unwrap_or("response");
            let name = sanitize_id(name, 64, is_name_char);
            let mut inner = Map::from_iter([("name".to_owned(), name.into())]);
            insert_some(&mut inner, "description", description.clone());
            inner.insert("schema".to_owned(), schema.clone());
            // Formats without `strict` always enforce the schema. Here that must be requested, and not every schema can be strict.
            let is_always_strict =
                ["messages", "generate-content"].contains(&request.client_format.name);
            insert_some(
                &mut inner,
                "strict",
                strict.or((is_always_strict && may_be_strict(schema)).then_some(true)),
            );
            json!({"type": "json_schema", "json_schema": inner})
        }
    };
    body.insert("response_format".to_owned(), format);
}

fn write_tool_use(
    request: &Request,
    names: &ToolNames,
    capabilities: &ModelCapabilities,
    body: &mut Map<String, Value>,
    dropped: &mut DroppedFields,
) {
    // OpenAI rejects both fields if there are no tools.
    if request.client_format.name != NAME && !body.contains_key("tools") {
        let is_lost = request.tool_choice.as_ref().is_some_and(|choice| {
            choice.forces_call() || (*choice == ToolChoice::None && !request.tools.is_empty())
        });
        if is_lost {
            dropped.push(request.client_field_name(RequestField::ToolChoice));
        }
        return;
    }
    insert_some(
        body,
        "tool_choice",
        tools::write_tool_choice(request, names, capabilities.supports_forced_tools, dropped),
    );
    insert_some(body, "parallel_tool_calls", request.parallel_tools);
}

fn write_reasoning(
    request: &Request,
    capabilities: &ModelCapabilities,
    body: &mut Map<String, Value>,
    dropped: &mut DroppedFields,
) {
    let requested = if write_vendor_reasoning(request, capabilities, body) {
        let extra = request.extra.for_format(NAME);
        let effort = extra.and_then(|extra| extra.get(EFFORT_BESIDE_VENDOR_REASONING)?.as_str());
        effort.and_then(Effort::parse)
    } else {
        request.reasoning.as_ref().and_then(Reasoning::as_effort)
    };
    let Some(requested) = requested else {
        return;
    };
    let sent = supported_effort(requested, capabilities.thinking);
    if sent != Some(requested) && !(sent.is_none() && requested == Effort::None) {
        dropped.push(request.client_field_name(RequestField::Reasoning));
    }
    insert_some(body, "reasoning_effort", sent.map(Effort::as_str));
}

/// Writes the vendor's own fields for reasoning as the client wrote them. Returns whether there are any that the model accepts.
fn write_vendor_reasoning(
    request: &Request,
    capabilities: &ModelCapabilities,
    body: &mut Map<String, Value>,
) -> bool {
    let extra = request.extra.for_format(NAME);
    let Some(extra) = extra.filter(|_| !capabilities.rejects_unknown_fields) else {
        return false;
    };
    let mut is_written = false;
    for name in VENDOR_REASONING {
        if let Some(value) = extra.get(&format!(".{name}")) {
            body.insert(name.to_owned(), value.clone());
            is_written = true;
        }
    }
    is_written
}

fn write_other_fields(
    request: &Request,
    body: &mut Map<String, Value>,
    dropped: &mut DroppedFields,
) {
    insert_some(body, "n", request.n);
    insert_some(body, "seed", request.seed);
    insert_some(body, "frequency_penalty", request.frequency_penalty);
    insert_some(body, "presence_penalty", request.presence_penalty);
    if let Some(top) = request.logprobs {
        body.insert("logprobs".to_owned(), true.into());
        insert_some(body, "top_logprobs", (top > 0).then_some(top));
    }
    insert_some(body, "verbosity", request.verbosity.clone());
    let extra = request
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(USER_SPELLING)?.as_str());
    insert_some(body, extra.unwrap_or("user"), request.user.clone());
    insert_some(body, "prompt_cache_key", request.cache_key.clone());
    if let Some(tier) = &request.service_tier {
        if request.client_format.name == NAME || SERVICE_TIERS.contains(&tier.as_str()) {
            body.insert("service_tier".to_owned(), tier.as_str().into());
        } else {
            dropped.push(request.client_field_name(RequestField::ServiceTier));
        }
    }
    match &request.metadata {
        Some(metadata) if request.client_format.name == NAME => {
            drop(body.insert("metadata".to_owned(), metadata.clone()))
        }
        // OpenAI rejects metadata on responses that it does not store.
        Some(_) => dropped.push(request.client_field_name(RequestField::Metadata)),
        None => {}
    }
}

fn write_extra_fields(
    request: &Request,
    capabilities: &ModelCapabilities,
    body: &mut Map<String, Value>,
    dropped: &mut DroppedFields,
) {
    for name in request.extra.names_unknown_to(NAME) {
        let value = request.extra.get(name);
        match value.filter(|_| {
            SHARED_WITH_RESPONSES.contains(&name) && request.client_format.name == "responses"
        }) {
            Some(value) => drop(body.insert(name.to_owned(), value.clone())),
            None => dropped.push(name),
        }
    }
    if let Some(reasoning) = &request.reasoning {
        dropped.extend(reasoning.extra.names_unknown_to(NAME));
    }
    for (name, value) in request.extra.for_format(NAME).into_iter().flatten() {
        if name.starts_with('.') {
            continue;
        }
        if capabilities.rejects_unknown_fields && !DOCUMENTED_EXTRA.contains(&name.as_str()) {
            dropped.push(name);
        } else if !body.contains_key(name) && name != "stream_options" {
            body.insert(name.clone(), value.clone());
        }
    }
}
