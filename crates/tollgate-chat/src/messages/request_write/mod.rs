//! Writes a request for an upstream.

mod conversation;
mod output_format;
mod output_schema;
mod parts;
mod sampling;
mod sources;
mod thinking;
mod tool_choice;
mod tools;
mod turn_order;
mod writer;

use serde_json::{Map, Value, json};

use super::constants::NAME;
use super::fields::write_extra_fields;
use crate::error::InvalidRequest;
use crate::format::{Target, WrittenRequest};
use crate::hub::{Request, RequestField, flatten_namespaces};
use output_format::JsonOutput;
pub(crate) use sampling::{Sampling, limit_max_tokens};
pub(crate) use sources::accepts_url;
pub(crate) use thinking::write_thinking;
use writer::RequestWriter;

/// Maximum length of `metadata.user_id` in characters.
const MAX_USER_ID_LENGTH: usize = 256;

/// See [`crate::Format::write_request`].
pub(crate) fn write_request(
    request: &Request,
    target: &Target<'_>,
) -> Result<WrittenRequest, InvalidRequest> {
    let request = &*flatten_namespaces(request)?;
    reject_unsupported(request)?;
    let mut writer = RequestWriter::new(request, target.capabilities);
    let output = writer.choose_output();
    let mut tools = writer.write_tools()?;
    let conversation = conversation::write_conversation(&mut writer, output.instruction())?;
    let max_tokens = limit_max_tokens(request.max_tokens, request.reasoning.as_ref(), target);
    if request
        .max_tokens
        .is_some_and(|requested| requested > max_tokens)
    {
        writer.drop_field(RequestField::MaxTokens);
    }
    let mut choice = writer.write_tool_choice(&output, &mut tools);
    let thinking = writer.write_thinking(max_tokens, &conversation, &mut choice);
    let sampling = writer.write_sampling(&thinking);

    let mut body = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    put("model", Some(json!(target.model)));
    put("max_tokens", Some(json!(max_tokens)));
    put("system", conversation.system);
    put("messages", Some(Value::Array(conversation.messages)));
    put("tools", (!tools.is_empty()).then_some(Value::Array(tools)));
    put("tool_choice", choice.map(Value::Object));
    put("thinking", thinking.thinking);
    let config = writer.write_output_config(thinking.effort, &output);
    put("output_config", config);
    put("temperature", sampling.temperature.map(|n| json!(n)));
    put("top_p", sampling.top_p.map(|n| json!(n)));
    put("top_k", sampling.top_k.map(|n| json!(n)));
    put("stop_sequences", writer.write_stop_sequences());
    put("metadata", writer.write_metadata());
    put("service_tier", writer.write_service_tier());
    put("stream", target.stream.then_some(json!(true)));
    writer.drop_unsupported_fields();
    write_extra_fields(&request.extra, &mut body);
    Ok(WrittenRequest {
        body: crate::json_text::object_to_vec(&body),
        dropped: writer.dropped,
        renamed_tools: writer.names.into_renamed(),
        json_tool: match output {
            JsonOutput::Tool { name, .. } => Some(name),
            _ => None,
        },
    })
}

/// Rejects settings that the format does not have if dropping them would change what the client receives.
fn reject_unsupported(request: &Request) -> Result<(), InvalidRequest> {
    if let Some(name) = request.essential_extra_unknown_to(NAME) {
        return Err(InvalidRequest::new(name, "is not available for this model"));
    }
    if let Some(member) = request.essential_member_unknown_to(NAME) {
        let why = "is not available for this model";
        return Err(InvalidRequest::new(member, why));
    }
    if request.n.is_some_and(|n| n > 1) {
        let why = "must be 1 for this model: it gives one response to a request";
        return Err(InvalidRequest::new(
            request.client_field_name(RequestField::N),
            why,
        ));
    }
    let is_blank = |text: &String| !text.is_empty() && text.trim().is_empty();
    if request.client_format.name != NAME && request.stop.iter().any(is_blank) {
        let why = "must not hold sequences of white space alone for this model";
        return Err(InvalidRequest::new(
            request.client_field_name(RequestField::Stop),
            why,
        ));
    }
    if request.logprobs.is_some() {
        let why = "is not available for this model: it gives no log probabilities";
        return Err(InvalidRequest::new(
            request.client_field_name(RequestField::Logprobs),
            why,
        ));
    }
    Ok(())
}

