//! A quick look at a request: the facts for routing, money and limits, and the ranges of SPEC.md's table. Every rule about the
//! request's settings is here and nowhere else; reading a request looks first.

use std::ops::RangeInclusive;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::NAME;
use super::read::{is_upload, is_youtube};
use super::wire::attachments;
use crate::error::Bad;
use crate::format::Glance;

type Raw<'a> = Option<&'a RawValue>;

/// The members that are looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Top<'a> {
    #[serde(borrow)]
    contents: Raw<'a>,
    #[serde(borrow, alias = "system_instruction")]
    system_instruction: Raw<'a>,
    #[serde(borrow, alias = "generation_config")]
    generation_config: Raw<'a>,
    #[serde(borrow, alias = "safety_settings")]
    safety_settings: Raw<'a>,
    #[serde(borrow)]
    tools: Raw<'a>,
    #[serde(borrow, alias = "tool_config")]
    tool_config: Raw<'a>,
    #[serde(borrow, alias = "cached_content")]
    cached_content: Raw<'a>,
    #[serde(borrow)]
    model: Raw<'a>,
}

/// `generationConfig`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Config<'a> {
    #[serde(borrow)]
    pub(super) temperature: Raw<'a>,
    #[serde(borrow, alias = "top_p")]
    pub(super) top_p: Raw<'a>,
    #[serde(borrow, alias = "top_k")]
    pub(super) top_k: Raw<'a>,
    #[serde(borrow, alias = "candidate_count")]
    candidate_count: Raw<'a>,
    #[serde(borrow, alias = "max_output_tokens")]
    max_output_tokens: Raw<'a>,
    #[serde(borrow, alias = "stop_sequences")]
    stop_sequences: Raw<'a>,
    #[serde(borrow, alias = "response_mime_type")]
    pub(super) response_mime_type: Raw<'a>,
    #[serde(borrow, alias = "response_schema")]
    response_schema: Raw<'a>,
    #[serde(borrow, alias = "response_json_schema")]
    response_json_schema: Raw<'a>,
    #[serde(borrow, alias = "response_modalities")]
    response_modalities: Raw<'a>,
    #[serde(borrow)]
    seed: Raw<'a>,
    #[serde(borrow, alias = "presence_penalty")]
    presence_penalty: Raw<'a>,
    #[serde(borrow, alias = "frequency_penalty")]
    frequency_penalty: Raw<'a>,
    #[serde(borrow, alias = "response_logprobs")]
    response_logprobs: Raw<'a>,
    #[serde(borrow)]
    logprobs: Raw<'a>,
    #[serde(borrow, alias = "thinking_config")]
    pub(super) thinking_config: Raw<'a>,
}

/// `generationConfig.thinkingConfig`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Thinking<'a> {
    #[serde(borrow, alias = "include_thoughts")]
    include_thoughts: Raw<'a>,
    #[serde(borrow, alias = "thinking_budget")]
    pub(super) thinking_budget: Raw<'a>,
    #[serde(borrow, alias = "thinking_level")]
    pub(super) thinking_level: Raw<'a>,
}

/// The documentation's limit; SPEC.md gives none for this format.
const MOST_STOPS: usize = 5;
const MOST_CANDIDATES: i64 = 8;

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

/// Whether a part names a file by a link of the web that most models do not take: neither the vendor's own files nor films
/// of its own site.
fn holds_links(body: &[u8]) -> bool {
    ["\"fileUri\"", "\"file_uri\""].iter().any(|name| {
        memmem::find_iter(body, name).any(|at| {
            let rest = body[at + name.len()..].trim_ascii_start();
            let value = rest.strip_prefix(b":").unwrap_or_default();
            let value = value.trim_ascii_start().strip_prefix(b"\"");
            let value = value.unwrap_or_default().split(|b| *b == b'"').next();
            let url = std::str::from_utf8(value.unwrap_or_default()).unwrap_or_default();
            url.starts_with("http") && !is_upload(url) && !is_youtube(url)
        })
    })
}

/// See [`crate::Format::glance`].
pub(super) fn glance(body: &[u8]) -> Result<Glance, Bad> {
    let top = top(body)?;
    let contents = top
        .contents
        .ok_or_else(|| Bad::new("contents", "is required"))?;
    if !list(contents, "contents")? {
        return Err(Bad::new("contents", "must hold at least one item"));
    }
    for (raw, field) in [
        (top.system_instruction, "systemInstruction"),
        (top.tool_config, "toolConfig"),
    ] {
        raw.map_or(Ok(()), |raw| object(raw, field))?;
    }
    if let Some(tools) = top.tools {
        list(tools, "tools")?;
    }
    string(top.cached_content, "cachedContent")?;
    safety(top.safety_settings)?;
    let mut glance = Glance {
        n: 1,
        // The model of the body, if any, would contradict the path's. Links may have to be fetched here.
        is_native: top.model.is_none() && !holds_links(body),
        ..Glance::default()
    };
    if let Some(raw) = top.generation_config {
        settings(&config_of(raw)?, &mut glance)?;
    }
    let found = attachments::count(body);
    glance.attachments = found.count;
    glance.payload_bytes = found.payload_bytes;
    Ok(glance)
}

