//! End of expired objects, and storage of the time.

use std::time::Duration;

use gateway_model::ending::Overdue;
use gateway_model::{EditError, State};
use serde_json::json;

use super::put;
use crate::store::Store;
use crate::store::audit::AuditTicket;
use crate::store::commit::CommitError;
use crate::store::error::Error;

/// Interval between two saves of the time while nothing is committed.
const KEEP_INTERVAL: Duration = Duration::from_secs(120);

impl Store {
    /// Records the end of expired exceptions, policies and API keys, and stores the time. Call it before the first
    /// plan and then every few seconds. Returns the number of ended objects. Blocks on the disk.
    ///
    /// Two cases end all exceptions that let a device out. After a reboot without a synchronised clock, the duration
    /// of the outage is unknown. And a clock that a synchronised source sets back would prolong the remaining time.
    pub fn end_overdue(&self) -> Result<usize, Error> {
        let clock = self.clock.as_ref();
        let behind = clock.behind();
        let (uncertain, due) = {
            let kept = self.kept.lock();
            let rebooted = kept.other_boot && !clock.is_synchronised();
            let boot = clock.boot();
            let due = kept.at.is_none_or(|at| boot.saturating_sub(at) >= KEEP_INTERVAL);
            (behind.is_some() || rebooted, due)
        };
        let overdue = self.current().overdue(clock.now(), uncertain);
        let ended = overdue.len();
        if ended > 0 {
            self.record_ended(&overdue, uncertain)?;
        }
        if let Some(time) = behind {
            tracing::warn!(%time, ended, "set the clock back to the synchronised time");
            clock.set_back();
        }
        if due || behind.is_some() {
            self.keep_time()?;
        }
        self.kept.lock().other_boot = false;
        Ok(ended)
    }

    fn record_ended(&self, overdue: &Overdue, uncertain: bool) -> Result<(), Error> {
        if !overdue.exceptions.is_empty() {
            let mut ticket = AuditTicket::system("end_exceptions", "exception");
            if uncertain {
                ticket.details = json!({ "reason": "the clock cannot say how much time they have left" });
            }
            self.record_end(ticket, |draft| draft.end_exceptions(&overdue.exceptions))?;
        }
        if !overdue.policies.is_empty() {
            let ticket = AuditTicket::system("end_policies", "routing_policy");
            self.record_end(ticket, |draft| draft.end_policies(&overdue.policies))?;
        }
        if !overdue.api_keys.is_empty() {
            let ticket = AuditTicket::system("end_api_keys", "api_key");
            self.record_end(ticket, |draft| draft.end_api_keys(&overdue.api_keys))?;
        }
        Ok(())
    }

    fn record_end(
        &self,
        ticket: AuditTicket,
        edit: impl FnOnce(&mut State) -> Result<(), EditError>,
    ) -> Result<(), Error> {
        match self.commit(ticket, edit) {
            Ok(()) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
            Err(CommitError::Refused { error, .. }) => {
                Err(Error::Damaged { what: format!("an end cannot be recorded: {error}") })
            }
        }
    }

    /// Stores the current time. It does not change the configuration, so it has no audit entry. Blocks on the disk.
    pub fn keep_time(&self) -> Result<(), Error> {
        if let Some(high) = self.clock.high_time() {
            let _held = self.writer.lock();
            let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
            put(&txn, &high)?;
            txn.commit().map_err(Error::at("commit"))?;
        }
        self.kept.lock().at = Some(self.clock.boot());
        Ok(())
    }
}
