//! Lists that others publish: fetched when they are due, kept on disk as they came last, handed on as they are read.
//!
//! A copy that was understood is only ever replaced by a newer one that is understood too. At the start the copies are
//! read without the network.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use gateway_core::dns::lists::{Format, List, Report};
use gateway_core::dns::table::Key;
use gateway_model::Id;
use gateway_outbound::backoff::{Backoff, up_to_a_tenth_less};
use ipnet::IpNet;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::erase::erase_files_of;
use crate::seam::Supervise;
use crate::upstream::Context;

mod copy;
mod fetch;
#[cfg(test)]
mod tests;
mod total;

pub use fetch::Error;
use total::TotalEntries;

/// Waits after failures.
const RETRY: Backoff = Backoff::new(Duration::from_secs(60), Duration::from_secs(6 * 3600));

/// A list to be kept up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Of the object that names it.
    pub id: Id,
    pub url: String,
    /// Told from the list if not given.
    pub format: Option<Format>,
    /// From one look at it to the next.
    pub every: Duration,
    pub limits: Limits,
}

/// Bounds of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A list with more entries is refused, and the copy before stays.
    pub max_entries: u64,
    /// A list that would make it more entries of all lists together is refused, and the copy before stays.
    pub max_total_entries: u64,
    /// Its server may be this host, a host of the LAN, or have another address that is none of the internet.
    pub private_targets: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_entries: 5_000_000, max_total_entries: 10_000_000, private_targets: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Older than its interval.
    Stale,
    /// There is none, and why is said.
    Error,
}

/// How a list stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// None before anything is known.
    pub state: Option<State>,
    /// What became of the lines of the list in use.
    pub report: Option<Report>,
    /// When its contents came.
    pub last_updated: Option<Timestamp>,
    pub next_update: Option<Timestamp>,
    pub etag: Option<String>,
    /// Of the last look, if it failed.
    pub error: Option<String>,
}

/// What is done with a list that was read: it takes the place of the one before.
pub trait Deliver: Send + Sync + 'static {
    fn deliver(&self, id: Id, list: List);
    /// The last look at a list went well, whether it had changed or not.
    fn succeeded(&self, id: Id);
    /// The last look at a list failed.
    fn failed(&self, id: Id, error: &Error);
}

/// All lists that are kept up to date.
pub struct Subscriptions {
    shared: Arc<Shared>,
    supervisor: Arc<dyn Supervise>,
    running: Mutex<BTreeMap<Id, Running>>,
}

struct Shared {
    folder: PathBuf,
    key: Key,
    context: Arc<Context>,
    deliver: Box<dyn Deliver>,
    known: Mutex<BTreeMap<Id, Known>>,
    total: Arc<TotalEntries>,
    /// Networks of this host: no list is fetched from them unless its limits say so.
    own: ArcSwap<Vec<IpNet>>,
}

struct Running {
    subscription: Subscription,
    now: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is known of one list.
#[derive(Clone, Debug, Default)]
struct Known {
    report: Option<Report>,
    head: Option<copy::Head>,
    /// When it was last seen to be what its server has.
    checked: Option<Timestamp>,
    next: Option<Timestamp>,
    error: Option<String>,
    failures: u32,
}

impl Subscriptions {
    /// Copies are kept in the folder, which has to be there.
    pub fn new(
        folder: PathBuf,
        key: Key,
        context: Arc<Context>,
        deliver: impl Deliver,
        supervisor: Arc<dyn Supervise>,
    ) -> Subscriptions {
        let known = Mutex::default();
        let (deliver, own, total) = (Box::new(deliver), ArcSwap::default(), Arc::default());
        let shared = Arc::new(Shared { folder, key, context, deliver, known, total, own });
        Subscriptions { shared, supervisor, running: Mutex::default() }
    }

    /// Reads the copies of these lists and delivers them. It takes its time: not for a thread that serves.
    pub fn load(&self, subscriptions: &[Subscription]) {
        for subscription in subscriptions {
            self.shared.load(subscription);
        }
    }

    /// From now on these lists are kept up to date, and no others. Copies of others are deleted.
    pub fn set(&self, subscriptions: &[Subscription]) {
        let mut running = lock(&self.running);
        running.retain(|_, one| subscriptions.contains(&one.subscription));
        let is_used = |id: Id| subscriptions.iter().any(|one| one.id == id);
        lock(&self.shared.known).retain(|id, _| is_used(*id));
        self.shared.total.retain(is_used);
        for subscription in subscriptions {
            running.entry(subscription.id).or_insert_with(|| {
                // What is known of a list at another address says nothing of this one.
                let elsewhere =
                    |known: &mut Known| known.head.as_ref().is_none_or(|head| head.url != subscription.url);
                let mut known = lock(&self.shared.known);
                if known.get_mut(&subscription.id).is_some_and(elsewhere) {
                    known.remove(&subscription.id);
                }
                drop(known);
                let now = Arc::new(Notify::new());
                let (shared, one, wake) = (self.shared.clone(), subscription.clone(), now.clone());
                let start = move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
                    let (shared, one, wake) = (shared.clone(), one.clone(), wake.clone());
                    Box::pin(async move { shared.keep(&one, &wake).await })
                };
                let name = format!("dns_list {}", subscription.id);
                let task = self.supervisor.restart_until_done(name, Box::new(start));
                Running { subscription: subscription.clone(), now, task }
            });
        }
        let ids: Vec<Id> = running.keys().copied().collect();
        drop(running);
        copy::COPIES.forget_others(&self.shared.folder, &ids);
    }

