//! Taps: packet sockets whose programs count packets (packet(7), socket(7) on SO_ATTACH_BPF). No packet is copied to the
//! daemon.
//!
//! Packet sockets see a packet that enters before traffic control does, and one that leaves when the interface takes it from
//! its queue: behind traffic control, where other programs may accept a packet before the guard sees it.
//!
//! Decision 0101 says why.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use aya::Ebpf;
use aya::programs::SocketFilter;
use gateway_common::wire::{HostKey, HostTraffic};
use socket2::{Domain, Protocol, Socket, Type};

use super::maps::Entries as _;
use super::programs::{HOST_TAP, TAP};
use super::{Error, Programs};
use crate::os::egress_tap::{ALL_PROTOCOLS, link_address};

/// Tap on an interface. It ends when it is dropped.
#[derive(Debug)]
pub struct InterfaceTap(#[expect(dead_code, reason = "the socket keeps the program attached")] Socket);

fn find<'a>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut SocketFilter, Error> {
    let program =
        ebpf.program_mut(name).ok_or_else(|| Error::Missing { what: "program", name: name.to_owned() })?;
    program.try_into().map_err(|e| Error::Program { name, source: Box::new(e) })
}

impl Programs {
    /// Attaches the tap behind the egress guard to an interface, by its index.
    pub fn tap_guard(&mut self, interface: u32) -> Result<InterfaceTap, Error> {
        self.tap(TAP, Type::DGRAM, interface)
    }

    /// Attaches the tap that counts the traffic of hosts to a LAN interface, by its index.
    pub fn tap_hosts(&mut self, interface: u32) -> Result<InterfaceTap, Error> {
        // The program reads MAC addresses, so packets begin with their link-layer header.
        self.tap(HOST_TAP, Type::RAW, interface)
    }

    fn tap(&mut self, name: &'static str, kind: Type, interface: u32) -> Result<InterfaceTap, Error> {
        let failed = |source: io::Error| Error::Attach {
            program: name,
            interface: format!("interface {interface}"),
            source: Box::new(source),
        };
        // Without a protocol it receives nothing until the program is there.
        let socket = Socket::new(Domain::PACKET, kind, Some(Protocol::from(0))).map_err(failed)?;
        let attached = find(&mut self.ebpf, name)?.attach(&socket);
        attached.map_err(|e| Error::Program { name, source: Box::new(e) })?;
        socket.bind(&link_address(ALL_PROTOCOLS, interface).map_err(failed)?).map_err(failed)?;
        Ok(InterfaceTap(socket))
    }

    /// Sets the hosts whose traffic is counted. Those that were set before keep their counters.
    pub fn set_counted_hosts(&mut self, hosts: &BTreeSet<HostKey>) -> Result<(), Error> {
        let counted = self.maps.host_bytes.read()?;
        let gone: Vec<HostKey> = counted.keys().filter(|host| !hosts.contains(host)).copied().collect();
        let new = hosts.iter().filter(|host| !counted.contains_key(host));
        let new: Vec<(HostKey, HostTraffic)> = new.map(|host| (*host, HostTraffic::default())).collect();
        self.maps.host_bytes.remove_all(&gone)?;
        self.maps.host_bytes.put_all(&new)
    }

    /// Returns the traffic of the hosts that are counted.
    pub fn host_traffic(&self) -> Result<BTreeMap<HostKey, HostTraffic>, Error> {
        self.maps.host_bytes.read()
    }
}