fn top(body: &[u8]) -> Result<Top<'_>, Bad> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Bad::body("the body must be a JSON object"));
    }
    serde_json::from_slice(body)
        .map_err(|error| Bad::body(format!("the body is no valid {NAME} request: {error}")))
}

/// The settings of a request whose body is an object; none where it has none or they are malformed.
pub(super) fn config(body: &[u8]) -> Option<Config<'_>> {
    config_of(top(body).ok()?.generation_config?).ok()
}

fn config_of(raw: &RawValue) -> Result<Config<'_>, Bad> {
    let field = "generationConfig";
    object(raw, field)?;
    serde_json::from_str(raw.get())
        .map_err(|error| Bad::new(field, format!("is malformed: {error}")))
}

/// Checks the settings in the order of SPEC.md's row.
fn settings(config: &Config<'_>, glance: &mut Glance) -> Result<(), Bad> {
    number(config.temperature, "temperature", 0.0..=2.0)?;
    let max_tokens = integer(config.max_output_tokens, "maxOutputTokens", 1..=i64::MAX)?;
    glance.max_tokens = max_tokens.and_then(|n| u64::try_from(n).ok());
    number(config.top_p, "topP", 0.0..=1.0)?;
    top_k(config.top_k)?;
    stops(config.stop_sequences)?;
    let n = integer(
        config.candidate_count,
        "candidateCount",
        1..=MOST_CANDIDATES,
    )?;
    glance.n = n.and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    integer(config.seed, "seed", i64::MIN..=i64::MAX)?;
    number(config.presence_penalty, "presencePenalty", -2.0..=2.0)?;
    number(config.frequency_penalty, "frequencyPenalty", -2.0..=2.0)?;
    integer(config.logprobs, "logprobs", 0..=20)?;
    boolean(
        config.response_logprobs,
        "generationConfig.responseLogprobs",
    )?;
    string(
        config.response_mime_type,
        "generationConfig.responseMimeType",
    )?;
    if let Some(raw) = config.response_schema {
        object(raw, "generationConfig.responseSchema")?;
    }
    if let Some(raw) = config.response_modalities {
        list(raw, "generationConfig.responseModalities")?;
    }
    if config.response_schema.is_some() && config.response_json_schema.is_some() {
        let why = "must not be given together with `responseJsonSchema`";
        return Err(Bad::new("generationConfig.responseSchema", why));
    }
    if let Some(raw) = config.thinking_config {
        glance.says_reasoning = true;
        thinking(&thinking_of(raw)?)?;
    }
    Ok(())
}

/// `thinkingConfig` of an object.
pub(super) fn thinking_of(raw: &RawValue) -> Result<Thinking<'_>, Bad> {
    let field = "generationConfig.thinkingConfig";
    object(raw, field)?;
    serde_json::from_str(raw.get())
        .map_err(|error| Bad::new(field, format!("is malformed: {error}")))
}

fn thinking(thinking: &Thinking<'_>) -> Result<(), Bad> {
    let budget = "thinkingConfig.thinkingBudget";
    integer(thinking.thinking_budget, budget, -1..=i64::from(i32::MAX))?;
    let level = "generationConfig.thinkingConfig.thinkingLevel";
    if let Some(word) = string(thinking.thinking_level, level)? {
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
            return Err(Bad::new(level, why));
        }
    }
    let shows = "generationConfig.thinkingConfig.includeThoughts";
    boolean(thinking.include_thoughts, shows)?;
    if thinking.thinking_budget.is_some() && thinking.thinking_level.is_some() {
        let why = "must not be given together with `thinkingLevel`";
        return Err(Bad::new(format!("generationConfig.{budget}"), why));
    }
    Ok(())
}

fn stops(raw: Raw<'_>) -> Result<(), Bad> {
    const FIELD: &str = "generationConfig.stopSequences";
    let Some(raw) = raw else { return Ok(()) };
    let stops: Vec<String> = serde_json::from_str(raw.get())
        .map_err(|_| Bad::new(FIELD, "must be a list of strings"))?;
    if stops.len() > MOST_STOPS {
        let why = format!("must hold at most {MOST_STOPS} strings");
        return Err(Bad::new(FIELD, why));
    }
    Ok(())
}

