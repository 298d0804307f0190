//! The hold for a chat request while it runs.

use crate::grants::GrantReservation;
use crate::ledger::reservations::Reservation;

/// The hold for a chat request while it runs.
#[derive(Debug, Clone)]
pub enum ChatHold {
    /// Nothing is held: neither user nor key has a limit.
    None,
    /// In memory, until the last clone of the reservation is dropped or the settlement is on disk.
    Reserved(Reservation),
    /// In memory, as a part of money that this node holds on disk for several chats: ends like [`ChatHold::Reserved`].
    Granted(GrantReservation),
    /// On disk, until the request is settled or its node counts as dead.
    Stored,
}