impl RequestWriter<'_> {
    /// The sampling parameters to send.
    fn write_sampling(&mut self, thinking: &thinking::ThinkingSettings) -> Sampling {
        let requested = Sampling {
            temperature: self.request.temperature,
            top_p: self.request.top_p,
            top_k: self.request.top_k,
        };
        let mut sent = requested.supported_by(self.capabilities);
        if !self.is_native {
            sent.temperature = sent.temperature.map(|t| t.clamp(0.0, 1.0));
            if thinking.is_on {
                sent = sent.allowed_with_thinking();
            }
        }
        let changed = [
            (
                RequestField::Temperature,
                sent.temperature != requested.temperature,
            ),
            (RequestField::TopP, sent.top_p != requested.top_p),
            (RequestField::TopK, sent.top_k != requested.top_k),
        ];
        for (field, _) in changed.iter().filter(|(_, is_changed)| *is_changed) {
            self.drop_field(*field);
        }
        sent
    }

    fn write_output_config(&self, effort: Option<&str>, output: &JsonOutput) -> Option<Value> {
        let extra = self.request.extra.for_format(NAME);
        let extra = extra.and_then(|extra| extra.get("output_config"));
        let mut config = extra
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if let Some(effort) = effort {
            config.insert("effort".to_owned(), json!(effort));
        }
        if let JsonOutput::Schema(schema) = output {
            let format = json!({"type": "json_schema", "schema": schema});
            config.insert("format".to_owned(), format);
        }
        (!config.is_empty()).then_some(Value::Object(config))
    }

    fn write_stop_sequences(&self) -> Option<Value> {
        // An empty stop sequence never matches, so it is left out.
        let stop = &self.request.stop;
        let kept = stop
            .iter()
            .filter(|text| self.is_native || !text.is_empty());
        let kept: Vec<&String> = kept.collect();
        (!kept.is_empty()).then(|| json!(kept))
    }

    fn write_metadata(&mut self) -> Option<Value> {
        let extra = self.request.extra.for_format(NAME);
        let extra = extra.and_then(|extra| extra.get("metadata"));
        let mut metadata = extra
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if let Some(user) = &self.request.user {
            if self.is_native || user.chars().count() <= MAX_USER_ID_LENGTH {
                metadata.insert("user_id".to_owned(), json!(user));
            } else {
                self.drop_field(RequestField::User);
            }
        }
        (!metadata.is_empty()).then_some(Value::Object(metadata))
    }

    fn write_service_tier(&mut self) -> Option<Value> {
        let tier = self.request.service_tier.as_deref()?;
        match tier {
            tier if self.is_native => Some(json!(tier)),
            "auto" => Some(json!("auto")),
            "default" | "standard" | "standard_only" => Some(json!("standard_only")),
            _ => {
                self.drop_field(RequestField::ServiceTier);
                None
            }
        }
    }

    /// Records the settings that the format does not have as dropped.
    fn drop_unsupported_fields(&mut self) {
        let request = self.request;
        let absent = [
            (RequestField::Seed, request.seed.is_some()),
            (
                RequestField::FrequencyPenalty,
                request.frequency_penalty.is_some_and(|p| p != 0.0),
            ),
            (
                RequestField::PresencePenalty,
                request.presence_penalty.is_some_and(|p| p != 0.0),
            ),
            (RequestField::Verbosity, request.verbosity.is_some()),
            (RequestField::CacheKey, request.cache_key.is_some()),
            (RequestField::Metadata, request.metadata.is_some()),
        ];
        for (field, _) in absent.iter().filter(|(_, is_there)| *is_there) {
            self.drop_field(*field);
        }
        self.drop_extra(&request.extra);
    }
}
