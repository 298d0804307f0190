//! Writes a request for an upstream.

use serde_json::{Map, Value, json};

use super::choice::Output;
use super::draft::Draft;
use super::knobs::{Sampled, cap};
use super::{thinking, turns};
use crate::error::InvalidRequest;
use crate::format::{Target, WrittenRequest};
use crate::hub::{Request, RequestField};
use crate::messages::fields::put_back;
use crate::messages::wire::NAME;

/// The longest `metadata.user_id`.
const LONGEST_USER: usize = 256;

/// Writes a request; see [`crate::Format::write_request`].
pub(in crate::messages) fn write(
    request: &Request,
    target: &Target<'_>,
) -> Result<WrittenRequest, InvalidRequest> {
    refuse(request)?;
    let mut draft = Draft::of(request, target.capabilities);
    let output = draft.output();
    let mut tools = draft.tools()?;
    let conversation = turns::write(&mut draft, output.line())?;
    let max_tokens = cap(request.max_tokens, target);
    if request.max_tokens.is_some_and(|asked| asked > max_tokens) {
        draft.lose_field(RequestField::MaxTokens);
    }
    let mut choice = draft.choice(&output, &mut tools);
    let thought = draft.think(max_tokens, &conversation, &mut choice);
    let sampled = draft.sample(&thought);

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
    put("thinking", thought.thinking);
    let config = draft.output_config(thought.effort, &output);
    put("output_config", config);
    put("temperature", sampled.temperature.map(|n| json!(n)));
    put("top_p", sampled.top_p.map(|n| json!(n)));
    put("top_k", sampled.top_k.map(|n| json!(n)));
    put("stop_sequences", draft.stop());
    put("metadata", draft.metadata());
    put("service_tier", draft.service_tier());
    put("stream", target.stream.then_some(json!(true)));
    draft.lose_the_rest();
    put_back(&request.extra, &mut body);
    Ok(WrittenRequest {
        body: crate::json_text::object_to_vec(&body),
        dropped: draft.dropped,
        renamed_tools: draft.names.into_renamed(),
        json_tool: match output {
            Output::Tool { name, .. } => Some(name),
            _ => None,
        },
    })
}

/// What the format cannot say, and whose loss would change what the client receives.
fn refuse(request: &Request) -> Result<(), InvalidRequest> {
    if let Some(name) = request.essential_extra_unknown_to(NAME) {
        return Err(InvalidRequest::new(name, "is not available for this model"));
    }
    if request.n.is_some_and(|n| n > 1) {
        let why = "must be 1 for this model: it gives one reply to a request";
        return Err(InvalidRequest::new(
            request.client_field_name(RequestField::N),
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

impl Draft<'_> {
    /// The sampling parameters that are sent.
    fn sample(&mut self, thought: &thinking::Sent) -> Sampled {
        let asked = Sampled {
            temperature: self.request.temperature,
            top_p: self.request.top_p,
            top_k: self.request.top_k,
        };
        let mut sent = asked.fitted(self.capabilities);
        if !self.is_native {
            sent.temperature = sent.temperature.map(|t| t.clamp(0.0, 1.0));
            if thought.is_on {
                sent = sent.beside_thinking();
            }
        }
        let lost = [
            (
                RequestField::Temperature,
                sent.temperature != asked.temperature,
            ),
            (RequestField::TopP, sent.top_p != asked.top_p),
            (RequestField::TopK, sent.top_k != asked.top_k),
        ];
        for (field, _) in lost.iter().filter(|(_, is_lost)| *is_lost) {
            self.lose_field(*field);
        }
        sent
    }

    fn output_config(&self, effort: Option<&str>, output: &Output) -> Option<Value> {
        let extra = self.request.extra.for_format(NAME);
        let extra = extra.and_then(|extra| extra.get("output_config"));
        let mut config = extra
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if let Some(effort) = effort {
            config.insert("effort".to_owned(), json!(effort));
        }
        if let Output::Grammar(schema) = output {
            let format = json!({"type": "json_schema", "schema": schema});
            config.insert("format".to_owned(), format);
        }
        (!config.is_empty()).then_some(Value::Object(config))
    }

    fn stop(&mut self) -> Option<Value> {
        let stop = &self.request.stop;
        let is_blank = |text: &&String| !self.is_native && text.trim().is_empty();
        let kept: Vec<&String> = stop.iter().filter(|text| !is_blank(text)).collect();
        let (is_less, kept) = (kept.len() < stop.len(), json!(kept));
        if is_less {
            self.lose_field(RequestField::Stop);
        }
        (kept != json!([])).then_some(kept)
    }

    fn metadata(&mut self) -> Option<Value> {
        let extra = self.request.extra.for_format(NAME);
        let extra = extra.and_then(|extra| extra.get("metadata"));
        let mut metadata = extra
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if let Some(user) = &self.request.user {
            if self.is_native || user.chars().count() <= LONGEST_USER {
                metadata.insert("user_id".to_owned(), json!(user));
            } else {
                self.lose_field(RequestField::User);
            }
        }
        (!metadata.is_empty()).then_some(Value::Object(metadata))
    }

    fn service_tier(&mut self) -> Option<Value> {
        let tier = self.request.service_tier.as_deref()?;
        match tier {
            tier if self.is_native => Some(json!(tier)),
            "auto" => Some(json!("auto")),
            "default" | "standard" | "standard_only" => Some(json!("standard_only")),
            _ => {
                self.lose_field(RequestField::ServiceTier);
                None
            }
        }
    }

    /// Notes what the format has no member for.
    fn lose_the_rest(&mut self) {
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
            self.lose_field(*field);
        }
        self.lose_own(&request.extra);
    }
}
