//! The hub's request, written for an upstream.

use serde_json::{Map, Value, json};

use super::super::wire::{DOCUMENTED_OWN, NAME, OPENAIS_OWN, STOPS_MAX, USER_SPELLING};
use super::tools::put;
use super::{messages_write, tools};
use crate::error::Bad;
use crate::format::{Target, Written};
use crate::hub::{
    Effort, Field, ModelTraits, OutputFormat, Reasoning, Request, Sampling, Thinking, ToolNames,
    fitting_id,
};

/// Names of the client's fields that are lost, each once.
#[derive(Default)]
pub(super) struct Dropped(Vec<String>);

impl Dropped {
    /// One more.
    pub(super) fn push(&mut self, name: &str) {
        if !self.0.iter().any(|there| there == name) {
            self.0.push(name.to_owned());
        }
    }

    /// Some more.
    pub(super) fn extend<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        names.for_each(|name| self.push(name));
    }
}

/// Writes a request.
pub(in super::super) fn write(request: &Request, target: &Target<'_>) -> Result<Written, Bad> {
    if let Some(name) = request.own_that_matters_to(NAME) {
        return Err(Bad::new(
            name,
            "is nothing that this model's provider can do",
        ));
    }
    let traits = target.traits;
    let mut dropped = Dropped::default();
    let names = ToolNames::of(request, traits.tool_name_max, |_, c| is_name_char(c));
    let mut body = Map::new();
    body.insert("model".to_owned(), target.model.into());
    let messages = messages_write::write(request, &names, traits, &mut dropped)?;
    body.insert("messages".to_owned(), messages.into());
    put_stream(request, target, &mut body);
    put_cap(request, traits, &mut body, &mut dropped);
    put_sampling(request, traits, &mut body, &mut dropped);
    put_stop(request, traits, &mut body)?;
    put_output(request, traits, &mut body, &mut dropped);
    tools::write(request, &names, &mut body, &mut dropped)?;
    put_tool_use(request, &names, traits, &mut body, &mut dropped);
    put_reasoning(request, traits, &mut body, &mut dropped);
    put_rest(request, &mut body, &mut dropped);
    put_own(request, traits, &mut body, &mut dropped);
    Ok(Written {
        body: crate::text::of_object(&body),
        dropped: dropped.0,
        renamed_tools: names.renamed(),
        json_tool: None,
    })
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Usage is always asked for: money needs it. The stream's writer takes it out again.
fn put_stream(request: &Request, target: &Target<'_>, body: &mut Map<String, Value>) {
    if target.stream {
        let own = request
            .own
            .for_format(NAME)
            .and_then(|own| own.get("stream_options"));
        let mut options = own.and_then(Value::as_object).cloned().unwrap_or_default();
        options.insert("include_usage".to_owned(), true.into());
        body.insert("stream".to_owned(), true.into());
        body.insert("stream_options".to_owned(), options.into());
    }
}

/// The cap that the model takes.
pub(in super::super) fn capped(asked: u64, traits: &ModelTraits) -> u64 {
    traits.max_output.map_or(asked, |most| asked.min(most))
}

fn put_cap(
    request: &Request,
    traits: &ModelTraits,
    body: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    let name = if traits.max_completion_tokens {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    if let Some(asked) = request.max_tokens {
        let cap = capped(asked, traits);
        if cap < asked {
            dropped.push(request.name_of(Field::MaxTokens));
        }
        body.insert(name.to_owned(), cap.into());
    }
}

fn put_sampling(
    request: &Request,
    traits: &ModelTraits,
    body: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    let takes = |field: Field| match (traits.sampling, field) {
        (Sampling::None, _) => false,
        (Sampling::One, Field::TopP) => request.temperature.is_none(),
        (_, Field::TopK) => !traits.strict_fields,
        _ => true,
    };
    let fields = [
        (
            Field::Temperature,
            "temperature",
            request.temperature.map(Value::from),
        ),
        (Field::TopP, "top_p", request.top_p.map(Value::from)),
        (Field::TopK, "top_k", request.top_k.map(Value::from)),
    ];
    for (field, name, value) in fields {
        match value {
            Some(value) if takes(field) => drop(body.insert(name.to_owned(), value)),
            Some(_) => dropped.push(request.name_of(field)),
            None => {}
        }
    }
}

fn put_stop(
    request: &Request,
    traits: &ModelTraits,
    body: &mut Map<String, Value>,
) -> Result<(), Bad> {
    let field = request.name_of(Field::Stop);
    match request.stop.as_slice() {
        [] => Ok(()),
        _ if !traits.takes_stop => Err(Bad::new(field, "is nothing that this model takes")),
        stops if stops.len() > STOPS_MAX => Err(Bad::new(
            field,
            format!("must hold at most {STOPS_MAX} strings for this model"),
        )),
        stops => {
            body.insert("stop".to_owned(), stops.into());
            Ok(())
        }
    }
}

fn put_output(
    request: &Request,
    traits: &ModelTraits,
    body: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    let format = match &request.output {
        None => return,
        Some(OutputFormat::Text) => json!({"type": "text"}),
        Some(OutputFormat::Json) => json!({"type": "json_object"}),
        Some(OutputFormat::Schema { schema, .. }) if !traits.json_schema => {
            // The model is told the schema in words, which it may miss: the client is told that.
            dropped.push(request.name_of(Field::Output));
            let words = format!(
                "Answer with one JSON object, without any other text. It must keep to this JSON Schema: {schema}"
            );
            if let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) {
                let at = messages
                    .iter()
                    .take_while(|m| m["role"] == "system" || m["role"] == "developer")
                    .count();
                messages.insert(at, json!({"role": "system", "content": words}));
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
            let name = fitting_id(name, 64, is_name_char);
            let mut inner = Map::from_iter([("name".to_owned(), name.into())]);
            put(&mut inner, "description", description.clone());
            inner.insert("schema".to_owned(), schema.clone());
            // Formats without the word always keep to the schema; here that must be asked for, and not every schema may.
            let always = ["messages", "generate-content"].contains(&request.client);
            put(
                &mut inner,
                "strict",
                strict.or((always && may_be_strict(schema)).then_some(true)),
            );
            json!({"type": "json_schema", "json_schema": inner})
        }
    };
    body.insert("response_format".to_owned(), format);
}

/// Whether OpenAI takes the schema as a strict one: every object closed and all its properties required.
fn may_be_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let properties = map.get("properties").and_then(Value::as_object);
            let required = map.get("required").and_then(Value::as_array);
            let is_object =
                map.get("type").is_some_and(|kind| kind == "object") || properties.is_some();
            let all_required = properties.is_none_or(|all| {
                all.keys()
                    .all(|name| required.is_some_and(|list| list.iter().any(|r| r == name)))
            });
            const NOT_STRICT: [&str; 5] = ["oneOf", "allOf", "not", "if", "patternProperties"];
            (!is_object
                || map.get("additionalProperties") == Some(&Value::Bool(false)) && all_required)
                && !NOT_STRICT.iter().any(|word| map.contains_key(*word))
                && map.values().all(may_be_strict)
        }
        Value::Array(list) => list.iter().all(may_be_strict),
        _ => true,
    }
}

