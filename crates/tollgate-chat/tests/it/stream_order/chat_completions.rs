//! Chat completions: the role first and once, calls without gaps, a finish reason for every choice, then usage, then `[DONE]`.

use serde_json::Value;

#[derive(Default)]
struct Choice {
    index: u64,
    has_role: bool,
    calls: usize,
    is_finished: bool,
}

pub(crate) fn check(stream: &[u8], include_usage: bool, failed: bool) {
    let text = std::str::from_utf8(stream).unwrap();
    let events = text
        .split_terminator("\n\n")
        .filter(|event| !event.starts_with(": "));
    let mut events: Vec<&str> = events
        .map(|event| event.strip_prefix("data: ").expect(event))
        .collect();
    assert!(text.ends_with("\n\n"), "{text:?}");
    let last = events.pop().unwrap();
    if failed {
        let error: Value = serde_json::from_str(last).unwrap();
        assert!(error["error"]["message"].is_string(), "{last}");
    } else {
        assert_eq!(last, "[DONE]");
    }
    let chunks: Vec<Value> = events
        .iter()
        .map(|event| serde_json::from_str(event).expect(event))
        .collect();
    let (mut choices, mut has_usage) = (Vec::new(), false);
    for chunk in &chunks {
        assert!(!has_usage, "usage is last");
        assert_eq!(
            (&chunk["id"], &chunk["created"]),
            (&chunks[0]["id"], &chunks[0]["created"])
        );
        assert_eq!(chunk["object"], "chat.completion.chunk");
        match chunk["choices"]
            .as_array()
            .expect("choices are a list")
            .first()
        {
            Some(choice) => {
                assert!(chunk["usage"].is_null());
                assert_eq!(
                    chunk.get("usage").is_some(),
                    include_usage,
                    "a null in every chunk if usage follows"
                );
                check_choice(choice, &mut choices);
            }
            None => {
                assert!(include_usage && chunk["usage"].is_object());
                has_usage = true;
            }
        }
    }
    if !failed {
        assert_eq!(has_usage, include_usage && has_usage);
        assert!(
            !choices.is_empty() && choices.iter().all(|choice| choice.is_finished),
            "every choice is finished"
        );
    }
}

fn check_choice(choice: &Value, choices: &mut Vec<Choice>) {
    let index = choice["index"].as_u64().unwrap();
    if !choices.iter().any(|known| known.index == index) {
        choices.push(Choice {
            index,
            ..Choice::default()
        });
    }
    let known = choices
        .iter_mut()
        .find(|known| known.index == index)
        .unwrap();
    assert!(!known.is_finished, "nothing of a choice after its finish");
    let delta = choice["delta"].as_object().expect("a delta is an object");
    assert_eq!(
        delta.contains_key("role"),
        !known.has_role,
        "the role comes first and once"
    );
    known.has_role = true;
    for call in delta
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
        assert!(at <= known.calls, "calls have no gaps");
        let is_first = at == known.calls;
        let inner = call.get("function").or(call.get("custom")).unwrap();
        assert_eq!(
            call.get("id").is_some_and(|id| id != ""),
            is_first,
            "an id once"
        );
        assert_eq!(inner.get("name").is_some(), is_first, "a name once");
        assert!(
            inner
                .get("arguments")
                .or(inner.get("input"))
                .is_some_and(Value::is_string)
        );
        known.calls += usize::from(is_first);
    }
    known.is_finished = choice["finish_reason"].is_string();
}
