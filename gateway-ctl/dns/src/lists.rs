//! Downloaded lists: kept up to date and delivered after parsing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use gateway_core::dns::domain_set::Key;
use gateway_core::dns::lists::{List, Report};
use gateway_model::Id;
use gateway_outbound::backoff::{Backoff, up_to_a_tenth_less};
use ipnet::IpNet;
use jiff::Timestamp;

use crate::downloads::{DiskCache, Download, DownloadState, Downloads, HeldCopy, Stored};
use crate::hooks::Supervise;
use crate::upstream::Context;

mod copy;
mod error;
mod fetch;
mod subscription;
#[cfg(test)]
mod tests;
mod total;

pub use error::Error;
use fetch::PreviousList;
pub use subscription::{Limits, Subscription};
use total::TotalEntries;

/// Waits after failures.
const RETRY: Backoff = Backoff::new(Duration::from_secs(60), Duration::from_secs(6 * 3600));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Older than its interval.
    Stale,
    /// No list, for the reported reason.
    Error,
}

/// State of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `None` before the first download.
    pub state: Option<State>,
    /// Result of reading the list in use.
    pub report: Option<Report>,
    /// Time at which its contents were downloaded.
    pub last_updated: Option<Timestamp>,
    pub next_update: Option<Timestamp>,
    pub etag: Option<String>,
    /// Error of the last check, if it failed.
    pub error: Option<String>,
}

/// Receiver of lists that were read. A list replaces the one before.
pub trait Deliver: Send + Sync + 'static {
    fn deliver(&self, id: Id, list: List);
    /// Called after a successful check, whether or not the list had changed.
    fn succeeded(&self, id: Id);
    /// Called after a failed check.
    fn failed(&self, id: Id, error: &Error);
}

/// All lists that are kept up to date.
pub struct Subscriptions(Downloads<ListDownload>);

struct ListDownload {
    key: Key,
    context: Arc<Context>,
    deliver: Box<dyn Deliver>,
    total: Arc<TotalEntries>,
    /// Networks of this host. No list is fetched from them unless its limits allow it.
    own: ArcSwap<Vec<IpNet>>,
}

/// Description of a list in use.
#[derive(Clone, Debug)]
struct ListCopy {
    head: copy::ListHeader,
    report: Report,
    keeps_servers: bool,
}

impl Subscriptions {
    /// Opens the disk cache in the folder, which must exist.
    pub fn new(
        folder: PathBuf,
        key: Key,
        context: Arc<Context>,
        deliver: impl Deliver,
        supervisor: Arc<dyn Supervise>,
    ) -> Subscriptions {
        let (deliver, own, total) = (Box::new(deliver), ArcSwap::default(), Arc::default());
        let kind = ListDownload { key, context, deliver, total, own };
        Subscriptions(Downloads::new(kind, folder, supervisor))
    }

    /// Reads the cached lists and delivers them. Slow: not for a thread that serves queries.
    pub fn load(&self, subscriptions: &[Subscription]) {
        self.0.load(subscriptions);
    }

    /// Keeps these lists up to date from now on. Cached files of all others are deleted.
    pub fn set(&self, subscriptions: &[Subscription]) {
        self.0.kind().total.retain(|id| subscriptions.iter().any(|one| one.id == id));
        self.0.set(subscriptions);
    }

    /// Sets the networks of this host, LANs and own addresses.
    pub fn set_own_networks(&self, own: Vec<IpNet>) {
        self.0.kind().own.store(Arc::new(own));
    }

    /// Erases the disk cache. Loaded lists stay in use; the next start fetches them.
    pub fn erase_copies(&self) -> io::Result<()> {
        self.0.erase_copies()
    }

    /// Checks a list now. Returns false for an unknown list.
    pub fn refresh(&self, id: Id) -> bool {
        self.0.check_now(|subscription| subscription.id == id)
    }

