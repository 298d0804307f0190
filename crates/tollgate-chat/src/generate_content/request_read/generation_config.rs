//! Reads `generationConfig`. The request summary has checked its types and ranges before.

use serde_json::{Map, Value};

use crate::error::InvalidRequest;
use crate::generate_content::constants::NAME;
use crate::generate_content::fields::{Fields, insert_with_prefix};
use crate::generate_content::schema;
use crate::hub::{Effort, ExtraFields, OutputFormat, Reasoning, Request};

/// Reads the settings into the hub's fields; settings for which the hub has no field are put into `extra` under their path.
pub(crate) fn read_generation_config(
    mut config: Fields,
    request: &mut Request,
    extra: &mut Map<String, Value>,
) -> Result<(), InvalidRequest> {
    let mut float = |name: &str| config.take(name).and_then(|value| value.as_f64());
    request.temperature = float("temperature");
    request.top_p = float("topP");
    request.presence_penalty = float("presencePenalty");
    request.frequency_penalty = float("frequencyPenalty");
    // The value is not negative, so the cast only removes `.0`.
    request.top_k = float("topK").map(|k| k as u64);
    request.max_tokens = config
        .take("maxOutputTokens")
        .and_then(|value| value.as_u64());
    let n = config
        .take("candidateCount")
        .and_then(|value| value.as_u64());
    request.n = n.and_then(|n| u32::try_from(n).ok());
    request.seed = config.take("seed").and_then(|value| value.as_i64());
    for stop in config.take_array("stopSequences")?.into_iter().flatten() {
        request.stop.extend(stop.as_str().map(str::to_owned));
    }
    read_logprobs(&mut config, request)?;
    request.output = read_output_format(&mut config, extra)?;
    if let Some(thinking) = config.take_object("thinkingConfig")? {
        request.reasoning = Some(read_thinking_config(thinking)?);
    }
    insert_with_prefix(extra, "generationConfig", config.into_rest());
    Ok(())
}

fn read_logprobs(config: &mut Fields, request: &mut Request) -> Result<(), InvalidRequest> {
    let wanted = config.take_bool("responseLogprobs")?.unwrap_or(false);
    let top = config.take("logprobs").and_then(|value| value.as_u64());
    if wanted {
        request.logprobs = Some(top.and_then(|top| u32::try_from(top).ok()).unwrap_or(0));
    }
    Ok(())
}

fn read_output_format(
    config: &mut Fields,
    extra: &mut Map<String, Value>,
) -> Result<Option<OutputFormat>, InvalidRequest> {
    let mime = config.take_string("responseMimeType")?;
    let openapi = config.take("responseSchema");
    let json_schema = config.take("responseJsonSchema");
    let mut keep = |name: &str, value: Value| extra.insert(name.to_owned(), value);
    let (schema, mime) = match (openapi.or(json_schema.clone()), mime) {
        (Some(schema), None) => (Some(schema), None),
        (schema, Some(mime)) => match mime.as_str() {
            "application/json" => (schema, Some(OutputFormat::Json)),
            "text/plain" if schema.is_none() => return Ok(Some(OutputFormat::Text)),
            // `text/x.enum` and unknown types exist only in this format.
            _ => {
                keep("generationConfig.responseMimeType", Value::String(mime));
                let name = match json_schema {
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
    let schema = match json_schema {
        Some(json_schema) => json_schema,
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

fn read_thinking_config(mut thinking: Fields) -> Result<Reasoning, InvalidRequest> {
    let level = thinking.take_string("thinkingLevel")?;
    let effort = level.and_then(|level| Effort::parse(&level.to_ascii_lowercase()));
    let budget = thinking
        .take("thinkingBudget")
        .and_then(|value| value.as_i64());
    let include_thoughts = thinking.take_bool("includeThoughts")?;
    Ok(Reasoning {
        effort,
        budget,
        adaptive: false,
        display: include_thoughts
            .map(|include_thoughts| if include_thoughts { "auto" } else { "omitted" }.to_owned()),
        extra: ExtraFields::new(NAME, thinking.into_rest()),
    })
}
