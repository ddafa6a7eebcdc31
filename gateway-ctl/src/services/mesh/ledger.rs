//! Storage of the nodes and pre-auth keys: one setting of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gateway_mesh::{Change, Ledger, LedgerError, Roster};
use gateway_model::State;
use gateway_model::settings::keys::MESH_ROSTER;
use parking_lot::Mutex;
use serde::Deserialize as _;
use serde_json::json;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::store::{AuditTicket, CommitError, Store};

/// Reason for which a roster is not stored.
const REPLACED: &str = "the nodes of the mesh were replaced meanwhile";

/// Ledger of one coordinator. It stores nothing once others have changed the roster in the store.
pub(super) struct StoreLedger {
    store: Arc<Store>,
    /// Revision of the stored roster that the coordinator has; 0 for none.
    revision: AtomicU64,
}

/// Reads the stored roster, and its revision.
pub(super) fn stored(state: &State) -> Result<(Roster, u64), String> {
    let Some(setting) = state.settings.setting(MESH_ROSTER) else { return Ok((Roster::default(), 0)) };
    let roster = Roster::deserialize(&setting.value).map_err(|error| error.to_string())?;
    Ok((roster, setting.revision.0))
}

fn revision(state: &State) -> u64 {
    state.settings.setting(MESH_ROSTER).map_or(0, |setting| setting.revision.0)
}

impl StoreLedger {
    pub(super) fn new(store: Arc<Store>, revision: u64) -> StoreLedger {
        StoreLedger { store, revision: AtomicU64::new(revision) }
    }

    /// Reports whether the store has the roster of the coordinator. To be called between changes.
    pub(super) fn is_current(&self) -> bool {
        revision(&self.store.current()) == self.revision.load(Ordering::Acquire)
    }

    /// Stores the roster with this audit entry. Blocks on the disk.
    fn keep(&self, roster: &Roster, ticket: AuditTicket) -> Result<(), LedgerError> {
        let value = serde_json::to_value(roster).map_err(|error| LedgerError(error.to_string()))?;
        let had = self.revision.load(Ordering::Acquire);
        let committed = self.store.commit(ticket, |draft| {
            if revision(draft) != had {
                return Err(REPLACED);
            }
            draft.set(MESH_ROSTER, value);
            Ok(revision(draft))
        });
        match committed {
            Ok(revision) => {
                self.revision.store(revision, Ordering::Release);
                Ok(())
            }
            Err(CommitError::Refused { error, .. }) => Err(LedgerError(error.to_owned())),
            Err(CommitError::Store(error)) => Err(LedgerError(error.to_string())),
        }
    }
}

impl Ledger for StoreLedger {
    fn store(&self, roster: &Roster, change: &Change) -> Result<(), LedgerError> {
        may_block(|| self.keep(roster, ticket(change)))
    }
}

/// Ledger of one change by an administrator.
pub(super) struct TicketLedger<'l> {
    ledger: &'l StoreLedger,
    ticket: Mutex<Option<AuditTicket>>,
}

impl<'l> TicketLedger<'l> {
    pub(super) fn new(ledger: &'l StoreLedger, ticket: AuditTicket) -> TicketLedger<'l> {
        TicketLedger { ledger, ticket: Mutex::new(Some(ticket)) }
    }

    /// Returns the audit entry of a request that changed nothing.
    pub(super) fn into_unused(self) -> Option<AuditTicket> {
        self.ticket.into_inner()
    }
}

impl Ledger for TicketLedger<'_> {
    fn store(&self, roster: &Roster, change: &Change) -> Result<(), LedgerError> {
        let ticket = self.ticket.lock().take();
        let mut ticket = ticket.ok_or_else(|| LedgerError("an audit entry is for one change".to_owned()))?;
        ticket.details = details(change);
        self.ledger.keep(roster, ticket)
    }
}

/// Returns the audit entry of a change that a client or the time has made.
fn ticket(change: &Change) -> AuditTicket {
    let action = match change {
        Change::KeyCreated { .. } => "create_mesh_key",
        Change::NodeRegistered { .. } => "register_mesh_peer",
        Change::NodeLoggedOut { .. } => "log_out_mesh_peer",
        Change::NodeDescribed { .. } => "describe_mesh_peer",
        Change::RoutesApproved { .. } => "approve_mesh_routes",
        Change::NodeRemoved { .. } => "delete_mesh_peer",
        Change::EphemeralRemoved { .. } => "delete_ephemeral_mesh_peers",
    };
    let mut ticket = AuditTicket::system(action, "mesh_peer");
    ticket.details = details(change);
    ticket
}

fn details(change: &Change) -> serde_json::Value {
    match change {
        Change::KeyCreated { id } => json!({ "key_id": id }),
        Change::NodeRegistered { id, name }
        | Change::NodeLoggedOut { id, name }
        | Change::NodeDescribed { id, name }
        | Change::RoutesApproved { id, name }
        | Change::NodeRemoved { id, name } => json!({ "id": id.to_string(), "name": name }),
        Change::EphemeralRemoved { names } => json!({ "names": names }),
    }
}

/// Runs work that blocks on the disk, so that other tasks of this thread go on elsewhere.
fn may_block<T>(work: impl FnOnce() -> T) -> T {
    let has_threads =
        Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_threads { tokio::task::block_in_place(work) } else { work() }
}
