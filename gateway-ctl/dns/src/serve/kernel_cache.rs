//! Answers that the dataplane gives again by itself, where the question comes in.
//!
//! Only what has been answered here is repeated, to the same client for the very same question, for a few seconds at most
//! and never beyond a change of anything that answers are made from. What is given there is logged and counted here.

pub mod entry;
mod index;

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher as _, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_common::wire::{AnswerGiven, AnswerKey, AnswerValue};
use jiff::Timestamp;

pub use entry::Holds;
use entry::{Span, key, value};
use index::Kept;

use crate::hooks::Client;
use crate::query_log::{Draft, Log, Told};
use crate::serve::settings::Blocking;
use crate::serve::{Moment, Shared, Trace, Transport};

/// The dataplane's side.
pub trait Dataplane: Send + Sync + 'static {
    /// Entries of other epochs do not hold from when it returns.
    fn set_epoch(&self, epoch: u64);
    fn put(&self, key: &AnswerKey, value: &AnswerValue);
    fn remove(&self, keys: &[AnswerKey]);
    /// What was given since the last call.
    fn given(&self, tell: &mut dyn FnMut(AnswerGiven));
}

/// The longest that an answer is repeated without being looked at.
const LONGEST: Duration = Duration::from_secs(10);
/// What has less time left is not worth the effort.
const SHORTEST: Duration = Duration::from_millis(200);

/// How often the log is told of what was given, and when there is nothing to give.
const TICK: Duration = Duration::from_millis(25);
const IDLE: Duration = Duration::from_millis(200);
/// Between two looks for what has ended.
const ROUNDS: u32 = 32;

pub struct Repeater {
    dataplane: Option<Box<dyn Dataplane>>,
    epoch: AtomicU64,
    kept: Mutex<Kept>,
    log: Arc<Log>,
    lane: usize,
    told: AtomicU64,
    ended: AtomicBool,
}

/// An answer that may be repeated.
pub struct Offer<'a> {
    pub from: IpAddr,
    /// Address of ours that was asked.
    pub server: IpAddr,
    pub interface: u32,
    pub question: &'a [u8],
    pub answer: &'a [u8],
    pub client: &'a Arc<Client>,
    pub trace: &'a Trace,
    pub holds: Holds,
    /// Read before the answer was made.
    pub epoch: u64,
}

impl Repeater {
    /// Logs into this lane. Without a dataplane nothing is repeated.
    pub fn new(dataplane: Option<Box<dyn Dataplane>>, log: Arc<Log>, lane: usize) -> Repeater {
        let (kept, told, ended) = Default::default();
        let repeater = Repeater { dataplane, epoch: AtomicU64::new(0), kept, log, lane, told, ended };
        repeater.turn();
        repeater
    }

    pub fn works(&self) -> bool {
        self.dataplane.is_some()
    }

    /// To be read before what answers are made from is.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Something has changed that answers are made from: nothing made before is repeated from when this returns.
    pub fn turn(&self) {
        let _alone = self.lock();
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        if let Some(dataplane) = &self.dataplane {
            dataplane.set_epoch(epoch);
        }
    }

    /// Answers that the dataplane has given since the start.
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    pub fn offer(&self, offer: &Offer<'_>, blocking: &Blocking, now: Moment) {
        let Some(dataplane) = &self.dataplane else { return };
        let mono = monotonic();
        let Some(span) = span(offer.holds, blocking, now, mono) else { return };
        let Some(key) = key(offer.from, offer.server, offer.interface, offer.question) else { return };
        let Some(mut value) = value(&key, offer.answer, span) else { return };
        value.epoch = offer.epoch;
        let (time, elapsed, transport) = (Timestamp::UNIX_EPOCH, Duration::ZERO, Transport::Udp);
        let Offer { from, client, trace, answer: message, .. } = *offer;
        let draft = Draft::of(&Told { time, elapsed, from, client, transport, trace, message });
        if self.lock().add(&key, &mut value, draft).is_some() {
            dataplane.put(&key, &value);
        }
    }

