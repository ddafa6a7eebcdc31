//! Locks of the TLS state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic of another thread leaves the value consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
