//! Tap behind the egress guard: a packet socket on each guarded interface, whose program counts packets that left past
//! the guard (packet(7), socket(7) on SO_ATTACH_BPF). No packet is copied to the daemon.
//!
//! Packet sockets see a packet when the interface takes it from its queue: behind traffic control, where other
//! programs may accept a packet before the guard sees it.

use std::io;

use aya::Ebpf;
use aya::programs::SocketFilter;
use socket2::{Domain, Protocol, Socket, Type};

use super::programs::TAP;
use super::{Error, Programs};
use crate::os::egress_tap::{ALL_PROTOCOLS, link_address};

/// Tap on an interface. It ends when it is dropped.
#[derive(Debug)]
pub struct GuardTap(#[expect(dead_code, reason = "the socket keeps the program attached")] Socket);

fn program(ebpf: &mut Ebpf) -> Result<&mut SocketFilter, Error> {
    let program =
        ebpf.program_mut(TAP).ok_or_else(|| Error::Missing { what: "program", name: TAP.to_owned() })?;
    program.try_into().map_err(|e| Error::Program { name: TAP, source: Box::new(e) })
}

impl Programs {
    /// Attaches the tap to an interface, by its index.
    pub fn tap_guard(&mut self, interface: u32) -> Result<GuardTap, Error> {
        let failed = |source: io::Error| Error::Attach {
            program: TAP,
            interface: format!("interface {interface}"),
            source: Box::new(source),
        };
        // Without a protocol it receives nothing until the program is there.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0))).map_err(failed)?;
        let attached = program(&mut self.ebpf)?.attach(&socket);
        attached.map_err(|e| Error::Program { name: TAP, source: Box::new(e) })?;
        socket.bind(&link_address(ALL_PROTOCOLS, interface).map_err(failed)?).map_err(failed)?;
        Ok(GuardTap(socket))
    }
}
