//! What a chat request is charged with: prices and counts of tokens, its beginning, its end.

use tollgate_core::{Amount, Millis, money};

use super::Key;
use crate::money::Reservation;

/// Prices are per so many tokens.
const PER: i128 = 1_000_000;

/// Prices per 1,000,000 tokens, frozen when the request comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenPrices {
    /// Of the prompt.
    pub input: Amount,
    /// Of what the provider took out of its cache instead.
    pub cached_input: Amount,
    /// Of what the provider put into its cache.
    pub cache_write: Amount,
    /// Of the answer.
    pub output: Amount,
    /// Of the thinking before the answer.
    pub reasoning: Amount,
}

/// Counts of tokens that do not overlap: `input` is without `cached_input` and `cache_write`, `output` without
/// `reasoning`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUnits {
    /// The prompt.
    pub input: u64,
    /// Taken out of the provider's cache.
    pub cached_input: u64,
    /// Put into the provider's cache.
    pub cache_write: u64,
    /// The answer.
    pub output: u64,
    /// The thinking before the answer.
    pub reasoning: u64,
}

impl TokenPrices {
    /// What `units` cost: Σ price × count ÷ 1,000,000, rounded half up once. None where a price is negative or above
    /// [`money::MAX`], a count is more than a number of the database holds, or the sum is above [`money::MAX`].
    ///
    /// ```
    /// use tollgate_store::{TokenPrices, TokenUnits};
    /// let prices = TokenPrices { input: "1.25".parse().unwrap(), output: "10".parse().unwrap(), ..TokenPrices::default() };
    /// let units = TokenUnits { input: 1_000, output: 3, ..TokenUnits::default() };
    /// assert_eq!(prices.cost(&units).unwrap().to_string(), "0.00128");
    /// ```
    pub fn cost(&self, units: &TokenUnits) -> Option<Amount> {
        let sane = |price: &Amount| !price.is_negative() && *price <= money::MAX;
        let prices = self.list();
        if !prices.iter().all(sane) {
            return None;
        }
        // Five products of at most 10^18 and 2^63: far inside an i128.
        let mut sum = 0;
        for (price, count) in prices.iter().zip(units.list()) {
            sum += i128::from(price.nanos()) * i128::from(i64::try_from(count).ok()?);
        }
        let nanos = i64::try_from((sum + PER / 2) / PER).ok()?;
        Some(Amount::from_nanos(nanos)).filter(|cost| *cost <= money::MAX)
    }

    /// Whether nothing is ever charged at these prices: then a request needs no hold.
    pub fn is_free(&self) -> bool {
        self.list().iter().all(|price| *price == Amount::ZERO)
    }

    /// In the order of the table's columns.
    pub(crate) fn list(&self) -> [Amount; 5] {
        [
            self.input,
            self.cached_input,
            self.cache_write,
            self.output,
            self.reasoning,
        ]
    }

