//! Grants of this node, if nodes share a database: money that the node has reserved in advance from a user's balance and a key's quota, and divides
//! among the chats that it serves without requests to the database.
//!
//! For each grant this process knows a part that is free and a part that running chats have reserved. One invariant holds at all times, even if
//! requests to the database or their replies are lost:
//!
//! free + reserved ≤ `amount` of the grant's row.
//!
//! It holds because every change that lowers the row lowers `free` before it is sent, and every change that raises the row raises `free` after it is
//! committed. If the outcome of a write is unknown, the grant is retired and nothing of it counts as free: no chat reserves from it any more, and
//! once the last chat has ended, the row is deleted and what is left of it is released, however much that is. What running chats have reserved stays
//! covered, because a chat's settlement lowers the row by at most what the chat itself has reserved.
//!
//! - **A chat begins**: it reserves from the grant of its key. A key that was not used for [`state::QUIET`] has no grant: its chat is held in the
//!   database. The next chat opens a grant; chats that begin while it is opened wait for it.
//! - **A chat ends**: its charge and the part that it takes from the grant are one write. What it reserved and did not spend is free again.
//! - **Refill**: if less than half of what the key needs for about two seconds is free, the grant is raised while chats continue.
//! - **Return**: a grant that was idle for [`state::IDLE`] is closed; one that is far too large is lowered. If a node finds too little available for
//!   a request, it requests the other nodes to return their grants of that user, and then holds in the database for [`state::DENIED_FOR`].
//! - **A node dies**: other nodes release its grants as they release its holds, once its heartbeat has expired.
//! - **A node is suspended** and resumes after that: it still has its grants in memory. So a chat begins on a grant only while the last confirmed
//!   heartbeat is younger than half the lease, by the monotonic clock and by the wall clock; and after a longer gap all grants are retired. A chat
//!   that was running in between is charged to what its account has left, and the rest is a debt.

mod reservation;
mod state;
pub(crate) mod upkeep;
mod writes;

pub use reservation::GrantReservation;
pub(crate) use reservation::Grants;