    /// Logs what was given.
    pub fn collect(&self) {
        let Some(dataplane) = &self.dataplane else { return };
        let (kept, mut pen) = (self.lock(), self.log.lane(self.lane).open());
        let since_boot = i128::from(monotonic());
        let boot = i64::try_from(self.log.wall().now().as_nanosecond() - since_boot).unwrap_or(0);
        let mut told = 0;
        dataplane.given(&mut |given| {
            told += 1;
            match kept.find(given.id) {
                Some(entry) => pen.write_again(&entry.draft, boot.saturating_add_unsigned(given.time)),
                None => pen.lose(),
            }
        });
        self.told.fetch_add(told, Ordering::Relaxed);
    }

    /// Forgets what has ended.
    pub fn sweep(&self) {
        let Some(dataplane) = &self.dataplane else { return };
        let gone = self.lock().sweep(monotonic());
        dataplane.remove(&gone);
    }

    /// Nothing is repeated any more, and [`Shared::repeat`] returns.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.turn();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Keeps the log and the room for answers in order, until the end.
    pub fn repeat(&self) {
        crate::give_way();
        let mut rounds: u32 = 0;
        while !self.repeater.ended.load(Ordering::Acquire) {
            let idle = self.repeater.lock().len() == 0;
            std::thread::sleep(if idle { IDLE } else { TICK });
            self.repeater.collect();
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS) {
                self.repeater.sweep();
            }
        }
        self.repeater.collect();
    }
}

/// From when to when an answer holds; none when that is not worth it. Schedules change at full minutes, and a pause of
/// blocking ends at its instant.
fn span(holds: Holds, blocking: &Blocking, now: Moment, mono: u64) -> Option<Span> {
    let nanos = |ms: u64| ms.saturating_mul(1_000_000);
    let (since, left) = match holds {
        Holds::Once => return None,
        Holds::Fixed => (None, LONGEST),
        Holds::Ageing { since, until } => {
            let since = mono.saturating_sub(nanos(now.ms.saturating_sub(since)));
            (Some(since), LONGEST.min(Duration::from_millis(until.saturating_sub(now.ms))))
        }
    };
    let second = u64::try_from(now.wall.as_second().rem_euclid(60)).ok()?;
    let passed = Duration::from_nanos(u64::try_from(now.wall.subsec_nanosecond()).unwrap_or(0));
    let minute = Duration::from_secs(60 - second).saturating_sub(passed);
    let pause = blocking.paused_until.map(|until| until.duration_since(now.wall)).filter(|d| d.is_positive());
    let pause = pause.and_then(|left| Duration::try_from(left).ok()).unwrap_or(LONGEST);
    let left = left.min(minute).min(pause);
    let until = mono.saturating_add(u64::try_from(left.as_nanos()).ok()?);
    (left >= SHORTEST).then_some(Span { since, now: mono, until })
}

/// The clock of the dataplane.
fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs())
}

/// Which questions came before lately, as far as one worker saw: what is asked once is not worth an entry.
pub struct Seen {
    /// By the place of the hash, newest first: several, or two questions that meet there would each time put the other out.
    marks: Box<[[u32; WAYS]]>,
    hasher: rapidhash::fast::RandomState,
}

const PLACES: usize = 1 << 14;
const WAYS: usize = 4;
/// Milliseconds that count as lately.
const LATELY: u64 = 8192;

impl Default for Seen {
    fn default() -> Seen {
        Seen { marks: vec![[0; WAYS]; PLACES].into(), hasher: Default::default() }
    }
}

impl Seen {
    pub fn before(&mut self, from: IpAddr, message: &[u8], now: Moment) -> bool {
        let mut hasher = self.hasher.build_hasher();
        from.hash(&mut hasher);
        hasher.write(message.get(2..).unwrap_or_default());
        hasher.write_u64(now.ms / LATELY);
        let hash = hasher.finish();
        let marks = &mut self.marks[hash as usize % PLACES];
        // The low bits are the place.
        let tag = (hash >> 32) as u32;
        let before = marks.contains(&tag);
        if !before {
            marks.rotate_right(1);
            marks[0] = tag;
        }
        before
    }
}
