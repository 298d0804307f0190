//! What is held for a chat request while it runs.

use crate::grants::GrantReservation;
use crate::ledger::reservations::Reservation;

/// What is held for a chat request while it runs.
#[derive(Debug, Clone)]
pub enum ChatHold {
    /// Nothing: neither user nor key has a limit.
    None,
    /// In memory: as long as a clone of the reservation lives, or until the settlement is on disk.
    Reserved(Reservation),
    /// In memory, of money that this node holds on disk for several chats: as [`ChatHold::Reserved`].
    Granted(GrantReservation),
    /// On disk: until the request is settled or its node counts as dead.
    Stored,
}
