//! Copies of zones that others have: fetched over TCP (RFC 5936), looked after by the times that the zone itself gives
//! (RFC 1034, section 4.3.5), kept on disk for the next start, and given up when nobody vouches for them any more.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_core::dns::table::Key;
use gateway_core::dns::zones::{Copy, Times};
use gateway_core::dns::{Name, NameRef};
use gateway_model::Id;
use gateway_outbound::backoff::{Backoff, up_to_a_tenth_less};
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::erase::erase_files_of;
use crate::seam::{Place, Server, Supervise};
use crate::upstream::Context;

mod disk;
mod fetch;
pub mod reader;
#[cfg(test)]
mod tests;

pub use crate::seam::Secondary;
pub use fetch::Error;

use fetch::Looked;

/// Bounds for what a zone says of itself: shorter is a burden, longer is never.
const SHORTEST: u32 = 30;
const LONGEST: u32 = 28 * 24 * 3600;
/// Waits after failures while there is no copy.
const RETRY: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(600));
/// From one look to the next that somebody asks for.
const APART: Duration = Duration::from_secs(5);

/// How a copy stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// None: there is none that holds.
    pub serial: Option<u32>,
    pub records: usize,
    /// When it came.
    pub last_updated: Option<Timestamp>,
    /// When it was last known to be what its servers have.
    pub checked: Option<Timestamp>,
    /// When it is given up unless that is known again.
    pub expires: Option<Timestamp>,
    /// Of the last look, if it failed.
    pub error: Option<String>,
}

/// What is done with a copy: it takes the place of the one before, or none does.
pub trait Deliver: Send + Sync + 'static {
    fn deliver(&self, id: Id, copy: Option<Copy>);
    /// The last look at a zone failed; for alerts.
    fn failed(&self, zone: &Name, error: &Error);
}

/// All zones that there are copies of.
pub struct Secondaries {
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
}

struct Running {
    zone: Secondary,
    now: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is known of one zone.
#[derive(Clone, Debug, Default)]
struct Known {
    held: Option<Held>,
    error: Option<String>,
    failures: u32,
}

/// A copy that holds.
#[derive(Clone, Debug)]
struct Held {
    head: disk::Head,
    serial: u32,
    records: usize,
    times: Pace,
    checked: Timestamp,
    /// How long that was ago, then and now: clocks may be set, this is not.
    age: Duration,
    since: Instant,
}

impl Held {
    fn of(fetched: &disk::Whole, checked: Timestamp, age: Duration) -> Held {
        let (serial, records) = (fetched.copy.serial, fetched.copy.records);
        let times = Pace::of(fetched.times);
        Held { head: fetched.head.clone(), serial, records, times, checked, age, since: Instant::now() }
    }

    fn age(&self) -> Duration {
        self.age + self.since.elapsed()
    }

    fn is_expired(&self) -> bool {
        self.age() >= self.times.expire
    }
}

/// When a zone is looked at: within bounds, and never given up before it was looked at twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    refresh: Duration,
    retry: Duration,
    expire: Duration,
}

impl Pace {
    fn of(times: Times) -> Pace {
        let bounded = |seconds: u32| Duration::from_secs(seconds.clamp(SHORTEST, LONGEST).into());
        let (refresh, retry) = (bounded(times.refresh), bounded(times.retry));
        Pace { refresh, retry, expire: Duration::from_secs(times.expire.into()).max(refresh + retry) }
    }
}

/// Whether a serial number is past another (RFC 1982, section 3.2).
pub fn is_newer(serial: u32, than: u32) -> bool {
    serial != than && serial.wrapping_sub(than) < 1 << 31
}

impl Secondaries {
    /// Copies are kept in the folder, which has to be there.
    pub fn new(
        folder: PathBuf,
        key: Key,
        context: Arc<Context>,
        deliver: impl Deliver,
        supervisor: Arc<dyn Supervise>,
    ) -> Secondaries {
        let known = Mutex::default();
        let shared = Arc::new(Shared { folder, key, context, deliver: Box::new(deliver), known });
        Secondaries { shared, supervisor, running: Mutex::default() }
    }

    /// Reads the copies of these zones and delivers those that still hold. It takes its time: not for a thread that serves.
    pub fn load(&self, zones: &[Secondary]) {
        for zone in zones {
            self.shared.load(zone, Timestamp::now());
        }
    }

