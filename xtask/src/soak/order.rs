//! What customers order, and what each order must come to.

use serde_json::{Value, json};

use super::site::{GPT_HIGH_PRICE, GPT_PRICE, GROK_PRICE};
use crate::dice::Dice;

/// How an order ends when nobody cancels it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// So many pictures.
    Pictures(u64),
    /// Nothing, for nothing.
    Failure,
}

/// One submission.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) body: Value,
    /// Per picture, in billionths.
    pub(super) price: i64,
    pub(super) ending: Ending,
    /// Width and height, where the documents say them.
    pub(super) size: Option<(u32, u32)>,
    /// Most orders carry one.
    pub(super) idempotency_key: Option<String>,
}

impl Order {
    /// Any order. `name` is unique; `uploads` are links to pictures uploaded before.
    pub(super) fn any(dice: &mut Dice, name: &str, uploads: &[String]) -> Self {
        let n = 1 + dice.below(3);
        let (directive, ending) = directive(dice, n);
        let prompt = format!("order {name} {directive}");
        let idempotency_key = (!dice.once_in(7)).then(|| format!("soak-{name}"));
        if dice.once_in(2) {
            let size = *dice.pick(&["1:1", "16:9", "2:3"]);
            return Self {
                body: json!({"model": "grok-imagine-1.0-partner", "prompt": prompt, "size": size, "n": n}),
                price: GROK_PRICE,
                ending,
                size: None,
                idempotency_key,
            };
        }
        let (size, pixels) = *dice.pick(&[
            ("1:1", (1024, 1024)),
            ("3:2", (1536, 1024)),
            ("2:3", (1024, 1536)),
        ]);
        let mut body =
            json!({"model": "gpt-image-1-official", "prompt": prompt, "size": size, "n": n});
        let high = dice.once_in(4);
        if high {
            body["quality"] = json!("high");
        }
        if dice.once_in(3) {
            body["output_format"] = json!("jpeg");
        }
        if !uploads.is_empty() && dice.once_in(4) {
            body["image_urls"] = json!([dice.pick(uploads)]);
        }
        Self {
            body,
            price: if high { GPT_HIGH_PRICE } else { GPT_PRICE },
            ending,
            size: Some(pixels),
            idempotency_key,
        }
    }
}

/// A sandbox directive and how a task for `n` pictures ends under it.
fn directive(dice: &mut Dice, n: u64) -> (String, Ending) {
    match dice.below(10) {
        0 => ("[[sandbox:fail]]".to_owned(), Ending::Failure),
        1 => ("[[sandbox:fail=1]]".to_owned(), Ending::Pictures(n)),
        2 | 3 => {
            let k = dice.below(n + 1);
            let ending = if k == 0 {
                Ending::Failure
            } else {
                Ending::Pictures(k)
            };
            (format!("[[sandbox:partial={k}]]"), ending)
        }
        4 | 5 => {
            let ms = dice.below(1500);
            (format!("[[sandbox:delay={ms}]]"), Ending::Pictures(n))
        }
        _ => (String::new(), Ending::Pictures(n)),
    }
}
