//! XDP programs of the fast path: their attachment, and the interfaces that they may use.
//!
//! The link of each attachment is pinned. A new daemon puts its own program into it, without a gap and without a reset
//! of the hardware. Native mode only: a driver without it refuses the attachment.
//!
//! Decision 0122 says why, and when they are loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aya::Ebpf;
use aya::maps::xdp::{DevMapHash, XdpMapError};
use aya::maps::{MapData, MapError};
use aya::programs::{ProgramFd, Xdp as XdpProgram};
use gateway_common::maps::{self as spec, MapSpec as _};
use gateway_common::wire::{XdpCounter, XdpLink, xdp_link_index};
use gateway_core::xdp::Obstacle;
use gateway_model::settings::bootstrap::XdpMode;
use gateway_outbound::causes::with_causes;
use parking_lot::Mutex;

use super::Error;
use super::grace::grace;
use super::maps::{ArrayMap, CounterArray, open};
use super::packet_counts::{Counters, sum};
use super::syscall::{self, PinnedTcx};
use super::tail_calls::TailCalls;
use super::verify::Verified;

pub(super) const FORWARD: &str = "gw_xdp";
const EGRESS: &str = "gw_xdp_guard";
/// The programs that answer DNS queries, in the order of their calls.
const ANSWERS: [&str; 4] = ["gw_xdp_reply", "gw_xdp_read", "gw_xdp_lookup", "gw_xdp_block"];
/// Map of the tail calls to them.
const CALLS: &str = "gw_xdp_calls";

/// XDP of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpState {
    pub mode: XdpMode,
    /// The program is attached.
    pub attached: bool,
    /// Frames of other interfaces may leave by it.
    pub sends: bool,
    /// Obstacle to the one or the other.
    pub obstacle: Option<Obstacle>,
}

impl XdpState {
    pub fn without(mode: XdpMode, obstacle: Obstacle) -> XdpState {
        XdpState { mode, attached: false, sends: false, obstacle: Some(obstacle) }
    }
}

/// Statistics of XDP since the start of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpStats {
    pub counters: BTreeMap<XdpCounter, Counters>,
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, XdpState>,
}

/// Handle of the XDP programs.
#[derive(Clone)]
pub struct Xdp(Arc<Mutex<Inner>>);

struct Inner {
    /// The programs, once an interface needs them.
    loaded: Option<Loaded>,
    calls: TailCalls,
    /// The resolver fills the caches from which queries are answered.
    answers: bool,
    links: ArrayMap<spec::XdpLinks>,
    /// Elements of the array that are in use.
    have: BTreeMap<u32, XdpLink>,
    ports: DevMapHash<MapData>,
    counts: CounterArray<spec::XdpCounts>,
    /// Folder of the pins.
    pins: PathBuf,
    states: BTreeMap<String, XdpState>,
}

/// Programs, or the error of the kernel that refused them.
struct Loaded {
    programs: Result<Programs, String>,
    /// The programs that answer DNS queries. Without them, the tcx programs do.
    answers: Result<Vec<ProgramFd>, String>,
}

struct Programs {
    forward: ProgramFd,
    id: u32,
    guard: ProgramFd,
}

impl Xdp {
    pub(super) fn take(ebpf: &mut Ebpf, pins: &Path) -> Result<Xdp, Error> {
        let inner = Inner {
            loaded: None,
            calls: TailCalls::take(ebpf, CALLS)?,
            answers: false,
            links: ArrayMap(open::<spec::XdpLinks, _>(ebpf)?),
            have: BTreeMap::new(),
            ports: open::<spec::XdpPorts, _>(ebpf)?,
            counts: CounterArray(open::<spec::XdpCounts, _>(ebpf)?),
            pins: pins.to_owned(),
            states: BTreeMap::new(),
        };
        Ok(Xdp(Arc::new(Mutex::new(inner))))
    }

    /// Reports whether the kernel has accepted or refused the programs.
    pub(super) fn is_loaded(&self) -> bool {
        self.0.lock().loaded.is_some()
    }

    /// Takes the programs out of the object.
    pub(super) fn set_loaded(&self, ebpf: &mut Ebpf, verified: &mut Verified) {
        let programs = forwarding(ebpf, verified).map_err(|error| with_causes(&error));
        let answers = ANSWERS.into_iter().map(|name| Ok(loaded(ebpf, verified, name)?.1));
        let answers = answers.collect::<Result<_, Error>>().map_err(|error| with_causes(&error));
        let mut inner = self.0.lock();
        inner.loaded = Some(Loaded { programs, answers });
        inner.fill_calls();
    }

    /// Lets the programs answer DNS queries, once they are loaded.
    pub(super) fn answer(&self) {
        let mut inner = self.0.lock();
        inner.answers = true;
        inner.fill_calls();
    }

    pub(super) fn end_answers(&self) -> Result<(), Error> {
        self.0.lock().end_answers()
    }

