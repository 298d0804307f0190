//! Locks a mutex whose state is always consistent, even after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if its last holder has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
