//! generateContent: each object has a candidate with parts that are not empty; finish reasons and usage are on the last one only.

use serde_json::Value;

/// The objects of a stream, parsed as strictly as the strictest SDK does: a line is `data: ` and
/// JSON, or empty.
fn objects_of(stream: &[u8], json_array: bool) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    if json_array {
        return serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    assert!(text.ends_with("\n\n"), "{text:?}");
    let lines = text.split('\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line.strip_prefix("data: ").expect(line)).unwrap())
        .collect()
}

pub(crate) fn check(stream: &[u8], json_array: bool, failed: bool) {
    let objects = objects_of(stream, json_array);
    let (last, before) = objects.split_last().unwrap();
    for object in before {
        assert!(
            object.get("error").is_none() && object.get("usageMetadata").is_none(),
            "{object}"
        );
        let candidate = &object["candidates"][0];
        assert!(candidate.get("finishReason").is_none(), "{object}");
        assert_parts(candidate);
        assert_eq!(
            (&object["modelVersion"], &object["responseId"]),
            (&objects[0]["modelVersion"], &objects[0]["responseId"])
        );
    }
    if failed {
        let error = &last["error"];
        assert!(
            error["code"].is_u64() && error["message"].is_string() && error["status"].is_string(),
            "{last}"
        );
        return;
    }
    let usage = &last["usageMetadata"];
    let sum = [
        "promptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
    ]
    .iter()
    .map(|name| usage[name].as_u64().unwrap());
    assert_eq!(sum.sum::<u64>(), usage["totalTokenCount"].as_u64().unwrap());
    match last.get("candidates") {
        None => assert!(
            before.is_empty() && last["promptFeedback"]["blockReason"].is_string(),
            "{last}"
        ),
        Some(candidates) => {
            for candidate in candidates.as_array().unwrap() {
                assert!(candidate["finishReason"].is_string(), "{last}");
                assert_parts(candidate);
            }
        }
    }
}

fn assert_parts(candidate: &Value) {
    assert_eq!(candidate["content"]["role"], "model");
    let parts = candidate["content"]["parts"].as_array().unwrap();
    assert!(!parts.is_empty());
    assert!(
        parts
            .iter()
            .all(|part| part.as_object().is_some_and(|part| !part.is_empty())),
        "{candidate}"
    );
    for call in parts.iter().filter_map(|part| part.get("functionCall")) {
        assert!(
            call["args"].is_object() && call["name"].is_string(),
            "{candidate}"
        );
    }
}
