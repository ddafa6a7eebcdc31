//! Alerts of exceptions and devices. The subject is the ID of the exception or the device.

use gateway_model::id::Id;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::kinds::device::DeviceStatus;
use gateway_model::{Device, State};
use jiff::Timestamp;

use crate::services::active_alerts::ActiveAlerts;

/// Longest time before its end at which the end of an exception is reported.
const EXPIRY_SECONDS: i64 = 86_400;

/// Reports the exceptions that are active, and the time that they have left.
pub(super) fn report_exceptions(alerts: &ActiveAlerts, state: &State, now: Timestamp) {
    for exception in state.exceptions.iter().filter(|exception| exception.is_active(now)) {
        let id = exception.meta.id.to_string();
        let device = state.devices.get(exception.device_id).map_or("a device", |device| device.name.as_str());
        let what = format!("the exception {} of {device}", exception.r#type);
        alerts.raise(AlertKind::ExceptionStarted, &id, format!("{what} is active"));
        let left = exception.expires_at.map(|end| (end, end.duration_since(now).as_secs()));
        match left.filter(|(_, seconds)| *seconds <= EXPIRY_SECONDS) {
            Some((end, seconds)) => {
                let message = format!("{what} ends at {end:.0}");
                alerts.measure(AlertKind::ExceptionExpiring, &id, seconds as f64, message);
            }
            None => alerts.clear(AlertKind::ExceptionExpiring, &id),
        }
    }
    let is_active = |id: Id| state.exceptions.get(id).is_some_and(|exception| exception.is_active(now));
    for kind in [AlertKind::ExceptionStarted, AlertKind::ExceptionExpiring] {
        alerts.keep(kind, |subject| subject.parse().is_ok_and(is_active));
    }
}

/// Reports the devices that are in quarantine by their status.
pub(super) fn report_quarantine(alerts: &ActiveAlerts, state: &State) {
    let is_in_quarantine = |device: &Device| device.status == DeviceStatus::Quarantined;
    for device in state.devices.iter().filter(|device| is_in_quarantine(device)) {
        let message = format!("the device {} is in quarantine", device.name);
        alerts.raise(AlertKind::DeviceQuarantined, &device.meta.id.to_string(), message);
    }
    let lasts = |id: Id| state.devices.get(id).is_some_and(|device| is_in_quarantine(device));
    alerts.keep(AlertKind::DeviceQuarantined, |subject| subject.parse().is_ok_and(lasts));
}

/// Reports the devices that were seen once and are offline. `offline_since` returns the time at which a device that is
/// offline was seen last.
pub(super) fn report_offline(
    alerts: &ActiveAlerts,
    state: &State,
    offline_since: impl Fn(&Device) -> Option<Timestamp>,
) {
    let mut offline = std::collections::BTreeSet::new();
    for device in state.devices.iter() {
        if let Some(last_seen) = offline_since(device) {
            let id = device.meta.id.to_string();
            let message = format!("the device {} was last seen at {last_seen:.0}", device.name);
            alerts.raise(AlertKind::DeviceOffline, &id, message);
            offline.insert(id);
        }
    }
    alerts.keep(AlertKind::DeviceOffline, |subject| offline.contains(subject));
}
