//! [`ChatCosts`]: what the chats of a customer cost.

/// What the chats of an account cost, in billionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChatCosts {
    /// The cost of complete responses.
    pub(super) known: i64,
    /// An upper bound of the cost of responses that were cut off.
    pub(super) at_most_more: i64,
}

impl ChatCosts {
    /// Whether `used` of an account equals the possible cost of its tasks and chats.
    pub(super) fn allows(&self, used: i64, tasks: i64) -> bool {
        let min = tasks + self.known;
        (min..=min + self.at_most_more).contains(&used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_that_were_cut_off_may_cost_up_to_their_bound() {
        let costs = ChatCosts {
            known: 10,
            at_most_more: 5,
        };
        assert!(costs.allows(110, 100) && costs.allows(115, 100));
        assert!(!costs.allows(109, 100) && !costs.allows(116, 100));
    }
}
