//! Last change of the stored policies, from the audit trail.

use std::sync::Arc;

use gateway_ctl::store::{AuditEntry, AuditResult, Store};
use gateway_model::kinds::{Chain, PrivacyClass, Profile};
use gateway_model::{Resource, Revision, RoutingPolicy};
use jiff::Timestamp;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::blocking::blocking;

/// Number of the newest audit entries that are searched.
const SEARCHED_ENTRIES: usize = 2000;

/// Change of a stored policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastSaved {
    pub at: Timestamp,
    /// Name of the user or key, or `system`.
    pub by: String,
    /// Audit action, such as `replace_routing_policy`.
    pub action: String,
}

/// Last change by revision of the store, so that the trail is searched once for each revision.
#[derive(Debug, Default)]
pub struct SavedChanges(Mutex<Option<(Revision, Option<LastSaved>)>>);

impl SavedChanges {
    /// Returns the last change before this revision of the store. `None` if it is not found.
    pub async fn of(&self, store: &Arc<Store>, revision: Revision) -> Option<LastSaved> {
        let known = self.0.lock().clone();
        if let Some((of, saved)) = known
            && of == revision
        {
            return saved;
        }
        let store = store.clone();
        let entry = blocking(move || store.newest_audit(SEARCHED_ENTRIES, is_change)).await.ok()?.ok()?;
        let saved =
            entry.map(|entry| LastSaved { at: entry.timestamp, by: entry.actor, action: entry.action });
        *self.0.lock() = Some((revision, saved.clone()));
        saved
    }
}

/// Reports whether an entry is about a change of a stored policy, or of an object that policies take over.
fn is_change(entry: &AuditEntry) -> bool {
    const NOUNS: [&str; 4] = [RoutingPolicy::NOUN, Profile::NOUN, Chain::NOUN, PrivacyClass::NOUN];
    const VERBS: [&str; 4] = ["create_", "replace_", "delete_", "toggle_"];
    entry.result == AuditResult::Success
        && NOUNS.contains(&entry.resource_type.as_str())
        && VERBS.iter().any(|verb| entry.action.starts_with(verb))
}