    /// From now on there are copies of these zones, and of no others.
    pub fn set(&self, zones: &[Secondary]) {
        let mut running = lock(&self.running);
        running.retain(|_, one| zones.contains(&one.zone));
        let gone = |id: &Id| !zones.iter().any(|zone| zone.id == *id);
        let dropped: Vec<Id> =
            lock(&self.shared.known).extract_if(.., |id, _| gone(id)).map(|(id, _)| id).collect();
        // Nobody would see to it that it still holds.
        dropped.into_iter().for_each(|id| self.shared.deliver.deliver(id, None));
        for zone in zones {
            running.entry(zone.id).or_insert_with(|| {
                // A copy by a server that is not asked any more may be another zone's.
                let by_others =
                    |known: &mut Known| known.held.as_ref().is_some_and(|held| !held.head.is_of(zone));
                let mut known = lock(&self.shared.known);
                let dropped = known.get_mut(&zone.id).is_some_and(by_others);
                if dropped {
                    known.remove(&zone.id);
                }
                drop(known);
                if dropped {
                    self.shared.deliver.deliver(zone.id, None);
                }
                let now = Arc::new(Notify::new());
                let (shared, one, wake) = (self.shared.clone(), zone.clone(), now.clone());
                let start = move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
                    let (shared, one, wake) = (shared.clone(), one.clone(), wake.clone());
                    Box::pin(async move { shared.keep(&one, &wake).await })
                };
                let name = format!("dns_zone {}", zone.zone);
                let task = self.supervisor.restart_until_done(name, Box::new(start));
                Running { zone: zone.clone(), now, task }
            });
        }
        let ids: Vec<Id> = running.keys().copied().collect();
        drop(running);
        disk::COPIES.forget_others(&self.shared.folder, &ids);
    }

    /// Erases the copies on disk. The zones that were read stay in use; the next start transfers them.
    pub fn erase_copies(&self) -> std::io::Result<()> {
        erase_files_of(&self.shared.folder)
    }

    /// One of the servers says that the zone has changed (RFC 1996). False if it is none of them.
    pub fn notified(&self, zone: NameRef<'_>, from: IpAddr) -> bool {
        let running = lock(&self.running);
        let Some(running) = running.values().find(|running| running.zone.zone.as_ref() == zone) else {
            return false;
        };
        let is_it = |server: &Server| matches!(server.place, Place::Address(address) if address.ip() == from);
        let known = running.zone.servers.iter().any(is_it);
        if known {
            running.now.notify_one();
        }
        known
    }

    pub fn status(&self, id: Id) -> Status {
        lock(&self.shared.known).get(&id).map(Known::status).unwrap_or_default()
    }
}

impl Known {
    fn status(&self) -> Status {
        let error = self.error.clone();
        let Some(held) = &self.held else { return Status { error, ..Status::default() } };
        let expire = jiff::SignedDuration::try_from(held.times.expire).unwrap_or_default();
        Status {
            serial: Some(held.serial),
            records: held.records,
            last_updated: Some(held.head.fetched),
            checked: Some(held.checked),
            expires: held.checked.checked_add(expire).ok(),
            error,
        }
    }

    /// Until the next look.
    fn wait(&self) -> Duration {
        match (&self.held, self.failures) {
            (None, 0) => Duration::ZERO,
            (None, failures) => up_to_a_tenth_less(RETRY.after(failures)),
            (Some(held), 0) => up_to_a_tenth_less(held.times.refresh).saturating_sub(held.age()),
            (Some(held), _) => {
                // It is given up in time, not when somebody happens to look.
                up_to_a_tenth_less(held.times.retry).min(held.times.expire.saturating_sub(held.age()))
            }
        }
    }
}

impl Shared {
    fn load(&self, zone: &Secondary, now: Timestamp) {
        match disk::read(&self.folder, zone, self.key) {
            Ok(Some((whole, checked))) => {
                // A clock that is behind says nothing of the age.
                let age = now.duration_since(checked).try_into().unwrap_or_default();
                let held = Held::of(&whole, checked, age);
                if held.is_expired() {
                    return;
                }
                let known = Known { held: Some(held), ..Known::default() };
                lock(&self.known).insert(zone.id, known);
                self.deliver.deliver(zone.id, Some(whole.copy));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(zone = %zone.zone, %error, "the copy of a zone cannot be read"),
        }
    }

    /// Looks at a zone whenever it is due; first at once, as nothing is known of the time before the start.
    async fn keep(&self, zone: &Secondary, wake: &Notify) {
        loop {
            let began = Instant::now();
            self.look(zone).await;
            let wait = lock(&self.known).entry(zone.id).or_default().wait();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = async {
                    wake.notified().await;
                    tokio::time::sleep_until(began + APART).await;
                } => {}
            }
        }
    }

    async fn look(&self, zone: &Secondary) {
        let have = lock(&self.known).get(&zone.id).and_then(|known| Some(known.held.as_ref()?.serial));
        let looked = fetch::look(&self.context, zone, have, self.key).await;
        let now = Timestamp::now();
        match looked {
            Ok(Looked::Same) => {
                if let Err(error) = disk::COPIES.checked(&self.folder, zone.id) {
                    tracing::warn!(zone = %zone.zone, %error, "that the copy of a zone holds cannot be kept");
                }
                let mut all = lock(&self.known);
                let known = all.entry(zone.id).or_default();
                (known.error, known.failures) = (None, 0);
                if let Some(held) = &mut known.held {
                    (held.checked, held.age, held.since) = (now, Duration::ZERO, Instant::now());
                }
            }
            Ok(Looked::New(fetched)) => {
                // It serves as well without a copy on disk.
                if let Err(error) = self.write(zone.id, &fetched).await {
                    tracing::warn!(zone = %zone.zone, %error, "the copy of a zone cannot be kept");
                }
                let held = Some(Held::of(&fetched.whole, now, Duration::ZERO));
                lock(&self.known).insert(zone.id, Known { held, ..Known::default() });
                self.deliver.deliver(zone.id, Some(fetched.whole.copy.clone()));
            }
            Err(error) => {
                let mut all = lock(&self.known);
                let known = all.entry(zone.id).or_default();
                known.error = Some(error.to_string());
                known.failures = known.failures.saturating_add(1);
                let expired = known.held.take_if(|held| held.is_expired()).is_some();
                drop(all);
                if expired {
                    self.deliver.deliver(zone.id, None);
                    disk::COPIES.forget(&self.folder, zone.id);
                }
                self.deliver.failed(&zone.zone, &error);
            }
        }
    }

    async fn write(&self, id: Id, fetched: &Arc<fetch::Fetched>) -> std::io::Result<()> {
        let (folder, fetched) = (self.folder.clone(), fetched.clone());
        let written =
            tokio::task::spawn_blocking(move || disk::write(&folder, id, &fetched.whole.head, &fetched.body));
        written.await.map_err(std::io::Error::other)?
    }
}

/// What is behind the lock is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
