//! Permits for networks of tests, of all test programs that run at the same time. Most tests wait more than they compute,
//! so many networks fit on few processors. How many depends on what they do just then: some networks always may exist,
//! more only while the processors are idle. Decision 0198 says why.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::Result;

use crate::processor_load::Sample;
use crate::wait::wait_until;

/// Longest wait for a permit. Tests of other programs hold them for minutes at most.
const LONGEST: Duration = Duration::from_secs(1_800);
/// Time after which a new network shows in the load: its daemon starts meanwhile.
const SHOWN: Duration = Duration::from_millis(700);
/// Share of the processors' time below which one more network may start.
const IDLE: f64 = 0.7;
/// Name of the sockets of permits.
const PERMIT: &str = "network";
/// Name of the socket of the one test that is next.
const NEXT: &str = "next-network";

/// Permit for the networks of one test. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct NetworkPermit {
    /// A test that holds a permit takes none for its second network. Otherwise tests could wait for each other forever.
    name: Option<Name>,
}

/// A name that one process of the system holds at a time. The kernel frees it with the process, however it ends.
#[derive(Debug)]
struct Name(#[expect(dead_code, reason = "holds the name")] UnixListener);

impl Name {
    fn take(label: &str, number: usize) -> Option<Self> {
        let address = SocketAddr::from_abstract_name(format!("gateway-tests-{label}-{number}")).ok()?;
        UnixListener::bind_addr(&address).ok().map(Self)
    }
}

/// Numbers of networks: those that may exist whatever the load is, and those at most.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    always: usize,
    most: usize,
}

impl Bounds {
    fn of_this_machine() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self { always: processors + 1, most: 3 * processors }
    }
}

thread_local! {
    static HAS_PERMIT: Cell<bool> = const { Cell::new(false) };
}

impl NetworkPermit {
    /// Waits for a permit.
    pub(crate) fn take() -> Result<Self> {
        if HAS_PERMIT.replace(true) {
            return Ok(Self { name: None });
        }
        match take_name(PERMIT, Bounds::of_this_machine()) {
            Ok(name) => Ok(Self { name: Some(name) }),
            Err(error) => {
                HAS_PERMIT.set(false);
                Err(error)
            }
        }
    }
}

impl Drop for NetworkPermit {
    fn drop(&mut self) {
        if self.name.is_some() {
            HAS_PERMIT.set(false);
        }
    }
}

/// Waits for one of the names. One test of the system does so at a time, so that each sees the load of those before it.
fn take_name(label: &str, bounds: Bounds) -> Result<Name> {
    static NEXT_HERE: Mutex<()> = Mutex::new(());
    let _next_here = NEXT_HERE.lock().unwrap_or_else(PoisonError::into_inner);
    let _next = wait_until(LONGEST, "the turn of this test program", || Name::take(NEXT, 0))?;
    let mut sample = Sample::take();
    wait_until(LONGEST, "a permit for a network", || {
        let mut is_idle = || match sample {
            Some(since) if since.age() >= SHOWN => {
                sample = Sample::take();
                since.busy_for_us() < IDLE
            }
            _ => false,
        };
        free_name(label, bounds, &mut is_idle)
    })
}

/// Returns a free name if the bounds permit another one.
fn free_name(label: &str, bounds: Bounds, is_idle: &mut impl FnMut() -> bool) -> Option<Name> {
    let mut free: Vec<Name> = (0..bounds.most).filter_map(|number| Name::take(label, number)).collect();
    let held = bounds.most - free.len();
    let permitted = held < bounds.always || (!free.is_empty() && is_idle());
    if permitted { free.pop() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { always: 2, most: 3 };

    /// Returns a label that no other process uses.
    fn label(test: &str) -> String {
        format!("{test}-{}", std::process::id())
    }

    #[test]
    fn some_permits_are_independent_of_the_load_and_the_others_wait_for_idle_processors() {
        let label = label("load");
        let take = |idle: bool| free_name(&label, BOUNDS, &mut || idle);
        let mut held: Vec<Name> = (0..2).map(|_| take(false).expect("a permit")).collect();
        assert!(take(false).is_none());
        held.push(take(true).expect("a permit of an idle machine"));
        assert!(take(true).is_none(), "there are three");
        held.clear();
        assert!(take(false).is_some());
    }

    #[test]
    fn a_name_has_one_holder_and_is_free_after_it() {
        let label = label("holder");
        let held = Name::take(&label, 0).expect("free");
        assert!(Name::take(&label, 0).is_none());
        drop(held);
        assert!(Name::take(&label, 0).is_some());
    }

    #[test]
    fn second_network_of_a_test_needs_no_permit() {
        let first = NetworkPermit::take().expect("a permit");
        let second = NetworkPermit::take().expect("none is needed");
        assert!(first.name.is_some() && second.name.is_none());
        drop(second);
        drop(first);
        assert!(!HAS_PERMIT.get());
    }
}
