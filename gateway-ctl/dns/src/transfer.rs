//! Secondary zones: transferred over TCP (RFC 5936), refreshed by the timers of the zone (RFC 1034, section 4.3.5), and
//! expired when no primary confirms them any more.
//!
//! An old copy may be wrong, and public DNS may answer its names differently. So the lifetime counts from the last
//! confirmation by a primary, on a clock that cannot be set, and over restarts by the time of the file; after it the
//! zone is SERVFAIL. A zone is transferred whole (AXFR), an unexpected message ends the transfer and the previous copy
//! stays. A primary with an older serial number is an error: the zone does not go back.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::domain_set::Key;
use gateway_core::dns::zones::{Copy, Times};
use gateway_core::dns::{Name, NameRef};
use gateway_model::Id;
use gateway_outbound::backoff::{Backoff, up_to_a_tenth_less};
use jiff::Timestamp;

use crate::downloads::{DiskCache, Download, DownloadState, Downloads, HeldCopy, Stored};
use crate::hooks::{Server, ServerAddress, Supervise};
use crate::upstream::Context;

mod disk;
mod fetch;
pub(crate) mod reader;
#[cfg(test)]
mod tests;

pub use crate::hooks::Secondary;
pub use fetch::{Error, is_newer};

use fetch::SerialCheck;

/// Bounds for the timers of a zone.
const MIN_REFRESH_SECONDS: u32 = 30;
const MAX_REFRESH_SECONDS: u32 = 28 * 24 * 3600;
/// Retry intervals while there is no zone.
const RETRY: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(600));
/// State of a secondary zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// None: there is none that holds.
    pub serial: Option<u32>,
    pub records: usize,
    /// Time of the last transfer.
    pub last_updated: Option<Timestamp>,
    /// Time at which the zone was last known to equal that of its primaries.
    pub checked: Option<Timestamp>,
    /// Time at which the zone expires unless it is confirmed before.
    pub expires: Option<Timestamp>,
    /// Error of the last refresh, if it failed.
    pub error: Option<String>,
}

/// Receiver of secondary zones. A zone replaces the one before; `None` removes it.
pub trait Deliver: Send + Sync + 'static {
    fn deliver(&self, id: Id, copy: Option<Copy>);
    /// Called after a failed refresh, for alerts.
    fn failed(&self, zone: &Name, error: &Error);
}

/// All secondary zones.
pub struct Secondaries(Downloads<ZoneTransfer>);

struct ZoneTransfer {
    key: Key,
    context: Arc<Context>,
    deliver: Box<dyn Deliver>,
}

/// Description of a zone in use.
#[derive(Clone, Debug)]
struct ZoneCopy {
    head: disk::ZoneHeader,
    serial: u32,
    records: usize,
    times: RefreshSchedule,
}

impl ZoneCopy {
    fn of(whole: &disk::CompleteZone) -> ZoneCopy {
        let (serial, records) = (whole.copy.serial, whole.copy.records);
        ZoneCopy { head: whole.head.clone(), serial, records, times: RefreshSchedule::of(whole.times) }
    }
}

/// Schedule of refreshes of a zone: within bounds, with at least two refreshes before it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RefreshSchedule {
    refresh: Duration,
    retry: Duration,
    expire: Duration,
}

impl RefreshSchedule {
    fn of(times: Times) -> RefreshSchedule {
        let bounded = |seconds: u32| {
            Duration::from_secs(seconds.clamp(MIN_REFRESH_SECONDS, MAX_REFRESH_SECONDS).into())
        };
        let (refresh, retry) = (bounded(times.refresh), bounded(times.retry));
        RefreshSchedule {
            refresh,
            retry,
            expire: Duration::from_secs(times.expire.into()).max(refresh + retry),
        }
    }
}

impl Secondaries {
    /// Opens the disk cache in the folder, which must exist.
    pub fn new(
        folder: PathBuf,
        key: Key,
        context: Arc<Context>,
        deliver: impl Deliver,
        supervisor: Arc<dyn Supervise>,
    ) -> Secondaries {
        let kind = ZoneTransfer { key, context, deliver: Box::new(deliver) };
        Secondaries(Downloads::new(kind, folder, supervisor))
    }

    /// Reads the cached zones and delivers those that have not expired. Slow: not for a thread that serves queries.
    pub fn load(&self, zones: &[Secondary]) {
        self.0.load(zones);
    }

    /// Keeps these zones from now on, and no others.
    pub fn set(&self, zones: &[Secondary]) {
        self.0.set(zones);
    }

    /// Erases the disk cache. Loaded zones stay in use; the next start transfers them.
    pub fn erase_copies(&self) -> io::Result<()> {
        self.0.erase_copies()
    }