fn safety(raw: Raw<'_>) -> Result<(), Bad> {
    #[derive(Deserialize)]
    struct Setting<'a> {
        #[serde(borrow)]
        category: Raw<'a>,
        #[serde(borrow)]
        threshold: Raw<'a>,
    }
    const FIELD: &str = "safetySettings";
    let Some(raw) = raw else { return Ok(()) };
    let settings: Vec<Setting<'_>> = serde_json::from_str(raw.get())
        .map_err(|_| Bad::new(FIELD, "must be a list of {category, threshold}"))?;
    for (at, setting) in settings.iter().enumerate() {
        for (member, raw, known) in [
            ("category", setting.category, CATEGORIES),
            ("threshold", setting.threshold, THRESHOLDS),
        ] {
            let field = format!("{FIELD}[{at}].{member}");
            let word = string(raw, &field)?.ok_or_else(|| Bad::new(&field, "is required"))?;
            if !known.contains(&word.as_str()) {
                // The last of each list is the wire's word for none.
                let allowed = known[..known.len() - 1].join(", ");
                return Err(Bad::new(field, format!("must be one of {allowed}")));
            }
        }
    }
    Ok(())
}

/// topK is a float in some SDKs: `40.0` counts.
fn top_k(raw: Raw<'_>) -> Result<(), Bad> {
    let whole = |raw: &RawValue| {
        let value: f64 = raw.get().parse().ok().filter(|_| is_number(raw))?;
        (value.fract() == 0.0 && (0.0..=f64::from(i32::MAX)).contains(&value)).then_some(())
    };
    match raw {
        Some(raw) if whole(raw).is_none() => Err(Bad::new(
            "generationConfig.topK",
            "must be an integer of at least 0",
        )),
        _ => Ok(()),
    }
}

fn number(raw: Raw<'_>, name: &str, range: RangeInclusive<f64>) -> Result<(), Bad> {
    let Some(raw) = raw else { return Ok(()) };
    let value: Option<f64> = raw.get().parse().ok().filter(|_| is_number(raw));
    if value.is_some_and(|value| range.contains(&value)) {
        return Ok(());
    }
    let why = format!("must be a number from {} to {}", range.start(), range.end());
    Err(Bad::new(format!("generationConfig.{name}"), why))
}

fn integer(raw: Raw<'_>, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, Bad> {
    let Some(raw) = raw else { return Ok(None) };
    let value: Option<i64> = raw.get().parse().ok();
    if let Some(value) = value.filter(|value| range.contains(value)) {
        return Ok(Some(value));
    }
    let why = match (*range.start(), *range.end()) {
        (i64::MIN, _) => "must be an integer".to_owned(),
        (least, i64::MAX) => format!("must be an integer of at least {least}"),
        (least, most) if most == i64::from(i32::MAX) => {
            format!("must be an integer of at least {least}")
        }
        (least, most) => format!("must be an integer from {least} to {most}"),
    };
    Err(Bad::new(format!("generationConfig.{name}"), why))
}

fn is_number(raw: &RawValue) -> bool {
    raw.get()
        .bytes()
        .next()
        .is_some_and(|b| b == b'-' || b.is_ascii_digit())
}

fn boolean(raw: Raw<'_>, field: &str) -> Result<(), Bad> {
    match raw.map(RawValue::get) {
        None | Some("true" | "false") => Ok(()),
        Some(_) => Err(Bad::new(field, "must be true or false")),
    }
}

fn string(raw: Raw<'_>, field: &str) -> Result<Option<String>, Bad> {
    raw.map(|raw| serde_json::from_str(raw.get()))
        .transpose()
        .map_err(|_| Bad::new(field, "must be a string"))
}

fn object(raw: &RawValue, field: &str) -> Result<(), Bad> {
    match raw.get().as_bytes().first() {
        Some(b'{') => Ok(()),
        _ => Err(Bad::new(field, "must be an object")),
    }
}

