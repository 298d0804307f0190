//! The layout of blocks: their lists, and the numbers by which rows are divided into blocks and groups.

use tollgate_core::{Millis, id};

/// Rows in a block.
pub(super) const BLOCK_ROWS: usize = 1024;
/// The number of blocks that share rows of `list_values`: one bit for each block in two numbers.
pub(super) const GROUP_BLOCKS: i64 = 120;
pub(super) const HALF_GROUP: i64 = GROUP_BLOCKS / 2;
/// The lower bits of the version count added blocks; the bits from this one on count removals of blocks.
pub(super) const REMOVALS_SHIFT: u32 = 32;

/// A list whose rows are divided into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Chats,
    Tasks,
}

impl List {
    /// The name in the tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chats => "chats",
            Self::Tasks => "tasks",
        }
    }

    /// The smallest id that a row of that time can have.
    pub(super) fn min_id_at(self, at: Millis) -> String {
        match self {
            Self::Chats => id::min_chat_id_at(at),
            Self::Tasks => id::min_task_id_at(at),
        }
    }

    /// The formats or kinds that have separate bits in the column `kinds`.
    fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Chats => &[
                "chat-completions",
                "messages",
                "generate-content",
                "responses",
            ],
            Self::Tasks => &["image", "video", "speech"],
        }
    }

    /// The bit of a format or kind; all formats or kinds without a separate bit share one.
    pub(super) fn kind_bit(self, kind: &str) -> i64 {
        let known = self.kinds().iter().position(|known| *known == kind);
        1 << known.unwrap_or(self.kinds().len())
    }

    /// All values of the column `kinds` with one of these bits, as the text of a PostgreSQL array.
    pub(super) fn postgres_kinds(self, bits: i64) -> String {
        let all = 1_i64 << (self.kinds().len() + 1);
        let values = (1..all).filter(|value| value & bits != 0);
        let values: Vec<_> = values.map(|value| value.to_string()).collect();
        format!("{{{}}}", values.join(","))
    }
}

/// The smallest id after this one.
pub(super) fn id_after(id: &str) -> String {
    // Ids contain no control characters.
    format!("{id}\u{1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_after_is_the_smallest_later_id() {
        for later in ["chat_a0", "chat_a-", "chat_a ", "chat_b", "chat_b0"] {
            assert!(id_after("chat_a").as_str() < later);
        }
        assert!(id_after("chat_a").as_str() > "chat_a");
    }

    #[test]
    fn postgres_kinds_lists_all_values_with_a_common_bit() {
        assert_eq!(
            List::Tasks.postgres_kinds(4 | 8),
            "{4,5,6,7,8,9,10,11,12,13,14,15}"
        );
    }

    #[test]
    fn unknown_kinds_share_a_bit() {
        assert_eq!(List::Chats.kind_bit("messages"), 2);
        assert_eq!(List::Tasks.kind_bit("speech"), 4);
        assert_eq!(List::Tasks.kind_bit("a"), List::Tasks.kind_bit("b"));
    }
}