    /// Reports whether an earlier run has left its programs.
    pub fn is_left(&self) -> io::Result<bool> {
        Ok(!self.0.lock().pinned()?.is_empty())
    }

    /// Attaches the program to the interface with this index, unless it is attached.
    pub fn attach(&self, interface: u32) -> io::Result<()> {
        self.0.lock().attach(interface)
    }

    /// Detaches the programs from all other interfaces.
    pub fn detach_except(&self, keep: &BTreeSet<u32>) -> io::Result<()> {
        self.0.lock().detach_except(keep)
    }

    /// Puts this program into the links of an earlier run. Its program would use entries that no daemon invalidates.
    pub fn adopt(&self) -> io::Result<()> {
        let inner = self.0.lock();
        for (interface, pin) in inner.pinned()? {
            let link = PinnedTcx::open(&pin)?;
            if link.interface != interface {
                // The interface is gone.
                std::fs::remove_file(&pin)?;
                continue;
            }
            let Programs { forward, id, .. } = inner.programs()?;
            if link.program != *id {
                link.replace(forward.as_fd())?;
            }
        }
        Ok(())
    }

    /// Sets the interfaces whose packets the program may take, by index, and those of them that it may send packets to.
    /// Each needs an element of its own in the array.
    pub fn set(&self, links: &BTreeMap<u32, XdpLink>, ports: &BTreeSet<u32>) -> Result<(), Error> {
        self.0.lock().set(links, ports)
    }

    pub(super) fn counts(&self) -> Result<CounterArray<spec::XdpCounts>, Error> {
        self.0.lock().counts.try_clone()
    }

    pub fn counters(&self) -> Result<BTreeMap<XdpCounter, Counters>, Error> {
        let inner = self.0.lock();
        XdpCounter::ALL
            .into_iter()
            .map(|counter| Ok((counter, sum(&inner.counts.get(counter as u32)?))))
            .collect()
    }

    /// Sets the states that [`stats`](Self::stats) returns.
    pub fn set_states(&self, states: BTreeMap<String, XdpState>) {
        self.0.lock().states = states;
    }

    pub fn stats(&self) -> Result<XdpStats, Error> {
        Ok(XdpStats { counters: self.counters()?, interfaces: self.0.lock().states.clone() })
    }
}

/// Returns the programs that forward. A kernel that is too old for them refuses.
fn forwarding(ebpf: &mut Ebpf, verified: &mut Verified) -> Result<Programs, Error> {
    let (id, forward) = loaded(ebpf, verified, FORWARD)?;
    let (_, guard) = loaded(ebpf, verified, EGRESS)?;
    Ok(Programs { forward, id, guard })
}

/// Returns a loaded program and its id.
fn loaded(ebpf: &mut Ebpf, verified: &mut Verified, name: &'static str) -> Result<(u32, ProgramFd), Error> {
    verified.take(name)?;
    let program = ebpf.program_mut(name).ok_or(Error::Missing { what: "program", name: name.to_owned() })?;
    let failed = |source| Error::Program { name, source: Box::new(source) };
    let program: &mut XdpProgram = program.try_into().map_err(failed)?;
    let id = program.info().map_err(failed)?.id();
    let descriptor = program.fd().map_err(failed)?.try_clone();
    Ok((id, descriptor.map_err(|source| failed(source.into()))?))
}

impl Inner {
    fn programs(&self) -> io::Result<&Programs> {
        let loaded =
            self.loaded.as_ref().ok_or_else(|| io::Error::other("the XDP programs are not loaded"))?;
        loaded.programs.as_ref().map_err(|error| io::Error::other(error.clone()))
    }

    /// Returns the program behind redirects.
    fn guard(&self) -> io::Result<ProgramFd> {
        self.programs()?.guard.try_clone()
    }

    /// Takes the programs that answer away from [`FORWARD`].
    fn end_answers(&mut self) -> Result<(), Error> {
        self.answers = false;
        match &self.loaded {
            Some(Loaded { answers: Ok(programs), .. }) => self.calls.clear(programs),
            _ => Ok(()),
        }
    }

    /// Lets [`FORWARD`] call the programs that answer, if both the resolver and they are there.
    fn fill_calls(&mut self) {
        let Some(loaded) = self.loaded.as_ref().filter(|_| self.answers) else { return };
        let programs = loaded.answers.as_ref().map_err(String::clone);
        let filled =
            programs.and_then(|programs| self.calls.fill(programs).map_err(|error| with_causes(&error)));
        if let Err(error) = filled {
            tracing::warn!(error, "DNS queries are not answered at XDP");
        }
    }

    fn pin(&self, interface: u32) -> PathBuf {
        self.pins.join(format!("{FORWARD}-{interface}"))
    }

    fn attach(&self, interface: u32) -> io::Result<()> {
        let Programs { forward, id, .. } = self.programs()?;
        let pin = self.pin(interface);
        if let Ok(link) = PinnedTcx::open(&pin)
            && link.interface == interface
        {
            return if link.program == *id { Ok(()) } else { link.replace(forward.as_fd()) };
        }
        if pin.exists() {
            std::fs::remove_file(&pin)?;
        }
        let link = syscall::attach_xdp(forward.as_fd(), interface)?;
        syscall::pin(link.as_fd(), &pin)
    }

