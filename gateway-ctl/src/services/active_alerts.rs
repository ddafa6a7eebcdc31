//! Active alerts: each is published when it begins and when it ends, and kept while it lasts. Subscribers that join
//! later receive the active ones as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_model::kinds::alert_rule::AlertKind;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::clock::SharedClock;

/// Capacity of the channel. A subscriber that lags behind by more gets an error that it missed alerts.
const CHANNEL_CAPACITY: usize = 256;

/// An alert in its current state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActiveAlert {
    pub kind: AlertKind,
    /// Subject of the alert, among those of its kind.
    pub subject: String,
    pub message: String,
    pub since: Timestamp,
    /// `false`: the alert has ended.
    pub active: bool,
}

/// Registry that collects the alerts and publishes them to subscribers.
#[derive(Clone, Debug)]
pub struct ActiveAlerts(Arc<Alerts>);

#[derive(Debug)]
struct Alerts {
    clock: SharedClock,
    /// Active alerts. The lock is held while an alert is published, so that all subscribers see the same order.
    active: Mutex<BTreeMap<(String, String), ActiveAlert>>,
    reported: broadcast::Sender<ActiveAlert>,
}

impl ActiveAlerts {
    pub fn new(clock: SharedClock) -> ActiveAlerts {
        let reported = broadcast::channel(CHANNEL_CAPACITY).0;
        ActiveAlerts(Arc::new(Alerts { clock, active: Mutex::default(), reported }))
    }

    /// Raises an alert. Publishes it only once while it is active; keeps the newest message.
    pub fn raise(&self, kind: AlertKind, subject: &str, message: String) {
        let mut active = self.0.active.lock();
        if let Some(known) = active.get_mut(&key(kind, subject)) {
            known.message = message;
            return;
        }
        let since = self.0.clock.now();
        let notice = ActiveAlert { kind, subject: subject.to_owned(), message, since, active: true };
        active.insert(key(kind, subject), notice.clone());
        // Without a subscriber, the send fails, which is no error.
        let _ = self.0.reported.send(notice);
    }

    /// Ends an alert if it is active.
    pub fn clear(&self, kind: AlertKind, subject: &str) {
        self.end(&mut self.0.active.lock(), &key(kind, subject));
    }

    /// Ends the alerts of a kind whose subject no longer exists. No other alert is published meanwhile.
    pub fn keep(&self, kind: AlertKind, there: impl Fn(&str) -> bool) {
        let mut active = self.0.active.lock();
        let gone = active.values().filter(|notice| notice.kind == kind && !there(&notice.subject));
        let gone: Vec<_> = gone.map(|notice| key(kind, &notice.subject)).collect();
        gone.iter().for_each(|key| self.end(&mut active, key));
    }

    fn end(&self, active: &mut BTreeMap<(String, String), ActiveAlert>, key: &(String, String)) {
        if let Some(notice) = active.remove(key) {
            let _ = self.0.reported.send(ActiveAlert { active: false, ..notice });
        }
    }

    /// Returns the active alerts and a receiver for all later changes.
    pub fn subscribe(&self) -> (Vec<ActiveAlert>, broadcast::Receiver<ActiveAlert>) {
        let active = self.0.active.lock();
        (active.values().cloned().collect(), self.0.reported.subscribe())
    }
}

fn key(kind: AlertKind, subject: &str) -> (String, String) {
    (kind.to_string(), subject.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    const DOWN: AlertKind = AlertKind::DnsUpstreamDown;

    #[test]
    fn each_is_reported_at_its_begin_and_end_only() {
        let active_alerts = ActiveAlerts::new(SystemClock::shared());
        let (before, mut reported) = active_alerts.subscribe();
        assert_eq!(before, []);
        active_alerts.clear(DOWN, "192.0.2.1");
        active_alerts.raise(DOWN, "192.0.2.1", "no answer".into());
        active_alerts.raise(DOWN, "192.0.2.1", "refused".into());
        active_alerts.raise(AlertKind::BlocklistUpdateFailed, "192.0.2.1", "not found".into());
        let (during, _) = active_alerts.subscribe();
        let words: Vec<&str> = during.iter().map(|notice| notice.message.as_str()).collect();
        assert_eq!(words, ["not found", "refused"]);
        active_alerts.clear(DOWN, "192.0.2.1");
        active_alerts.clear(DOWN, "192.0.2.1");
        let heard: Vec<ActiveAlert> = std::iter::from_fn(|| reported.try_recv().ok()).collect();
        let shown: Vec<(AlertKind, bool)> = heard.iter().map(|notice| (notice.kind, notice.active)).collect();
        assert_eq!(shown, [(DOWN, true), (AlertKind::BlocklistUpdateFailed, true), (DOWN, false)]);
        assert_eq!((heard[2].since, &*heard[2].message), (heard[0].since, "refused"));
        assert_eq!(active_alerts.subscribe().0.len(), 1);
    }

    #[test]
    fn resolved_alerts_end() {
        let active_alerts = ActiveAlerts::new(SystemClock::shared());
        for subject in ["a", "b"] {
            active_alerts.raise(DOWN, subject, String::new());
        }
        let (_, mut reported) = active_alerts.subscribe();
        active_alerts.keep(DOWN, |subject| subject == "b");
        active_alerts.keep(AlertKind::BlocklistUpdateFailed, |_| false);
        let over = reported.try_recv().expect("one is over");
        assert_eq!((over.subject.as_str(), over.active), ("a", false));
        assert!(reported.try_recv().is_err());
    }
}
