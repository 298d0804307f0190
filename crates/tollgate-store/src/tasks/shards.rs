//! Shards of the queue: each task is in one shard, and each shard has a node that claims its tasks first, so that nodes do not search for the same
//! rows.
//!
//! Every node computes the owners of shards from the nodes that are alive (rendezvous hashing), so when a node is added or removed, only its shards
//! change owners. A node puts the tasks that it accepts into its own shards, so it begins them at once itself. Other nodes claim a task once it has
//! been due for [`FOREIGN_DELAY`], because its node is full or gone. If two nodes disagree about the owner of a shard for a moment, both search it:
//! row locks decide, as always.

use tollgate_core::Millis;

use crate::stable_hash::{hash_text, mix_bits};

/// The number of shards.
pub const SHARDS: u32 = 64;

/// How long a task must be due before nodes that do not own its shard claim it.
pub const FOREIGN_DELAY: Millis = 2_000;

/// A set of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards(u64);

impl Shards {
    /// All shards, for a node that is alone.
    pub const ALL: Self = Self(u64::MAX);

    /// The shards of the node `own` among `nodes`; these include `own` if it takes part. If it does not, the set is empty.
    pub fn of_node<'a>(own: &str, nodes: impl IntoIterator<Item = &'a str>) -> Self {
        let nodes: Vec<(u64, &str)> = nodes.into_iter().map(|id| (hash_text(id), id)).collect();
        let owner = |shard: u32| {
            nodes
                .iter()
                .max_by_key(|(node, id)| (mix_bits(*node ^ mix_bits(u64::from(shard))), *id))
        };
        let owned = (0..SHARDS).filter(|shard| owner(*shard).is_some_and(|(_, id)| *id == own));
        Self(owned.fold(0, |set, shard| set | (1 << shard)))
    }

    /// As bits; the first shard is the lowest bit.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Whether the set contains a shard.
    pub(crate) fn contains(self, shard: i64) -> bool {
        u32::try_from(shard).is_ok_and(|shard| shard < SHARDS && (self.0 >> shard) & 1 == 1)
    }

    /// The shard of the set for the tasks of a user; one of all shards if the set is empty.
    pub(crate) fn shard_of_user(self, user_id: &str) -> u32 {
        let set = if self.0 == 0 { u64::MAX } else { self.0 };
        let skipped = hash_text(user_id) % u64::from(set.count_ones());
        let mut owned = (0..SHARDS).filter(|shard| (set >> shard) & 1 == 1);
        owned
            .nth(usize::try_from(skipped).unwrap_or(0))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_all(nodes: &[&str]) -> Vec<u64> {
        let of = |own: &&str| Shards::of_node(own, nodes.iter().copied()).bits();
        nodes.iter().map(of).collect()
    }

    #[test]
    fn every_shard_has_one_owner_and_only_those_of_a_lost_node_change_owner() {
        let nodes = ["node_a", "node_b", "node_c", "node_d"];
        let sets = of_all(&nodes);
        assert_eq!(sets.iter().fold(0, |all, set| all | set), u64::MAX);
        assert_eq!(sets.iter().map(|set| set.count_ones()).sum::<u32>(), SHARDS);
        assert!(
            sets.iter().all(|set| (4..=32).contains(&set.count_ones())),
            "{sets:?}"
        );
        let left = of_all(&nodes[..3]);
        for (before, after) in sets.iter().zip(left) {
            assert_eq!(after & before, *before);
        }
        assert_eq!(of_all(&["node_a"]), [u64::MAX]);
    }

    #[test]
    fn a_node_outside_the_list_owns_no_shards() {
        let shards = Shards::of_node("node_x", ["node_a"]);
        assert_eq!(shards.bits(), 0);
        // Its submissions are distributed over the shards of the others.
        let used: std::collections::BTreeSet<u32> = (0..500)
            .map(|n| shards.shard_of_user(&format!("user_{n}")))
            .collect();
        assert_eq!(used.len(), SHARDS as usize);
    }

    #[test]
    fn tasks_of_a_user_are_in_one_shard_of_the_node() {
        let shards = Shards::of_node("node_a", ["node_a", "node_b", "node_c"]);
        for n in 0..100 {
            let user = format!("user_{n}");
            let shard = shards.shard_of_user(&user);
            assert!(shards.contains(i64::from(shard)));
            assert_eq!(shards.shard_of_user(&user), shard);
        }
        assert!(!Shards::ALL.contains(64) && !Shards::ALL.contains(-1));
    }
}