    fn detach_except(&mut self, keep: &BTreeSet<u32>) -> io::Result<()> {
        // Some drivers send only while they have a program.
        let withdrawn = self.withdraw_except(keep).map_err(|error| io::Error::other(with_causes(&error)));
        for (interface, pin) in self.pinned()? {
            if keep.contains(&interface) {
                continue;
            }
            if let Ok(link) = PinnedTcx::open(&pin)
                && link.interface != 0
            {
                link.detach()?;
            }
            std::fs::remove_file(&pin)?;
        }
        withdrawn
    }

    /// Lets XDP use no other interfaces than these.
    fn withdraw_except(&mut self, keep: &BTreeSet<u32>) -> Result<(), Error> {
        let links = self.have.values().filter(|link| keep.contains(&link.interface));
        let links = links.map(|link| (link.interface, *link)).collect();
        let ports = self.port_interfaces()?.intersection(keep).copied().collect();
        self.set(&links, &ports)
    }

    fn port_interfaces(&self) -> Result<BTreeSet<u32>, Error> {
        let ports = self.ports.keys().collect::<Result<BTreeSet<u32>, _>>();
        ports.map_err(|error| failed("read", error.into()))
    }

    /// Returns the pins by the index of their interface.
    fn pinned(&self) -> io::Result<BTreeMap<u32, PathBuf>> {
        let mut pins = BTreeMap::new();
        for entry in std::fs::read_dir(&self.pins)? {
            let path = entry?.path();
            if let Some(interface) = interface_of(&path) {
                pins.insert(interface, path);
            }
        }
        Ok(pins)
    }

    fn set(&mut self, links: &BTreeMap<u32, XdpLink>, ports: &BTreeSet<u32>) -> Result<(), Error> {
        let mut want = BTreeMap::new();
        for (interface, link) in links {
            let sends = ports.contains(interface).into();
            want.insert(xdp_link_index(*interface), XdpLink { interface: *interface, sends, ..*link });
        }
        self.remove_links_except(&want)?;
        self.set_ports(ports)?;
        for (index, link) in want {
            if self.have.get(&index) != Some(&link) {
                self.links.set(index, XdpLink { interface: 0, ..link })?;
                self.links.set(index, link)?;
                self.have.insert(index, link);
            }
        }
        Ok(())
    }

    /// Empties the elements of the array that differ. Programs first stop sending to these interfaces, so that frames on
    /// their way pass the guard, which needs the element, and their port is still there.
    fn remove_links_except(&mut self, keep: &BTreeMap<u32, XdpLink>) -> Result<(), Error> {
        let differs = |(index, link): &(&u32, &XdpLink)| keep.get(index) != Some(link);
        let gone: Vec<_> = self.have.iter().filter(differs).map(|(index, link)| (*index, *link)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        for (index, link) in &gone {
            self.links.set(*index, XdpLink { sends: 0, answers: 0, ..*link })?;
        }
        grace()?;
        for (index, _) in &gone {
            self.links.set(*index, XdpLink::default())?;
            self.have.remove(index);
        }
        // An update is not atomic, so no program uses an element while it gets another interface.
        grace()
    }

    fn set_ports(&mut self, ports: &BTreeSet<u32>) -> Result<(), Error> {
        let have = self.port_interfaces()?;
        for interface in have.difference(ports) {
            self.ports.remove(*interface).map_err(|error| failed("remove from", error.into()))?;
        }
        for interface in ports.difference(&have) {
            let guard = self.guard().map_err(|error| failed("write", MapError::from(error).into()))?;
            let put = self.ports.insert(*interface, *interface, Some(&guard), 0);
            put.map_err(|error| failed("write", error))?;
        }
        Ok(())
    }
}

fn failed(operation: &'static str, error: XdpMapError) -> Error {
    let source = match error {
        XdpMapError::MapError(error) => error,
        XdpMapError::ChainedProgramNotSupported => io::Error::other(error).into(),
    };
    Error::Map { operation, map: spec::XdpPorts::NAME, source: Box::new(source) }
}

/// Reports whether the pin is that of an XDP link.
pub(super) fn is_pin(path: &Path) -> bool {
    interface_of(path).is_some()
}

fn interface_of(pin: &Path) -> Option<u32> {
    let name = pin.file_name()?.to_str()?;
    name.strip_prefix(FORWARD)?.strip_prefix('-')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_of_this_program_are_its_pins() {
        assert_eq!(interface_of(Path::new("/sys/fs/bpf/links/gw_xdp-12")), Some(12));
        for other in ["gw_xdp_guard-12", "gw_ingress-12", "gw_xdp-", "gw_xdp-x"] {
            assert!(!is_pin(Path::new(other)), "{other}");
        }
    }
}
