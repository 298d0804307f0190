//! Checks types, ranges and allowed values of `generationConfig` and `safetySettings`.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json_checks::{
    RawMember, check_array, check_bool, check_object, is_number, parse_string,
};
use crate::error::InvalidRequest;
use crate::format::RequestSummary;
use crate::generate_content::constants::MAX_STOP_SEQUENCES;

/// `generationConfig`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GenerationConfig<'a> {
    #[serde(borrow)]
    pub(crate) temperature: RawMember<'a>,
    #[serde(borrow, alias = "top_p")]
    pub(crate) top_p: RawMember<'a>,
    #[serde(borrow, alias = "top_k")]
    pub(crate) top_k: RawMember<'a>,
    #[serde(borrow, alias = "candidate_count")]
    candidate_count: RawMember<'a>,
    #[serde(borrow, alias = "max_output_tokens")]
    max_output_tokens: RawMember<'a>,
    #[serde(borrow, alias = "stop_sequences")]
    stop_sequences: RawMember<'a>,
    #[serde(borrow, alias = "response_mime_type")]
    pub(crate) response_mime_type: RawMember<'a>,
    #[serde(borrow, alias = "response_schema")]
    response_schema: RawMember<'a>,
    #[serde(borrow, alias = "response_json_schema")]
    response_json_schema: RawMember<'a>,
    #[serde(borrow, alias = "response_modalities")]
    response_modalities: RawMember<'a>,
    #[serde(borrow)]
    seed: RawMember<'a>,
    #[serde(borrow, alias = "presence_penalty")]
    presence_penalty: RawMember<'a>,
    #[serde(borrow, alias = "frequency_penalty")]
    frequency_penalty: RawMember<'a>,
    #[serde(borrow, alias = "response_logprobs")]
    response_logprobs: RawMember<'a>,
    #[serde(borrow)]
    logprobs: RawMember<'a>,
    #[serde(borrow, alias = "thinking_config")]
    pub(crate) thinking_config: RawMember<'a>,
}

/// `generationConfig.thinkingConfig`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ThinkingConfig<'a> {
    #[serde(borrow, alias = "include_thoughts")]
    include_thoughts: RawMember<'a>,
    #[serde(borrow, alias = "thinking_budget")]
    pub(crate) thinking_budget: RawMember<'a>,
    #[serde(borrow, alias = "thinking_level")]
    pub(crate) thinking_level: RawMember<'a>,
}

const MAX_CANDIDATES: i64 = 8;

const CATEGORIES: &[&str] = &[
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
    "HARM_CATEGORY_CIVIC_INTEGRITY",
    "HARM_CATEGORY_JAILBREAK",
    "HARM_CATEGORY_IMAGE_HATE",
    "HARM_CATEGORY_IMAGE_HARASSMENT",
    "HARM_CATEGORY_IMAGE_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_IMAGE_DANGEROUS_CONTENT",
    "HARM_CATEGORY_UNSPECIFIED",
];
const THRESHOLDS: &[&str] = &[
    "BLOCK_NONE",
    "BLOCK_ONLY_HIGH",
    "BLOCK_MEDIUM_AND_ABOVE",
    "BLOCK_LOW_AND_ABOVE",
    "OFF",
    "HARM_BLOCK_THRESHOLD_UNSPECIFIED",
];

pub(crate) fn parse_generation_config(
    raw: &RawValue,
) -> Result<GenerationConfig<'_>, InvalidRequest> {
    let field = "generationConfig";
    check_object(raw, field)?;
    serde_json::from_str(raw.get())
        .map_err(|error| InvalidRequest::new(field, format!("is malformed: {error}")))
}

/// Checks all settings and puts the token cap, the number of candidates and whether reasoning is
/// mentioned into the summary.
pub(crate) fn check_generation_config(
    config: &GenerationConfig<'_>,
    summary: &mut RequestSummary,
) -> Result<(), InvalidRequest> {
    check_number(config.temperature, "temperature", 0.0..=2.0)?;
    let max_tokens = check_integer(config.max_output_tokens, "maxOutputTokens", 1..=i64::MAX)?;
    summary.max_tokens = max_tokens.and_then(|n| u64::try_from(n).ok());
    check_number(config.top_p, "topP", 0.0..=1.0)?;
    check_top_k(config.top_k)?;
    check_stop_sequences(config.stop_sequences)?;
    let n = check_integer(config.candidate_count, "candidateCount", 1..=MAX_CANDIDATES)?;
    summary.n = n.and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    check_integer(config.seed, "seed", i64::MIN..=i64::MAX)?;
    check_number(config.presence_penalty, "presencePenalty", -2.0..=2.0)?;
    check_number(config.frequency_penalty, "frequencyPenalty", -2.0..=2.0)?;
    check_integer(config.logprobs, "logprobs", 0..=20)?;
    check_bool(
        config.response_logprobs,
        "generationConfig.responseLogprobs",
    )?;
    parse_string(
        config.response_mime_type,
        "generationConfig.responseMimeType",
    )?;
    if let Some(raw) = config.response_schema {
        check_object(raw, "generationConfig.responseSchema")?;
    }
    if let Some(raw) = config.response_modalities {
        check_array(raw, "generationConfig.responseModalities")?;
    }
    if config.response_schema.is_some() && config.response_json_schema.is_some() {
        let why = "must not be given together with `responseJsonSchema`";
        return Err(InvalidRequest::new("generationConfig.responseSchema", why));
    }
    if let Some(raw) = config.thinking_config {
        summary.has_reasoning_settings = true;
        summary.thinking_budget = check_thinking_config(&parse_thinking_config(raw)?)?;
    }
    Ok(())
}

