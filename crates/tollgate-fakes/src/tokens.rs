//! What a fake says that an exchange used. The numbers depend on the texts alone, are never zero
//! and differ from each other, so that a mistake in counting or charging shows.

/// Counts of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Of the 8 tokens written to the cache, those that are kept for one hour.
pub(crate) const WRITTEN_1H: u64 = 3;

/// What an answer costs: `asked` is the last user text (the results, if the last turn holds tool
/// results), `answered` the bytes of the visible answer: texts, and arguments as JSON.
pub fn tokens(asked: &str, answered: usize, thought: bool) -> Tokens {
    let asked = asked.len() as u64;
    let reasoning = if thought { 5 + asked / 16 } else { 0 };
    Tokens {
        input: 60 + asked,
        cached: 16 + asked / 8,
        written: 8,
        output: 7 + (answered as u64).div_ceil(4) + reasoning,
        reasoning,
    }
}
