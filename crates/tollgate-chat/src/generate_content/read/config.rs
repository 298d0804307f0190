//! `generationConfig`, whose types and ranges are known to be right.

use serde_json::{Map, Value};

use super::super::fields::{Fields, keep_under};
use super::super::{NAME, schema};
use crate::error::Bad;
use crate::hub::{Effort, OutputFormat, Own, Reasoning, Request};

/// Settings into their fields; what the hub has no field for into `own`, each under its path.
pub(super) fn read_config(
    mut config: Fields,
    request: &mut Request,
    own: &mut Map<String, Value>,
) -> Result<(), Bad> {
    let mut float = |name: &str| config.take(name).and_then(|value| value.as_f64());
    request.temperature = float("temperature");
    request.top_p = float("topP");
    request.presence_penalty = float("presencePenalty");
    request.frequency_penalty = float("frequencyPenalty");
    // Not negative, so the cast only takes off the `.0`.
    request.top_k = float("topK").map(|k| k as u64);
    request.max_tokens = config
        .take("maxOutputTokens")
        .and_then(|value| value.as_u64());
    let n = config
        .take("candidateCount")
        .and_then(|value| value.as_u64());
    request.n = n.and_then(|n| u32::try_from(n).ok());
    request.seed = config.take("seed").and_then(|value| value.as_i64());
    for stop in config.list("stopSequences")?.into_iter().flatten() {
        request.stop.extend(stop.as_str().map(str::to_owned));
    }
    logprobs(&mut config, request)?;
    request.output = output(&mut config, own)?;
    if let Some(thinking) = config.object("thinkingConfig")? {
        request.reasoning = Some(reasoning(thinking)?);
    }
    keep_under(own, "generationConfig", config.rest());
    Ok(())
}

fn logprobs(config: &mut Fields, request: &mut Request) -> Result<(), Bad> {
    let wanted = config.boolean("responseLogprobs")?.unwrap_or(false);
    let top = config.take("logprobs").and_then(|value| value.as_u64());
    if wanted {
        request.logprobs = Some(top.and_then(|top| u32::try_from(top).ok()).unwrap_or(0));
    }
    Ok(())
}

fn output(config: &mut Fields, own: &mut Map<String, Value>) -> Result<Option<OutputFormat>, Bad> {
    let mime = config.string("responseMimeType")?;
    let older = config.take("responseSchema");
    let newer = config.take("responseJsonSchema");
    let mut keep = |name: &str, value: Value| own.insert(name.to_owned(), value);
    let (schema, mime) = match (older.or(newer.clone()), mime) {
        (Some(schema), None) => (Some(schema), None),
        (schema, Some(mime)) => match mime.as_str() {
            "application/json" => (schema, Some(OutputFormat::Json)),
            "text/plain" if schema.is_none() => return Ok(Some(OutputFormat::Text)),
            // `text/x.enum` and what may come: this format's alone.
            _ => {
                keep("generationConfig.responseMimeType", Value::String(mime));
                let name = match newer {
                    Some(_) => "generationConfig.responseJsonSchema",
                    None => "generationConfig.responseSchema",
                };
                schema.map(|schema| keep(name, schema));
                return Ok(None);
            }
        },
        (None, None) => return Ok(None),
    };
    let Some(schema) = schema else {
        return Ok(mime);
    };
    let schema = match newer {
        Some(newer) => newer,
        None => {
            let read = schema::to_json_schema(&schema);
            keep(".generationConfig.responseSchema", schema);
            read
        }
    };
    Ok(Some(OutputFormat::Schema {
        name: None,
        description: None,
        schema,
        strict: None,
    }))
}

fn reasoning(mut thinking: Fields) -> Result<Reasoning, Bad> {
    let level = thinking.string("thinkingLevel")?;
    let effort = level.and_then(|level| Effort::from_word(&level.to_ascii_lowercase()));
    let budget = thinking
        .take("thinkingBudget")
        .and_then(|value| value.as_i64());
    let shows = thinking.boolean("includeThoughts")?;
    Ok(Reasoning {
        effort,
        budget,
        adaptive: false,
        show: shows.map(|shows| if shows { "auto" } else { "omitted" }.to_owned()),
        own: Own::of(NAME, thinking.rest()),
    })
}