/// Parses `thinkingConfig`, which must be an object.
pub(crate) fn parse_thinking_config(raw: &RawValue) -> Result<ThinkingConfig<'_>, InvalidRequest> {
    let field = "generationConfig.thinkingConfig";
    check_object(raw, field)?;
    serde_json::from_str(raw.get())
        .map_err(|error| InvalidRequest::new(field, format!("is malformed: {error}")))
}

/// Checks `thinkingConfig`. Returns its budget, if that is a number of tokens.
fn check_thinking_config(thinking: &ThinkingConfig<'_>) -> Result<Option<u64>, InvalidRequest> {
    let budget = "thinkingConfig.thinkingBudget";
    let tokens = check_integer(thinking.thinking_budget, budget, -1..=i64::from(i32::MAX))?;
    let level = "generationConfig.thinkingConfig.thinkingLevel";
    if let Some(word) = parse_string(thinking.thinking_level, level)? {
        const LEVELS: [&str; 6] = [
            "MINIMAL",
            "LOW",
            "MEDIUM",
            "HIGH",
            "XHIGH",
            "THINKING_LEVEL_UNSPECIFIED",
        ];
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(&word)) {
            let why = "must be MINIMAL, LOW, MEDIUM, HIGH or XHIGH";
            return Err(InvalidRequest::new(level, why));
        }
    }
    let include_thoughts = "generationConfig.thinkingConfig.includeThoughts";
    check_bool(thinking.include_thoughts, include_thoughts)?;
    if thinking.thinking_budget.is_some() && thinking.thinking_level.is_some() {
        let why = "must not be given together with `thinkingLevel`";
        return Err(InvalidRequest::new(
            format!("generationConfig.{budget}"),
            why,
        ));
    }
    Ok(tokens.and_then(|n| u64::try_from(n).ok()))
}

fn check_stop_sequences(raw: RawMember<'_>) -> Result<(), InvalidRequest> {
    const FIELD: &str = "generationConfig.stopSequences";
    let Some(raw) = raw else { return Ok(()) };
    let stops: Vec<String> = serde_json::from_str(raw.get())
        .map_err(|_| InvalidRequest::new(FIELD, "must be a list of strings"))?;
    if stops.len() > MAX_STOP_SEQUENCES {
        let why = format!("must hold at most {MAX_STOP_SEQUENCES} strings");
        return Err(InvalidRequest::new(FIELD, why));
    }
    Ok(())
}

pub(crate) fn check_safety_settings(raw: RawMember<'_>) -> Result<(), InvalidRequest> {
    #[derive(Deserialize)]
    struct Setting<'a> {
        #[serde(borrow)]
        category: RawMember<'a>,
        #[serde(borrow)]
        threshold: RawMember<'a>,
    }
    const FIELD: &str = "safetySettings";
    let Some(raw) = raw else { return Ok(()) };
    let settings: Vec<Setting<'_>> = serde_json::from_str(raw.get())
        .map_err(|_| InvalidRequest::new(FIELD, "must be a list of {category, threshold}"))?;
    for (at, setting) in settings.iter().enumerate() {
        for (member, raw, known) in [
            ("category", setting.category, CATEGORIES),
            ("threshold", setting.threshold, THRESHOLDS),
        ] {
            let field = format!("{FIELD}[{at}].{member}");
            let word = parse_string(raw, &field)?
                .ok_or_else(|| InvalidRequest::new(&field, "is required"))?;
            if !known.contains(&word.as_str()) {
                // The last value of each list is the "unspecified" value, which error messages do not list.
                let allowed = known[..known.len() - 1].join(", ");
                return Err(InvalidRequest::new(
                    field,
                    format!("must be one of {allowed}"),
                ));
            }
        }
    }
    Ok(())
}

/// Some SDKs send `topK` as a float: `40.0` is valid.
fn check_top_k(raw: RawMember<'_>) -> Result<(), InvalidRequest> {
    let is_integer = |raw: &RawValue| {
        let value: f64 = raw.get().parse().ok().filter(|_| is_number(raw))?;
        (value.fract() == 0.0 && (0.0..=f64::from(i32::MAX)).contains(&value)).then_some(())
    };
    match raw {
        Some(raw) if is_integer(raw).is_none() => Err(InvalidRequest::new(
            "generationConfig.topK",
            "must be an integer of at least 0",
        )),
        _ => Ok(()),
    }
}

fn check_number(
    raw: RawMember<'_>,
    name: &str,
    range: RangeInclusive<f64>,
) -> Result<(), InvalidRequest> {
    let Some(raw) = raw else { return Ok(()) };
    let value: Option<f64> = raw.get().parse().ok().filter(|_| is_number(raw));
    if value.is_some_and(|value| range.contains(&value)) {
        return Ok(());
    }
    let why = format!("must be a number from {} to {}", range.start(), range.end());
    Err(InvalidRequest::new(format!("generationConfig.{name}"), why))
}

fn check_integer(
    raw: RawMember<'_>,
    name: &str,
    range: RangeInclusive<i64>,
) -> Result<Option<i64>, InvalidRequest> {
    let Some(raw) = raw else { return Ok(None) };
    let value: Option<i64> = raw.get().parse().ok();
    if let Some(value) = value.filter(|value| range.contains(value)) {
        return Ok(Some(value));
    }
    let why = match (*range.start(), *range.end()) {
        (i64::MIN, _) => "must be an integer".to_owned(),
        (min, i64::MAX) => format!("must be an integer of at least {min}"),
        (min, max) if max == i64::from(i32::MAX) => {
            format!("must be an integer of at least {min}")
        }
        (min, max) => format!("must be an integer from {min} to {max}"),
    };
    Err(InvalidRequest::new(format!("generationConfig.{name}"), why))
}