    /// Handles a NOTIFY of a primary (RFC 1996). Returns false if the sender is not a primary.
    pub fn notified(&self, zone: NameRef<'_>, from: IpAddr) -> bool {
        let is_it =
            |server: &Server| matches!(server.place, ServerAddress::Address(address) if address.ip() == from);
        self.0.check_now(|one| one.zone.as_ref() == zone && one.servers.iter().any(is_it))
    }

    pub fn status(&self, id: Id) -> Status {
        self.0.state(id).map(status).unwrap_or_default()
    }
}

fn status(zone: DownloadState<ZoneCopy>) -> Status {
    let error = zone.error;
    let Some(HeldCopy { copy, checked, .. }) = zone.held else {
        return Status { error, ..Status::default() };
    };
    let expire = jiff::SignedDuration::try_from(copy.times.expire).unwrap_or_default();
    Status {
        serial: Some(copy.serial),
        records: copy.records,
        last_updated: Some(copy.head.fetched),
        checked: Some(checked),
        expires: checked.checked_add(expire).ok(),
        error,
    }
}

/// Returns the wait until the next check.
fn wait(zone: &DownloadState<ZoneCopy>) -> Duration {
    match (&zone.held, zone.failures) {
        (None, 0) => Duration::ZERO,
        (None, failures) => up_to_a_tenth_less(RETRY.after(failures)),
        (Some(held), 0) => up_to_a_tenth_less(held.copy.times.refresh).saturating_sub(held.age()),
        (Some(held), _) => {
            // A zone expires at its time, not at the next refresh.
            let left = held.copy.times.expire.saturating_sub(held.age());
            up_to_a_tenth_less(held.copy.times.retry).min(left)
        }
    }
}

impl Download for ZoneTransfer {
    type Item = Secondary;
    type Copy = ZoneCopy;
    type Content = Copy;
    type Error = Error;

    const DISK: DiskCache = disk::COPIES;
    // The zone may have changed while the daemon was down.
    const CHECKS_AT_START: bool = true;
    const MIN_INTERVAL: Duration = Duration::from_secs(5);

    fn id(zone: &Secondary) -> Id {
        zone.id
    }

    fn task_name(zone: &Secondary) -> String {
        format!("dns_zone {}", zone.zone)
    }

    fn is_copy_of(copy: &ZoneCopy, zone: &Secondary) -> bool {
        copy.head.is_of(zone)
    }

    fn is_expired(held: &HeldCopy<ZoneCopy>) -> bool {
        held.age() >= held.copy.times.expire
    }

    fn wait(_: &Secondary, zone: &DownloadState<ZoneCopy>, _: Timestamp) -> Duration {
        wait(zone)
    }

    fn read(&self, folder: &Path, zone: &Secondary) -> io::Result<Option<Stored<ZoneTransfer>>> {
        let stored = disk::read(folder, zone, self.key)?;
        Ok(stored.map(|(whole, checked)| Stored { copy: ZoneCopy::of(&whole), content: whole.copy, checked }))
    }

    async fn fetch(
        &self,
        folder: &Path,
        zone: &Secondary,
        have: Option<&HeldCopy<ZoneCopy>>,
    ) -> Result<Option<(ZoneCopy, Copy)>, Error> {
        let have = have.map(|held| held.copy.serial);
        match fetch::check(&self.context, zone, have, self.key).await? {
            SerialCheck::Same => {
                if let Err(error) = disk::COPIES.checked(folder, zone.id) {
                    tracing::warn!(zone = %zone.zone, %error, "failed to store the confirmation of a secondary zone");
                }
                Ok(None)
            }
            SerialCheck::New(fetched) => {
                // A zone also serves without its file on disk.
                if let Err(error) = write(folder, zone.id, &fetched).await {
                    tracing::warn!(zone = %zone.zone, %error, "failed to store a secondary zone");
                }
                Ok(Some((ZoneCopy::of(&fetched.whole), fetched.whole.copy.clone())))
            }
        }
    }

    fn deliver(&self, id: Id, copy: Copy) {
        self.deliver.deliver(id, Some(copy));
    }

    fn withdraw(&self, id: Id) {
        self.deliver.deliver(id, None);
    }

    fn failed(&self, zone: &Secondary, error: &Error) {
        self.deliver.failed(&zone.zone, error);
    }
}

async fn write(folder: &Path, id: Id, fetched: &Arc<fetch::Fetched>) -> io::Result<()> {
    let (folder, fetched) = (folder.to_owned(), fetched.clone());
    let written =
        tokio::task::spawn_blocking(move || disk::write(&folder, id, &fetched.whole.head, &fetched.body));
    written.await.map_err(io::Error::other)?
}
