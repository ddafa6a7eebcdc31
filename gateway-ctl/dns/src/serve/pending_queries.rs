//! Pending queries: queries that wait for an upstream.

use std::collections::HashMap;
use std::sync::Arc;

use gateway_core::dns::Name;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::cache::Entry;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueryKey {
    pub partition: u16,
    pub dnssec_ok: bool,
    pub checking_disabled: bool,
    pub qtype: u16,
    pub name: Name,
}

/// Result of an upstream query.
#[derive(Clone, Debug)]
pub(super) struct QueryResult {
    pub entry: Arc<Entry>,
    /// A stale answer may replace it (RFC 8767).
    pub replaceable: bool,
}

pub(super) type ResultReceiver = watch::Receiver<Option<QueryResult>>;

/// Identical queries in flight, merged into one.
#[derive(Debug, Default)]
pub struct PendingQueries(Mutex<HashMap<QueryKey, ResultReceiver>>);

impl PendingQueries {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<QueryKey, ResultReceiver>> {
        self.0.lock()
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
