//! Prices per million tokens, token counts, and the cost of a chat request.

use tollgate_core::{Amount, money};

/// The number of tokens that a price is for.
const PER: i128 = 1_000_000;

/// Prices per 1,000,000 tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenPrices {
    /// Prompt tokens.
    pub input: Amount,
    /// Prompt tokens that the provider read from its cache.
    pub cached_input: Amount,
    /// Prompt tokens that the provider wrote to its cache.
    pub cache_write: Amount,
    /// Output tokens.
    pub output: Amount,
    /// Reasoning tokens.
    pub reasoning: Amount,
}

/// Disjoint token counts: `input` excludes `cached_input` and `cache_write`, `output` excludes `reasoning`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCounts {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached_input: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: u64,
    /// Output tokens without reasoning.
    pub output: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
}

impl TokenPrices {
    /// The cost of `tokens`: Σ price × count ÷ 1,000,000, rounded half up once. `None` if a price is negative or above
    /// [`money::MAX`], a count is above `i64::MAX`, or the cost is above [`money::MAX`].
    ///
    /// ```
    /// use tollgate_store::{TokenPrices, TokenCounts};
    /// let prices = TokenPrices { input: "1.25".parse().unwrap(), output: "10".parse().unwrap(), ..TokenPrices::default() };
    /// let tokens = TokenCounts { input: 1_000, output: 3, ..TokenCounts::default() };
    /// assert_eq!(prices.cost(&tokens).unwrap().to_string(), "0.00128");
    /// ```
    pub fn cost(&self, tokens: &TokenCounts) -> Option<Amount> {
        let in_range = |price: &Amount| !price.is_negative() && *price <= money::MAX;
        let prices = self.to_columns();
        if !prices.iter().all(in_range) {
            return None;
        }
        // Five products of at most 10^18 and 2^63 fit an i128.
        let mut sum = 0;
        for (price, count) in prices.iter().zip(tokens.to_columns()) {
            sum += i128::from(price.nanos()) * i128::from(i64::try_from(count).ok()?);
        }
        let nanos = i64::try_from((sum + PER / 2) / PER).ok()?;
        Some(Amount::from_nanos(nanos)).filter(|cost| *cost <= money::MAX)
    }

    /// Whether all prices are 0, so that a request needs no hold.
    pub fn is_free(&self) -> bool {
        self.to_columns().iter().all(|price| *price == Amount::ZERO)
    }

    /// The prices in the order of the columns of `chats`.
    pub(crate) fn to_columns(self) -> [Amount; 5] {
        [
            self.input,
            self.cached_input,
            self.cache_write,
            self.output,
            self.reasoning,
        ]
    }

    pub(crate) fn from_columns(list: [Amount; 5]) -> Self {
        let [input, cached_input, cache_write, output, reasoning] = list;
        Self {
            input,
            cached_input,
            cache_write,
            output,
            reasoning,
        }
    }
}

impl TokenCounts {
    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.to_columns().into_iter().fold(0, u64::saturating_add)
    }

    /// The counts in the order of the columns of `chats`.
    pub(crate) fn to_columns(self) -> [u64; 5] {
        [
            self.input,
            self.cached_input,
            self.cache_write,
            self.output,
            self.reasoning,
        ]
    }

    pub(crate) fn from_columns(list: [u64; 5]) -> Self {
        let [input, cached_input, cache_write, output, reasoning] = list;
        Self {
            input,
            cached_input,
            cache_write,
            output,
            reasoning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prices(nanos: [i64; 5]) -> TokenPrices {
        TokenPrices::from_columns(nanos.map(Amount::from_nanos))
    }

    #[test]
    fn a_cost_is_rounded_half_up_once() {
        for (price, units, cost) in [
            ([1, 0, 0, 0, 0], [499_999, 0, 0, 0, 0], 0),
            ([1, 0, 0, 0, 0], [500_000, 0, 0, 0, 0], 1),
            // Each of these costs alone would be rounded down; together they are 1.5.
            ([1, 1, 1, 1, 1], [300_000; 5], 2),
            (
                [1, 1, 1, 1, 1],
                [299_999, 300_000, 300_000, 300_000, 300_000],
                1,
            ),
            ([5_000_000_000, 0, 0, 0, 0], [1, 0, 0, 0, 0], 5_000),
            ([1, 20, 300, 4_000, 50_000], [1_000_000; 5], 54_321),
            ([1, 20, 300, 4_000, 50_000], [0, 0, 0, 0, 1_000_000], 50_000),
            ([0; 5], [i64::MAX as u64; 5], 0),
        ] {
            let got = prices(price).cost(&TokenCounts::from_columns(units));
            assert_eq!(got, Some(Amount::from_nanos(cost)), "{price:?} {units:?}");
        }
    }

    #[test]
    fn a_price_count_or_cost_out_of_range_has_no_cost() {
        let max = money::MAX.nanos();
        for (price, units) in [
            ([0, -1, 0, 0, 0], [0; 5]),
            ([max + 1, 0, 0, 0, 0], [0; 5]),
            ([0; 5], [0, 0, 0, 0, 1 << 63]),
            ([max, 0, 0, 0, 0], [1_000_001, 0, 0, 0, 0]),
            ([max; 5], [i64::MAX as u64; 5]),
        ] {
            let got = prices(price).cost(&TokenCounts::from_columns(units));
            assert_eq!(got, None, "{price:?} {units:?}");
        }
        let max_cost =
            prices([max, 0, 0, 0, 0]).cost(&TokenCounts::from_columns([1_000_000, 0, 0, 0, 0]));
        assert_eq!(max_cost, Some(money::MAX));
    }

    proptest! {
        #[test]
        fn more_tokens_never_cost_less(
            price in prop::array::uniform5(0..1_000_000_000_000i64),
            units in prop::array::uniform5(0..1_000_000u64),
            more in prop::array::uniform5(0..1_000u64),
        ) {
            let prices = prices(price);
            let few = prices.cost(&TokenCounts::from_columns(units)).unwrap();
            let sums = std::array::from_fn(|i| units[i] + more[i]);
            prop_assert!(few <= prices.cost(&TokenCounts::from_columns(sums)).unwrap());
            let product = |i: usize| i128::from(price[i]) * i128::from(units[i]);
            let exact: i128 = (0..5).map(product).sum();
            let error = i128::from(few.nanos()) * PER - exact;
            prop_assert!(error > -PER / 2 && error <= PER / 2, "rounded half up");
        }
    }
}
