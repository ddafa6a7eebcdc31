//! Requests of people about an alert.

use gateway_core::alerts::{Alert, Changes, IllegalTransition, Now};
use jiff::SignedDuration;

use super::Alerts;
use super::request_error::RequestError;
use super::state::{State, now};

impl Alerts {
    /// Acknowledges an alert. Blocks on the disk.
    pub fn acknowledge(&self, id: u64, by: &str) -> Result<Alert, RequestError> {
        self.request(id, |state, now| state.engine.acknowledge(id, by, now))
    }

    /// Resolves an alert. It is raised again after its cooldown if its condition still holds. Blocks on the disk.
    pub fn resolve(&self, id: u64, by: &str) -> Result<Alert, RequestError> {
        self.request(id, |state, now| state.engine.resolve(id, by, now))
    }

    /// Mutes an open alert for a time. Blocks on the disk.
    pub fn mute(&self, id: u64, time: SignedDuration, by: &str) -> Result<Alert, RequestError> {
        self.request(id, |state, now| state.engine.mute(id, time, by, now))
    }

    /// Lifts the mute of an alert. Blocks on the disk.
    pub fn unmute(&self, id: u64) -> Result<Alert, RequestError> {
        self.request(id, |state, now| state.engine.unmute(id, now))
    }

    fn request(
        &self,
        id: u64,
        act: impl FnOnce(&mut State, Now) -> Result<Alert, IllegalTransition>,
    ) -> Result<Alert, RequestError> {
        let mut state = self.lock();
        self.advance(&mut state);
        // What was there before the request stays to be stored if the request fails.
        let (engine, unsaved) = (state.engine.clone(), state.unsaved.clone());
        let alert = match act(&mut state, now(&self.0.store)) {
            Ok(alert) => alert,
            Err(IllegalTransition::State(status)) => return Err(RequestError::State(status)),
            Err(IllegalTransition::NotMuted) => return Err(RequestError::NotMuted),
            // The engine forgets resolved alerts after their cooldown.
            Err(IllegalTransition::NotFound) => {
                let stored = self.0.store.alert(id)?.ok_or(RequestError::NotFound)?;
                return Err(RequestError::State(stored.status));
            }
        };
        let new = state.engine.take_changes();
        let mut changes = unsaved.clone();
        changes.extend(new.clone());
        if let Err(error) = self.0.store.keep_alerts(&changes) {
            (state.engine, state.unsaved) = (engine, unsaved);
            return Err(error.into());
        }
        state.unsaved = Changes::default();
        state.count(&new);
        let last = changes.notifications.last().map(|notification| notification.sequence);
        self.0.sequence.send_if_modified(|sequence| {
            let newest = last.unwrap_or_default().max(*sequence);
            std::mem::replace(sequence, newest) != newest
        });
        // Without a subscriber, the send fails, which is no error.
        let _ = self.0.changed.send(alert.clone());
        Ok(alert)
    }
}
