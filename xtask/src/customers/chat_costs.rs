//! [`ChatCosts`]: the costs of the chats of an account.

/// The costs of the chats of an account, in billionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChatCosts {
    /// The cost of complete responses.
    pub(super) exact: i64,
    /// An upper bound of the cost of responses that were cut off.
    pub(super) max_additional: i64,
}

impl ChatCosts {
    /// Whether `used` of an account equals the possible cost of its tasks and chats.
    pub(super) fn is_possible(&self, used: i64, tasks: i64) -> bool {
        let min = tasks + self.exact;
        (min..=min + self.max_additional).contains(&used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_that_were_cut_off_may_cost_up_to_their_bound() {
        let costs = ChatCosts {
            exact: 10,
            max_additional: 5,
        };
        assert!(costs.is_possible(110, 100) && costs.is_possible(115, 100));
        assert!(!costs.is_possible(109, 100) && !costs.is_possible(116, 100));
    }
}