/// Whether the list has items.
fn list(raw: &RawValue, field: &str) -> Result<bool, Bad> {
    let inner = raw
        .get()
        .strip_prefix('[')
        .ok_or_else(|| Bad::new(field, "must be a list"))?;
    Ok(!inner.trim_ascii_start().starts_with(']'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn with(name: &str, value: Value) -> Result<Glance, Bad> {
        let body =
            json!({"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {name: value}});
        glance(body.to_string().as_bytes())
    }

    #[test]
    fn settings_keep_to_their_ranges() {
        for (name, good, bad) in [
            (
                "temperature",
                json!([0, 2, 1.5, null]),
                json!([-0.1, 2.1, "1", true]),
            ),
            ("topP", json!([0, 0.5, 1]), json!([1.01, -1, "0.5", []])),
            ("topK", json!([1, 40, 40.0, 0]), json!([40.5, -1, "40", {}])),
            (
                "maxOutputTokens",
                json!([1, 100000]),
                json!([0, -1, 1.0, 1.5, "10"]),
            ),
            ("candidateCount", json!([1, 8]), json!([0, 9, "1", 1.0])),
            (
                "stopSequences",
                json!([[], ["a"], ["a", "b", "c", "d", "e"]]),
                json!(["a", [1], ["a", "b", "c", "d", "e", "f"]]),
            ),
            ("seed", json!([-5, 0]), json!([1.0, "1"])),
            ("presencePenalty", json!([-2, 2]), json!([-2.1, "0"])),
            ("responseLogprobs", json!([true]), json!(["true", 1])),
            ("responseMimeType", json!(["application/json"]), json!([1])),
            ("responseSchema", json!([{}]), json!(["x", []])),
            (
                "thinkingConfig",
                json!([{}, {"thinkingBudget": -1}, {"thinkingLevel": "low"}]),
                json!([1, {"thinkingBudget": 1.0}, {"thinkingBudget": -2}, {"thinkingLevel": "much"}, {"includeThoughts": 1},
                    {"thinkingBudget": 1, "thinkingLevel": "LOW"}]),
            ),
        ] {
            for value in good.as_array().unwrap() {
                with(name, value.clone()).unwrap_or_else(|bad| panic!("{name} {value}: {bad}"));
            }
            for value in bad.as_array().unwrap() {
                let error = with(name, value.clone()).expect_err(&format!("{name} {value}"));
                assert!(
                    error.field.starts_with(&format!("generationConfig.{name}")),
                    "{error:?}"
                );
                assert!(error.message.contains("must"), "{error}");
            }
        }
        assert!(with("responseSchema", json!({})).is_ok());
    }

    #[test]
    fn facts_are_found_in_both_spellings() {
        let body = json!({
            "contents": [{"parts": [{"inline_data": {"mime_type": "image/png", "data": "AAAAAAAA"}}, {"fileData": {"fileUri": "gs://x"}}]}],
            "generation_config": {"max_output_tokens": 7, "candidate_count": 2, "thinking_config": {"include_thoughts": true}},
        });
        let glance = glance(body.to_string().as_bytes()).unwrap();
        let expected = Glance {
            max_tokens: Some(7),
            n: 2,
            attachments: 2,
            payload_bytes: 8,
            says_reasoning: true,
            members: 0,
            is_native: true,
            ..Glance::default()
        };
        assert_eq!(glance, expected);
    }

    #[test]
    fn bodies_are_refused_with_the_field() {
        for (body, field) in [
            ("", ""),
            ("[]", ""),
            ("{", ""),
            ("{}", "contents"),
            (r#"{"contents":null}"#, "contents"),
            (r#"{"contents":[]}"#, "contents"),
            (r#"{"contents":"hi"}"#, "contents"),
            (
                r#"{"contents":[{}],"generationConfig":[]}"#,
                "generationConfig",
            ),
            (
                r#"{"contents":[{}],"systemInstruction":"x"}"#,
                "systemInstruction",
            ),
            (r#"{"contents":[{}],"tools":{}}"#, "tools"),
            (
                r#"{"contents":[{}],"safetySettings":[{"category":"X","threshold":"BLOCK_NONE"}]}"#,
                "safetySettings[0].category",
            ),
            (
                r#"{"contents":[{}],"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"NO"}]}"#,
                "safetySettings[0].threshold",
            ),
            (
                r#"{"contents":[{}],"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT"}]}"#,
                "safetySettings[0].threshold",
            ),
            (r#"{"contents":[{}],"safetySettings":{}}"#, "safetySettings"),
        ] {
            assert_eq!(glance(body.as_bytes()).unwrap_err().field, field, "{body}");
        }
        let with_model = br#"{"model":"models/x","contents":[{}]}"#;
        assert!(!glance(with_model).unwrap().is_native);
        for (uri, native) in [
            ("https://example.com/a.png", false),
            ("gs://bucket/a.png", true),
            (
                "https://generativelanguage.googleapis.com/v1beta/files/x",
                true,
            ),
        ] {
            let body = format!(
                r#"{{"contents":[{{"parts":[{{"fileData": {{"fileUri" : "{uri}"}}}}]}}]}}"#
            );
            assert_eq!(glance(body.as_bytes()).unwrap().is_native, native, "{uri}");
        }
    }
}
