//! What a fake says that an exchange used. The numbers depend on the texts alone, are never zero
//! and differ from each other, so that a mistake in counting or charging shows.

use serde::Serialize;

/// Counts of one exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// The whole prompt: cached and written tokens are part of it.
    pub input: u64,
    /// Read from the cache.
    pub cached: u64,
    /// Written to the cache, for Anthropic: 5 for five minutes, 3 for one hour. Gemini does not say.
    pub written: u64,
    /// The whole answer: reasoning is part of it.
    pub output: u64,
    /// Spent on thinking; 0 if the model did not think.
    pub reasoning: u64,
}

/// The usage of an exchange: `input` is the last user text (the results, if the last turn holds tool
/// results), `output` the bytes of the visible output: texts, and arguments as JSON.
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