    pub(crate) fn of(list: [Amount; 5]) -> Self {
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

impl TokenUnits {
    /// All tokens together, of every sort.
    pub fn total(&self) -> u64 {
        self.list().into_iter().fold(0, u64::saturating_add)
    }

    /// In the order of the table's columns.
    pub(crate) fn list(&self) -> [u64; 5] {
        [
            self.input,
            self.cached_input,
            self.cache_write,
            self.output,
            self.reasoning,
        ]
    }

    pub(crate) fn of(list: [u64; 5]) -> Self {
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

/// A chat request that begins.
#[derive(Debug, Clone)]
pub struct NewChat {
    /// Made by [`tollgate_core::id::chat_id`]; where nothing is held on disk, at the chat's end
    /// ([`tollgate_core::id::chat_id_at`]), so that rows are written in the order of their ids.
    pub id: String,
    /// Who pays.
    pub user_id: String,
    /// With which key.
    pub key_id: String,
    /// The model as the client wrote it.
    pub model: String,
    /// The client's format: `chat_completions`, `messages`, …
    pub format: &'static str,
    /// Whether the client asked for a stream.
    pub streamed: bool,
    /// The request's id, for logs.
    pub request_id: String,
    /// What it costs.
    pub prices: TokenPrices,
    /// Now.
    pub opened_at: Millis,
}

/// What is set aside for a chat request while it runs.
#[derive(Debug, Clone)]
pub enum Hold {
    /// Nothing: nothing can be overdrawn.
    None,
    /// In memory, for as long as a clone of it lives or until the end is on disk.
    Reserved(Reservation),
    /// On disk, until the request is ended or its node is dead.
    Stored,
}

/// How a chat request ends.
#[derive(Debug, Clone)]
pub struct ChatEnd {
    /// What is charged for; all 0 where it failed.
    pub units: TokenUnits,
    /// The counts are ours, not the provider's.
    pub estimated: bool,
    /// The channel that answered, if one did.
    pub channel: Option<String>,
    /// The provider's id of the model.
    pub upstream_model: Option<String>,
    /// A JSON array of `{channel, outcome, status, error, ms}`; `[]` where one attempt did it.
    pub attempts: String,
    /// `done`, `cut`, `client_gone`, `failed`, … Anything but [`ChatEnd::LOST`].
    pub outcome: &'static str,
    /// Now.
    pub ended_at: Millis,
}

impl ChatEnd {
    /// The outcome that only [`crate::Store::release_dead_chats`] writes.
    pub const LOST: &'static str = "lost";
}

/// What became of a chat request's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatSettled {
    /// Written.
    Done {
        /// What was charged.
        cost: Amount,
    },
    /// This node was thought dead and its hold released meanwhile: nothing is charged.
    Lost,
}

impl Key {
    /// Whether a chat request of it must be held for: it or its user has a limit that could be overdrawn.
    pub fn needs_hold(&self) -> bool {
        self.quota.is_some() || !self.user_unlimited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prices(nanos: [i64; 5]) -> TokenPrices {
        TokenPrices::of(nanos.map(Amount::from_nanos))
    }

    #[test]
    fn a_cost_is_rounded_half_up_once() {
        for (price, units, cost) in [
            ([1, 0, 0, 0, 0], [499_999, 0, 0, 0, 0], 0),
            ([1, 0, 0, 0, 0], [500_000, 0, 0, 0, 0], 1),
            // Each of these alone would round down, and together they are one and a half.
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
            let got = prices(price).cost(&TokenUnits::of(units));
            assert_eq!(got, Some(Amount::from_nanos(cost)), "{price:?} {units:?}");
        }
    }

    #[test]
    fn what_cannot_be_has_no_cost() {
        let max = money::MAX.nanos();
        for (price, units) in [
            ([0, -1, 0, 0, 0], [0; 5]),
            ([max + 1, 0, 0, 0, 0], [0; 5]),
            ([0; 5], [0, 0, 0, 0, 1 << 63]),
            ([max, 0, 0, 0, 0], [1_000_001, 0, 0, 0, 0]),
            ([max; 5], [i64::MAX as u64; 5]),
        ] {
            let got = prices(price).cost(&TokenUnits::of(units));
            assert_eq!(got, None, "{price:?} {units:?}");
        }
        let most = prices([max, 0, 0, 0, 0]).cost(&TokenUnits::of([1_000_000, 0, 0, 0, 0]));
        assert_eq!(most, Some(money::MAX));
    }

    proptest! {
        #[test]
        fn more_tokens_never_cost_less(
            price in prop::array::uniform5(0..1_000_000_000_000i64),
            units in prop::array::uniform5(0..1_000_000u64),
            more in prop::array::uniform5(0..1_000u64),
        ) {
            let prices = prices(price);
            let few = prices.cost(&TokenUnits::of(units)).unwrap();
            let sums = std::array::from_fn(|i| units[i] + more[i]);
            prop_assert!(few <= prices.cost(&TokenUnits::of(sums)).unwrap());
            let product = |i: usize| i128::from(price[i]) * i128::from(units[i]);
            let exact: i128 = (0..5).map(product).sum();
            let off = i128::from(few.nanos()) * PER - exact;
            prop_assert!(off > -PER / 2 && off <= PER / 2, "half up, and never further off");
        }
    }
}
