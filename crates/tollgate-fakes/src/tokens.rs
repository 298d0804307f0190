//! The usage that a fake reports for an exchange. The numbers depend only on the texts, are never zero and differ from each other, so that a mistake
//! in counting or charging is detected.

use serde::Serialize;

/// Token counts of one exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// The complete prompt, including cached and written tokens.
    pub input: u64,
    /// Tokens read from the cache.
    pub cached: u64,
    /// Tokens written to the cache. Anthropic reports 5 for five minutes and 3 for one hour; all for one hour if the request has such a `ttl`. Gemini
    /// does not report them.
    pub written: u64,
    /// The complete output, including reasoning.
    pub output: u64,
    /// Tokens used for thinking; 0 if the model did not think.
    pub reasoning: u64,
}

/// The usage of an exchange: `input` is the last user text (the results, if the last turn contains tool results), `output` the number of bytes of the
/// visible output: texts, and arguments as JSON.
pub fn tokens(input: &str, output: usize, thinks: bool) -> Tokens {
    let input = input.len() as u64;
    let reasoning = if thinks { 5 + input / 16 } else { 0 };
    Tokens {
        input: 60 + input,
        cached: 16 + input / 8,
        written: 8,
        output: 7 + (output as u64).div_ceil(4) + reasoning,
        reasoning,
    }
}