    /// Sets the networks of this host, LANs and own addresses.
    pub fn set_own_networks(&self, own: Vec<IpNet>) {
        self.shared.own.store(Arc::new(own));
    }

    /// Erases the copies on disk. The lists that were read stay in use; the next start fetches them.
    pub fn erase_copies(&self) -> std::io::Result<()> {
        erase_files_of(&self.shared.folder)
    }

    /// Looks at a list now. False if it is none of those kept up to date.
    pub fn refresh(&self, id: Id) -> bool {
        lock(&self.running).get(&id).map(|running| running.now.notify_one()).is_some()
    }

    pub fn status(&self, id: Id, now: Timestamp) -> Status {
        let every = lock(&self.running).get(&id).map(|running| running.subscription.every);
        lock(&self.shared.known).get(&id).map(|known| known.status(every, now)).unwrap_or_default()
    }
}

impl Known {
    fn status(&self, every: Option<Duration>, now: Timestamp) -> Status {
        let age = self.checked.map(|at| now.duration_since(at).unsigned_abs());
        let old = every.zip(age).is_some_and(|(every, age)| age > every + every / 4);
        let state = match (&self.report, &self.error) {
            (Some(_), _) if old => Some(State::Stale),
            (Some(_), _) => Some(State::Ok),
            (None, Some(_)) => Some(State::Error),
            (None, None) => None,
        };
        Status {
            state,
            report: self.report.clone(),
            last_updated: self.head.as_ref().map(|head| head.fetched),
            next_update: self.next,
            etag: self.head.as_ref().and_then(|head| head.etag.clone()),
            error: self.error.clone(),
        }
    }
}

impl Shared {
    fn load(&self, subscription: &Subscription) {
        match copy::read(&self.folder, subscription, self.key) {
            Ok(Some(copy)) => {
                let max = subscription.limits.max_total_entries;
                // The bound may have been lowered since the list was fetched.
                if let Err(error) = self.total.reserve(subscription.id, copy.list.report.taken, max) {
                    tracing::warn!(id = %subscription.id, %error, "left out the copy of a list");
                    return;
                }
                let known = Known {
                    report: Some(copy.list.report.clone()),
                    head: Some(copy.head),
                    checked: Some(copy.checked),
                    ..Known::default()
                };
                lock(&self.known).insert(subscription.id, known);
                self.deliver.deliver(subscription.id, copy.list);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(id = %subscription.id, %error, "the copy of a list cannot be read"),
        }
    }

    /// Looks at a list whenever it is due.
    async fn keep(&self, subscription: &Subscription, wake: &Notify) {
        loop {
            let wait = self.wait(subscription, Timestamp::now());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = wake.notified() => {}
            }
            self.look(subscription).await;
        }
    }

    /// Until it is due, spread so that not all lists of the world's gateways are asked for at once.
    fn wait(&self, subscription: &Subscription, now: Timestamp) -> Duration {
        let mut known = lock(&self.known);
        let known = known.entry(subscription.id).or_default();
        let wait = match (known.failures, known.checked) {
            (0, None) => Duration::ZERO,
            (0, Some(checked)) => {
                let age = now.duration_since(checked).unsigned_abs();
                up_to_a_tenth_less(subscription.every).saturating_sub(age)
            }
            (failures, _) => up_to_a_tenth_less(RETRY.after(failures).min(subscription.every)),
        };
        known.next = now.checked_add(jiff::SignedDuration::try_from(wait).unwrap_or_default()).ok();
        wait
    }

    async fn look(&self, subscription: &Subscription) {
        let head = lock(&self.known).get(&subscription.id).and_then(|known| known.head.clone());
        // Another address is another list.
        let head = head.filter(|head| head.url == subscription.url);
        let own = self.own.load_full();
        let bounds = (&own[..], &self.total);
        let looked = fetch::look(&self.context, &self.folder, self.key, (subscription, bounds), head).await;
        let now = Timestamp::now();
        let mut all = lock(&self.known);
        let known = all.entry(subscription.id).or_default();
        match looked {
            Ok(fetched) => {
                (known.checked, known.error, known.failures) = (Some(now), None, 0);
                let changed = fetched.map(|(head, list)| {
                    (known.head, known.report) = (Some(head), Some(list.report.clone()));
                    list
                });
                drop(all);
                self.deliver.succeeded(subscription.id);
                if let Some(list) = changed {
                    self.deliver.deliver(subscription.id, list);
                }
            }
            Err(error) => {
                known.error = Some(error.to_string());
                known.failures = known.failures.saturating_add(1);
                drop(all);
                self.deliver.failed(subscription.id, &error);
            }
        }
    }
}

/// What is behind the lock is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
