//! Handle of the access point: its last state.

use std::sync::Arc;

use gateway_core::access_point::{ApState, Station};
use gateway_core::health::{Check, Finding};
use parking_lot::Mutex;

use super::status::{AccessPointStatus, Missing};
use crate::handles::in_memory;
use crate::service::Health;

const SUBSYSTEM: &str = "access_point";

/// Handle of the service. Clones are the same handle.
#[derive(Clone, Debug)]
pub struct AccessPointHandle(Arc<Mutex<AccessPointStatus>>);

in_memory!(AccessPointHandle);

impl Default for AccessPointHandle {
    fn default() -> AccessPointHandle {
        AccessPointHandle(Arc::new(Mutex::new(off(Some(Missing::Engine)))))
    }
}

fn off(missing: Option<Missing>) -> AccessPointStatus {
    AccessPointStatus {
        enabled: false,
        needs: missing.map(|missing| missing.to_string()),
        running: false,
        error: None,
        radio: None,
        stations: None,
    }
}

impl AccessPointHandle {
    pub fn status(&self) -> AccessPointStatus {
        self.0.lock().clone()
    }

    pub(super) fn set_off(&self) {
        *self.0.lock() = off(None);
    }

    pub(super) fn set_missing(&self, missing: Missing) {
        *self.0.lock() = AccessPointStatus { enabled: true, ..off(Some(missing)) };
    }

    pub(super) fn set_running(&self) {
        *self.0.lock() = AccessPointStatus { enabled: true, running: true, ..off(None) };
    }

    pub(super) fn set_ended(&self, reason: String) {
        *self.0.lock() = AccessPointStatus { enabled: true, error: Some(reason), ..off(None) };
    }

    /// Takes the last report of hostapd. `None`: it does not answer.
    pub(super) fn set_report(&self, report: Option<(ApState, Vec<Station>)>) {
        let (radio, stations) = report.unzip();
        let mut status = self.0.lock();
        (status.radio, status.stations) = (radio, stations);
    }

    /// Returns the health while the setting says that there is an access point.
    pub(super) fn health(&self) -> Option<Health> {
        let status = self.status();
        if !status.enabled {
            return None;
        }
        let reason = match &status {
            _ if status.is_on() => None,
            AccessPointStatus { needs: Some(needs), .. } => Some(format!("it needs {needs}")),
            AccessPointStatus { error: Some(error), .. } => Some(error.clone()),
            AccessPointStatus { radio: Some(radio), .. } => Some(format!("its state is {}", radio.state)),
            _ => Some("hostapd does not answer".to_owned()),
        };
        let findings = reason.map(|reason| Finding::not_running("the access point", &reason));
        Some(Check::of(SUBSYSTEM, findings.into_iter().collect(), "stations can join").into())
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::access_point::parse_status;
    use gateway_core::health::CheckState;

    use super::*;

    #[test]
    fn health_follows_what_hostapd_reports() {
        let handle = AccessPointHandle::default();
        assert_eq!(handle.status().needs.as_deref(), Some("an engine that drives the radio"));
        handle.set_off();
        assert!(handle.health().is_none());
        let state = |handle: &AccessPointHandle| handle.health().expect("a check").check.state;
        handle.set_missing(Missing::Program);
        assert_eq!(state(&handle), CheckState::Failed);
        handle.set_running();
        assert_eq!(state(&handle), CheckState::Failed, "it has not answered");
        let report = |state: &str| Some((parse_status(&format!("state={state}\n"))?, Vec::new()));
        handle.set_report(report("COUNTRY_UPDATE"));
        assert_eq!(state(&handle), CheckState::Failed);
        handle.set_report(report("ENABLED"));
        assert_eq!(state(&handle), CheckState::Ok);
        handle.set_report(None);
        assert_eq!((state(&handle), handle.status().stations), (CheckState::Failed, None));
        handle.set_ended("no such channel".to_owned());
        assert!(
            !handle.status().running
                && handle.health().expect("a check").check.message.contains("no such channel")
        );
    }
}