    pub fn status(&self, id: Id, now: Timestamp) -> Status {
        let every = self.0.item(id).map(|subscription| subscription.every);
        self.0.state(id).map(|state| status(state, every, now)).unwrap_or_default()
    }
}

fn status(list: DownloadState<ListCopy>, every: Option<Duration>, now: Timestamp) -> Status {
    let age = list.held.as_ref().map(|held| now.duration_since(held.checked).unsigned_abs());
    let is_old = every.zip(age).is_some_and(|(every, age)| age > every + every / 4);
    let state = match (&list.held, &list.error) {
        (Some(_), _) if is_old => Some(State::Stale),
        (Some(_), _) => Some(State::Ok),
        (None, Some(_)) => Some(State::Error),
        (None, None) => None,
    };
    let (head, report) = list.held.map(|held| (held.copy.head, held.copy.report)).unzip();
    Status {
        state,
        report,
        last_updated: head.as_ref().map(|head| head.fetched),
        next_update: list.next,
        etag: head.and_then(|head| head.etag),
        error: list.error,
    }
}

impl Download for ListDownload {
    type Item = Subscription;
    type Copy = ListCopy;
    type Content = List;
    type Error = Error;

    const DISK: DiskCache = copy::COPIES;
    const CHECKS_AT_START: bool = false;
    const MIN_INTERVAL: Duration = Duration::ZERO;

    fn id(subscription: &Subscription) -> Id {
        subscription.id
    }

    fn task_name(subscription: &Subscription) -> String {
        format!("dns_list {}", subscription.id)
    }

    fn is_copy_of(copy: &ListCopy, subscription: &Subscription) -> bool {
        copy.head.url == subscription.url && copy.keeps_servers == subscription.keeps_servers
    }

    /// Spreads the checks, so that gateways do not all request a list at once.
    fn wait(subscription: &Subscription, list: &DownloadState<ListCopy>, now: Timestamp) -> Duration {
        match (list.failures, &list.held) {
            (0, None) => Duration::ZERO,
            (0, Some(held)) => {
                let age = now.duration_since(held.checked).unsigned_abs();
                up_to_a_tenth_less(subscription.every).saturating_sub(age)
            }
            (failures, _) => up_to_a_tenth_less(RETRY.after(failures).min(subscription.every)),
        }
    }

    fn read(&self, folder: &Path, subscription: &Subscription) -> io::Result<Option<Stored<ListDownload>>> {
        let Some(copy::Copy { head, list, checked }) = copy::read(folder, subscription, self.key)? else {
            return Ok(None);
        };
        // The bound may have been lowered since the list was fetched.
        let max = subscription.limits.max_total_entries;
        self.total.reserve(subscription.id, list.report.taken, max).map_err(io::Error::other)?;
        let keeps_servers = subscription.keeps_servers;
        let copy = ListCopy { head, report: list.report.clone(), keeps_servers };
        Ok(Some(Stored { copy, content: list, checked }))
    }

    async fn fetch(
        &self,
        folder: &Path,
        subscription: &Subscription,
        have: Option<&HeldCopy<ListCopy>>,
    ) -> Result<Option<(ListCopy, List)>, Error> {
        let before = have.map(|held| PreviousList {
            head: held.copy.head.clone(),
            entries: held.copy.report.taken,
            age: held.age(),
        });
        let own = self.own.load_full();
        let bounds = (&own[..], &self.total);
        let fetched = fetch::check(&self.context, folder, self.key, (subscription, bounds), before).await?;
        let keeps_servers = subscription.keeps_servers;
        let copy = |head, list: &List| ListCopy { head, report: list.report.clone(), keeps_servers };
        Ok(fetched.map(|(head, list)| (copy(head, &list), list)))
    }

    fn deliver(&self, id: Id, list: List) {
        self.deliver.deliver(id, list);
    }

    fn succeeded(&self, id: Id) {
        self.deliver.succeeded(id);
    }

    fn failed(&self, subscription: &Subscription, error: &Error) {
        self.deliver.failed(subscription.id, error);
    }
}
