//! Subscribed lists: selection of the wanted ones, and storage of the downloaded ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::filter::Lists;
use gateway_core::dns::lists::{List, Report};
use gateway_core::doh_servers::FeedServers;
use gateway_dns::lists::{Deliver, Error, Limits, Subscription};
use gateway_model::kinds::ThreatFeed;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::kinds::threat_feed::FeedCategory;
use gateway_model::settings::bootstrap::Dns;
use gateway_model::{Id, State};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::reconcile::{Handle, Reason};
use crate::services::active_alerts::ActiveAlerts;

/// Interval between two updates of the lists of the allowlist and the blocklist.
const DAILY: Duration = Duration::from_secs(24 * 3600);
const HOUR: u64 = 3600;

/// Store of downloaded lists that notifies of changes.
#[derive(Clone)]
pub(super) struct ListStore {
    pub lists: Arc<Mutex<Lists>>,
    pub changed: Arc<Notify>,
    pub active_alerts: ActiveAlerts,
    /// Public resolvers that feeds list, by feed.
    pub servers: Arc<Mutex<BTreeMap<Id, FeedServers>>>,
    /// Compiles a plan when those change.
    pub wake: Handle,
}

const FAILED: AlertKind = AlertKind::BlocklistUpdateFailed;

impl ListStore {
    /// Returns the lists whose objects still exist, and drops the others.
    pub(super) fn current(&self, state: &State) -> Lists {
        let mut lists = self.lists.lock();
        let gone: Vec<Id> = lists.ids().filter(|id| !is_there(state, *id)).collect();
        gone.into_iter().for_each(|id| lists.take(id));
        lists.clone()
    }

    /// Returns the public resolvers that the enabled feeds of this category list.
    /// `updated` tells when one was downloaded.
    pub(super) fn servers(&self, state: &State, updated: impl Fn(Id) -> Option<Timestamp>) -> FeedServers {
        let mut all = FeedServers::default();
        let mut servers = self.servers.lock();
        servers.retain(|id, _| state.threat_feeds.contains(*id));
        for feed in state.threat_feeds.iter().filter(|feed| lists_servers(feed)) {
            if let Some(listed) = servers.get(&feed.meta.id) {
                all.extend(listed);
                all.updated = all.updated.max(updated(feed.meta.id));
            }
        }
        all
    }
}

fn lists_servers(feed: &ThreatFeed) -> bool {
    feed.enabled && feed.category == FeedCategory::Doh
}

impl ListStore {
    /// Restricts the alerts to the wanted lists: only these are updated from now on.
    pub(super) fn keep(&self, wanted: &[Subscription]) {
        self.active_alerts.keep(FAILED, |subject| wanted.iter().any(|one| one.id.to_string() == subject));
    }
}

impl Deliver for ListStore {
    fn deliver(&self, id: Id, mut list: List) {
        if let Some(note) = list.report.notes.first() {
            let Report { taken, ignored, .. } = list.report;
            tracing::info!(%id, taken, ignored, line = note.line, reason = %note.reason, "lines of a list were not taken");
        }
        if let Some(servers) = list.servers.take() {
            self.servers.lock().insert(id, servers);
            self.wake.wake(Reason::Facts);
        }
        let taken = self.lists.lock().put(id, list);
        match taken {
            Ok(()) => self.changed.notify_one(),
            Err(error) => tracing::error!(%id, %error, "ignored a list"),
        }
    }

    fn succeeded(&self, id: Id) {
        self.active_alerts.clear(FAILED, &id.to_string());
    }

    fn failed(&self, id: Id, error: &Error) {
        tracing::warn!(%id, %error, "failed to update a list");
        self.active_alerts.raise(FAILED, &id.to_string(), error.to_string());
    }
}

fn is_there(state: &State, id: Id) -> bool {
    state.dns_allowlist.contains(id) || state.dns_blocklist.contains(id) || state.threat_feeds.contains(id)
}

/// Returns the lists that are to be kept up to date.
pub(super) fn wanted(state: &State, dns: &Dns) -> Vec<Subscription> {
    let limits = Limits {
        max_entries: dns.list_max_entries,
        max_total_entries: dns.list_max_total_entries,
        private_targets: dns.list_private_targets,
    };
    let daily = |id: Id, url: &Option<String>| {
        Some(Subscription { id, url: url.clone()?, format: None, every: DAILY, limits, keeps_servers: false })
    };
    let allowed = state.dns_allowlist.iter().filter(|list| list.enabled);
    let blocked = state.dns_blocklist.iter().filter(|list| list.enabled || state.is_telemetry_list(list));
    let feeds = state.threat_feeds.iter().filter(|feed| feed.enabled).map(|feed| Subscription {
        id: feed.meta.id,
        url: feed.url.clone(),
        format: Some(feed.format.into()),
        every: Duration::from_secs(u64::from(feed.interval_h) * HOUR),
        limits,
        keeps_servers: lists_servers(feed),
    });
    let listed = allowed.filter_map(|list| daily(list.meta.id, &list.url));
    listed.chain(blocked.filter_map(|list| daily(list.meta.id, &list.url))).chain(feeds).collect()
}