fn put_tool_use(
    request: &Request,
    names: &ToolNames,
    traits: &ModelTraits,
    body: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    // OpenAI refuses both members where there are no tools.
    if request.client != NAME && !body.contains_key("tools") {
        return;
    }
    put(
        body,
        "tool_choice",
        tools::write_choice(request, names, traits.forced_tools, dropped),
    );
    put(body, "parallel_tool_calls", request.parallel_tools);
}

/// The effort as the model knows it; none where it cannot be told.
pub(in super::super) fn effort_for(asked: Effort, thinking: Thinking) -> Option<Effort> {
    Some(match (thinking, asked) {
        (Thinking::No, _) => return None,
        (Thinking::Effort { can_disable: false }, Effort::None) => Effort::Low,
        (
            Thinking::Budget {
                can_disable: false, ..
            },
            Effort::None,
        ) => Effort::Low,
        (Thinking::Level { minimal: true, .. }, Effort::None) => Effort::Minimal,
        (Thinking::Level { minimal: false, .. }, Effort::None | Effort::Minimal) => Effort::Low,
        (Thinking::Level { medium: false, .. }, Effort::Medium) => Effort::High,
        (Thinking::Level { .. }, Effort::XHigh | Effort::Max) => Effort::High,
        (_, asked) => asked,
    })
}

fn put_reasoning(
    request: &Request,
    traits: &ModelTraits,
    body: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    let Some(asked) = request.reasoning.as_ref().and_then(Reasoning::as_effort) else {
        return;
    };
    let sent = effort_for(asked, traits.thinking);
    if sent != Some(asked) && !(sent.is_none() && asked == Effort::None) {
        dropped.push(request.name_of(Field::Reasoning));
    }
    put(body, "reasoning_effort", sent.map(Effort::word));
}

fn put_rest(request: &Request, body: &mut Map<String, Value>, dropped: &mut Dropped) {
    put(body, "n", request.n);
    put(body, "seed", request.seed);
    put(body, "frequency_penalty", request.frequency_penalty);
    put(body, "presence_penalty", request.presence_penalty);
    if let Some(top) = request.logprobs {
        body.insert("logprobs".to_owned(), true.into());
        put(body, "top_logprobs", (top > 0).then_some(top));
    }
    put(body, "verbosity", request.verbosity.clone());
    let own = request
        .own
        .for_format(NAME)
        .and_then(|own| own.get(USER_SPELLING)?.as_str());
    put(body, own.unwrap_or("user"), request.user.clone());
    put(body, "prompt_cache_key", request.cache_key.clone());
    if let Some(tier) = &request.service_tier {
        const TIERS: [&str; 6] = ["auto", "default", "flex", "scale", "priority", "fast"];
        if request.client == NAME || TIERS.contains(&tier.as_str()) {
            body.insert("service_tier".to_owned(), tier.as_str().into());
        } else {
            dropped.push(request.name_of(Field::ServiceTier));
        }
    }
    match &request.metadata {
        Some(labels) if request.client == NAME => {
            drop(body.insert("metadata".to_owned(), labels.clone()))
        }
        // OpenAI refuses labels on what it does not store.
        Some(_) => dropped.push(request.name_of(Field::Metadata)),
        None => {}
    }
}

fn put_own(
    request: &Request,
    traits: &ModelTraits,
    body: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    for name in request.own.lost_to(NAME) {
        let value = request.own.get(name);
        match value.filter(|_| OPENAIS_OWN.contains(&name) && request.client == "responses") {
            Some(value) => drop(body.insert(name.to_owned(), value.clone())),
            None => dropped.push(name),
        }
    }
    if let Some(reasoning) = &request.reasoning {
        dropped.extend(reasoning.own.lost_to(NAME));
    }
    for (name, value) in request.own.for_format(NAME).into_iter().flatten() {
        if name.starts_with('.') {
            continue;
        }
        if traits.strict_fields && !DOCUMENTED_OWN.contains(&name.as_str()) {
            dropped.push(name);
        } else if !body.contains_key(name) && name != "stream_options" {
            body.insert(name.clone(), value.clone());
        }
    }
}
