//! The usage APIs of OpenAI and Anthropic: the billed tokens, by model and day. Each page contains one day.
//! <https://platform.openai.com/docs/api-reference/usage/completions>
//! <https://docs.anthropic.com/en/api/admin-api/usage-cost/get-messages-usage-report>

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::clock;
use crate::rejection::{OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::shared::Shared;
use crate::tokens::Tokens;

const OPENAI: &str = "/organization/usage/completions";
const ANTHROPIC: &str = "/v1/organizations/usage_report/messages";
const SECONDS_OF_DAY: i64 = 86_400;

/// The response to a request to a usage API. `None` if it is another request.
pub(crate) fn report_usage(
    shared: &Shared,
    request: &ReceivedRequest,
) -> Option<OrRejected<Value>> {
    let is_openai = request.path.ends_with(OPENAI);
    if !is_openai && !request.path.ends_with(ANTHROPIC) {
        return None;
    }
    let (header, prefix) = match is_openai {
        true => ("authorization", "Bearer sk-admin-"),
        false => ("x-api-key", "sk-ant-admin"),
    };
    if !request
        .header(header)
        .is_some_and(|key| key.starts_with(prefix))
    {
        let message = "this API needs an admin key";
        let rejection = Rejection::new(401, "authentication_error", "admin-key", message);
        return Some(Err(Box::new(rejection)));
    }
    let from = parameter(
        request,
        if is_openai {
            "start_time"
        } else {
            "starting_at"
        },
    );
    let until = parameter(request, if is_openai { "end_time" } else { "ending_at" });
    let (Some(from), Some(until), "1d") = (
        from.and_then(|text| day(&text)),
        until.and_then(|text| day(&text)),
        parameter(request, "bucket_width")
            .unwrap_or_default()
            .as_str(),
    ) else {
        let message = "a period of days is needed";
        let rejection = Rejection::new(400, "invalid_request_error", "period", message);
        return Some(Err(Box::new(rejection)));
    };
    let skipped = parameter(request, "page").and_then(|page| page.parse::<i64>().ok());
    let day = from + skipped.unwrap_or(0);
    let today = clock::milliseconds(SystemTime::now()) as i64 / 1_000 / SECONDS_OF_DAY;
    let billed = match day == today {
        true => billed_by_model(shared),
        false => BTreeMap::new(),
    };
    let has_more = day + 1 < until;
    let next_page = has_more.then(|| (day + 1 - from).to_string());
    let results = billed.iter().map(|(model, (requests, tokens, hourly))| match is_openai {
        true => json!({
            "object": "organization.usage.completions.result", "model": model, "num_model_requests": requests,
            "input_tokens": tokens.input, "input_cached_tokens": tokens.cached, "output_tokens": tokens.output,
            "input_audio_tokens": 0, "output_audio_tokens": 0, "project_id": null,
        }),
        false => json!({
            "model": model, "uncached_input_tokens": tokens.input - tokens.cached - tokens.written,
            "cache_read_input_tokens": tokens.cached, "output_tokens": tokens.output,
            "cache_creation": {"ephemeral_1h_input_tokens": hourly, "ephemeral_5m_input_tokens": tokens.written - hourly},
        }),
    });
    let results: Vec<Value> = results.collect();
    let start = day * SECONDS_OF_DAY;
    let bucket = match is_openai {
        true => {
            json!({"object": "bucket", "start_time": start, "end_time": start + SECONDS_OF_DAY, "results": results})
        }
        false => {
            json!({"starting_at": timestamp(start), "ending_at": timestamp(start + SECONDS_OF_DAY), "results": results})
        }
    };
    Some(Ok(
        json!({"object": "page", "data": [bucket], "has_more": has_more, "next_page": next_page}),
    ))
}

/// By model: the number of requests, their tokens, and how many of the written ones are kept for one hour.
fn billed_by_model(shared: &Shared) -> BTreeMap<String, (u64, Tokens, u64)> {
    let mut billed = BTreeMap::new();
    for (request, tokens) in shared.bills() {
        let Some(model) = request.body["model"].as_str() else {
            continue;
        };
        let (requests, sum, hourly): &mut (u64, Tokens, u64) =
            billed.entry(model.to_owned()).or_default();
        *requests += 1;
        *hourly += written_for_one_hour(&request, tokens.written);
        sum.input += tokens.input;
        sum.cached += tokens.cached;
        sum.written += tokens.written;
        sum.output += tokens.output;
        sum.reasoning += tokens.reasoning;
    }
    billed
}

/// How many of the `written` tokens are kept for one hour, as in the usage of a response (`providers/anthropic.toml`).
fn written_for_one_hour(request: &ReceivedRequest, written: u64) -> u64 {
    match request.body.to_string().contains(r#""ttl":"1h""#) {
        true => written,
        false => written.min(3),
    }
}

/// A parameter of the query, with `%3A` decoded.
fn parameter(request: &ReceivedRequest, name: &str) -> Option<String> {
    let mut pairs = request
        .query
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    let value = pairs.find(|(known, _)| *known == name)?.1;
    Some(value.replace("%3A", ":"))
}

/// The number of days from 1970 to a time, which is given in seconds or as RFC 3339. `None` if it is neither.
fn day(text: &str) -> Option<i64> {
    let seconds = match text.parse::<i64>() {
        Ok(seconds) => seconds,
        Err(_) => text.parse::<jiff::Timestamp>().ok()?.as_second(),
    };
    Some(seconds.div_euclid(SECONDS_OF_DAY))
}

fn timestamp(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds);
    time.map_or_else(|_| String::new(), |time| time.to_string())
}
