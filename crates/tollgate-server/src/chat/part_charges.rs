//! Parts of a chat that are charged separately from plain tokens: cache writes of an hour, audio, images, calls of the provider's tools.

use tollgate_chat::hub::Usage;
use tollgate_config::PartPrices;
use tollgate_core::Amount;
use tollgate_store::{ChatPart, TokenCounts, TokenPrices};

/// The number of calls of each of the provider's tools that is held.
const HELD_CALLS: u64 = 10;
/// The maximum number of calls of one tool that is plausible for one request.
const MAX_CALLS: u64 = 1_000;
/// The number of tokens in a price per million.
const PER_MILLION: u64 = 1_000_000;

/// Removes the parts that have a separate price from `counts`, which are the tokens of `usage`, and returns them.
pub fn split_parts(counts: &mut TokenCounts, usage: &Usage, prices: &PartPrices) -> Vec<ChatPart> {
    let mut parts = Vec::new();
    let mut take = |name, price: Option<Amount>, count: &mut u64, tokens: u64| {
        let units = tokens.min(*count);
        if let Some(price) = price.filter(|_| units > 0) {
            *count -= units;
            let units_per_price = PER_MILLION;
            parts.push(ChatPart {
                name,
                units,
                price,
                units_per_price,
            });
        }
    };
    take(
        "cache_write_1h",
        prices.cache_write_1h,
        &mut counts.cache_write,
        usage.cache_write_1h,
    );
    take(
        "audio_input",
        prices.audio_input,
        &mut counts.input,
        usage.input_audio,
    );
    take(
        "image_input",
        prices.image_input,
        &mut counts.input,
        usage.input_image,
    );
    take(
        "audio_output",
        prices.audio_output,
        &mut counts.output,
        usage.output_audio,
    );
    take(
        "image_output",
        prices.image_output,
        &mut counts.output,
        usage.output_image,
    );
    for (name, price, calls) in [
        ("web_search", prices.web_search, usage.web_searches),
        ("web_fetch", prices.web_fetch, usage.web_fetches),
    ] {
        let units = calls.min(MAX_CALLS);
        if let Some(price) = price.filter(|_| units > 0) {
            parts.push(ChatPart {
                name,
                units,
                price,
                units_per_price: 1,
            });
        }
    }
    parts
}

/// Assigns the visible output of an estimated usage to the part with the highest price, because it is not known what of it is audio or images.
pub fn estimate_parts(usage: &mut Usage, tokens: &TokenPrices, prices: &PartPrices) {
    let visible = usage.output.saturating_sub(usage.reasoning);
    let (audio, image) = (
        prices.audio_output.unwrap_or_default(),
        prices.image_output.unwrap_or_default(),
    );
    if audio >= image && audio > tokens.output {
        usage.output_audio = visible;
    } else if image > tokens.output {
        usage.output_image = visible;
    }
}

/// The amount that is held for parts, in addition to the cost of `held`, the held tokens: the highest price that may apply to them, and ten calls of
/// each tool with a price if `has_tools`. `None` if it is out of range.
pub fn held_parts(
    held: &TokenCounts,
    tokens: &TokenPrices,
    prices: &PartPrices,
    has_tools: bool,
) -> Option<Amount> {
    let beyond = |units: u64, plain: Amount, parts: &[Option<Amount>]| {
        let highest = parts.iter().flatten().copied().max().unwrap_or_default();
        let price = Amount::from_nanos(highest.nanos().saturating_sub(plain.nanos()).max(0));
        ChatPart {
            name: "",
            units,
            price,
            units_per_price: PER_MILLION,
        }
        .cost()
    };
    let (input, output) = (held.input + held.cache_write, held.output + held.reasoning);
    let plain_input = tokens.input.max(tokens.cache_write);
    let plain_output = tokens.output.max(tokens.reasoning);
    let mut total = beyond(
        input,
        plain_input,
        &[
            prices.cache_write_1h,
            prices.audio_input,
            prices.image_input,
        ],
    )?
    .nanos();
    let output_amount = beyond(
        output,
        plain_output,
        &[prices.audio_output, prices.image_output],
    )?;
    total = total.checked_add(output_amount.nanos())?;
    for price in [prices.web_search, prices.web_fetch]
        .into_iter()
        .flatten()
        .filter(|_| has_tools)
    {
        let calls = ChatPart {
            name: "",
            units: HELD_CALLS,
            price,
            units_per_price: 1,
        }
        .cost()?;
        total = total.checked_add(calls.nanos())?;
    }
    Some(Amount::from_nanos(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> PartPrices {
        PartPrices {
            cache_write_1h: Some(Amount::from_nanos(6_000_000)),
            audio_output: Some(Amount::from_nanos(80_000_000)),
            web_search: Some(Amount::from_nanos(7)),
            ..PartPrices::default()
        }
    }

    #[test]
    fn parts_are_taken_out_of_the_tokens_once() {
        let usage = Usage {
            cache_write_1h: 70,
            output_audio: 30,
            input_audio: 5,
            web_searches: 2,
            ..Usage::default()
        };
        let mut counts = TokenCounts {
            input: 10,
            cache_write: 50,
            output: 40,
            ..TokenCounts::default()
        };
        let parts = split_parts(&mut counts, &usage, &prices());
        let named: Vec<_> = parts.iter().map(|part| (part.name, part.units)).collect();
        // Tokens beyond those that were written are not charged; audio in the prompt has no separate price.
        assert_eq!(
            named,
            [
                ("cache_write_1h", 50),
                ("audio_output", 30),
                ("web_search", 2)
            ]
        );
        assert_eq!(
            (counts.input, counts.cache_write, counts.output),
            (10, 0, 10)
        );
        assert!(split_parts(&mut counts, &usage, &PartPrices::default()).is_empty());
    }

    #[test]
    fn a_hold_covers_the_dearest_part() {
        let tokens = TokenPrices {
            input: Amount::from_nanos(1_000_000),
            output: Amount::from_nanos(20_000_000),
            ..TokenPrices::default()
        };
        let held = TokenCounts {
            input: 1_000,
            output: 100,
            ..TokenCounts::default()
        };
        // 1,000 × (6 − 1) + 100 × (80 − 20) billionths, and ten searches.
        let amount = held_parts(&held, &tokens, &prices(), true);
        assert_eq!(amount, Some(Amount::from_nanos(5_000 + 6_000 + 70)));
        let amount = held_parts(&held, &tokens, &PartPrices::default(), true);
        assert_eq!(amount, Some(Amount::ZERO));
    }
}
