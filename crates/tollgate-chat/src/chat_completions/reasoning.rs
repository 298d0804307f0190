//! Reads reasoning of earlier turns and of responses, in the spellings of vendors and gateways.

use serde_json::{Map, Value};

use super::json_fields::{expect_string, take_field};
use crate::hub::{Opaque, Part, PartKind};

/// Takes the reasoning out of a message: `thinking_blocks` (with signatures), `reasoning_content` or `reasoning`.
pub(super) fn take_reasoning_parts(map: &mut Map<String, Value>) -> Vec<Part> {
    let blocks = match take_field(map, "thinking_blocks") {
        Some(Value::Array(blocks)) => blocks.iter().filter_map(read_thinking_block).collect(),
        _ => Vec::new(),
    };
    let text_of = |map: &mut Map<String, Value>, name: &str| {
        map.get(name)
            .is_none_or(|value| value.is_string() || value.is_null())
            .then(|| take_field(map, name))
            .flatten()
            .and_then(|value| expect_string(value, name).ok())
    };
    let (first, second) = (text_of(map, "reasoning_content"), text_of(map, "reasoning"));
    if !blocks.is_empty() {
        return blocks;
    }
    let text = first.or(second).filter(|text| !text.is_empty());
    text.into_iter()
        .map(|text| reasoning_part(text, None))
        .collect()
}

fn reasoning_part(text: String, signature: Option<Opaque>) -> Part {
    Part::new(PartKind::Reasoning {
        text,
        signature,
        id: None,
        summary: false,
    })
}

fn read_thinking_block(block: &Value) -> Option<Part> {
    const VENDOR: &str = "anthropic";
    let field = |name: &str| block[name].as_str();
    match field("type")? {
        "thinking" => {
            let signature = field("signature").filter(|text| !text.is_empty());
            let signature = signature.map(|text| Opaque::from_portable(text, VENDOR));
            Some(reasoning_part(field("thinking")?.to_owned(), signature))
        }
        "redacted_thinking" => {
            let data = Opaque::from_portable(field("data")?, VENDOR);
            Some(Part::new(PartKind::RedactedReasoning(data)))
        }
        _ => None,
    }
}
