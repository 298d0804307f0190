//! The submissions of customers, and their expected outcomes.

use serde_json::{Value, json};

use super::accounts::{GPT_HIGH_PRICE, GPT_PRICE, GROK_PRICE};
use crate::rng::Rng;

/// The outcome of a submission that is not cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedOutcome {
    /// Completed with this number of images.
    Images(u64),
    /// Failed, free of charge.
    Failure,
}

/// One submission.
#[derive(Debug, Clone)]
pub(super) struct Submission {
    pub(super) body: Value,
    /// The price per image, in billionths.
    pub(super) price: i64,
    pub(super) expected: ExpectedOutcome,
    /// Width and height, if the documentation specifies them; otherwise `None`.
    pub(super) size: Option<(u32, u32)>,
    /// Whether a misbehaving provider receives it first: if so, it may also fail, free of charge, or succeed with fewer images.
    pub(super) on_failing_provider: bool,
    /// The idempotency key; most submissions have one.
    pub(super) idempotency_key: Option<String>,
}

impl Submission {
    /// A random submission. `name` is unique; `uploads` are links to images uploaded before; `failing_provider`: whether there is a misbehaving provider.
    pub(super) fn random(
        rng: &mut Rng,
        name: &str,
        uploads: &[String],
        failing_provider: bool,
    ) -> Self {
        let n = 1 + rng.below(3);
        let (directive, expected) = random_directive(rng, n);
        let prompt = format!("submission {name} {directive}");
        let idempotency_key = (!rng.one_in(7)).then(|| format!("customer-{name}"));
        if rng.one_in(2) {
            let size = *rng.pick(&["1:1", "16:9", "2:3"]);
            return Self {
                body: json!({"model": "grok-imagine-1.0-partner", "prompt": prompt, "size": size, "n": n}),
                price: GROK_PRICE,
                expected,
                size: None,
                on_failing_provider: false,
                idempotency_key,
            };
        }
        let (size, pixels) = *rng.pick(&[
            ("1:1", (1024, 1024)),
            ("3:2", (1536, 1024)),
            ("2:3", (1024, 1536)),
        ]);
        let mut body =
            json!({"model": "gpt-image-1-official", "prompt": prompt, "size": size, "n": n});
        let high = rng.one_in(4);
        if high {
            body["quality"] = json!("high");
        }
        if rng.one_in(3) {
            body["output_format"] = json!("jpeg");
        }
        if !uploads.is_empty() && rng.one_in(4) {
            body["image_urls"] = json!([rng.pick(uploads)]);
        }
        Self {
            body,
            price: if high { GPT_HIGH_PRICE } else { GPT_PRICE },
            expected,
            size: Some(pixels),
            on_failing_provider: failing_provider,
            idempotency_key,
        }
    }
}

/// A sandbox directive, and the outcome of a task for `n` images with it.
fn random_directive(rng: &mut Rng, n: u64) -> (String, ExpectedOutcome) {
    match rng.below(10) {
        0 => ("[[sandbox:fail]]".to_owned(), ExpectedOutcome::Failure),
        1 => ("[[sandbox:fail=1]]".to_owned(), ExpectedOutcome::Images(n)),
        2 | 3 => {
            let k = rng.below(n + 1);
            let expected = if k == 0 {
                ExpectedOutcome::Failure
            } else {
                ExpectedOutcome::Images(k)
            };
            (format!("[[sandbox:partial={k}]]"), expected)
        }
        4 | 5 => {
            let ms = rng.below(1500);
            (
                format!("[[sandbox:delay={ms}]]"),
                ExpectedOutcome::Images(n),
            )
        }
        _ => (String::new(), ExpectedOutcome::Images(n)),
    }
}
