//! State of interfaces that decides on programs: the abilities of drivers, and queueing disciplines.
//!
//! Drivers report their abilities through the netlink family `netdev` (Linux 6.3).

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rtnetlink::sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, Socket, SocketAddr, TokioSocket};

use gateway_core::xdp::abilities::BASIC;

use super::path_changes::{attributes, messages};

const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;

const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_NAME: u16 = 2;
const FAMILY_ID: u16 = 1;
const GET_DEVICE: u8 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_XDP: u16 = 3;
const GENERIC_HEADER: usize = 4;
const ATTRIBUTE_HEADER: usize = 4;
/// NL80211_CMD_GET_INTERFACE and NL80211_ATTR_IFINDEX.
const GET_WIRELESS: u8 = 5;
const WIRELESS_INDEX: u16 = 3;

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const TCA_KIND: u16 = 1;
/// `struct tcmsg`: its length, and the offsets of the interface and of the handle.
const QUEUEING: usize = 20;
const QUEUEING_INTERFACE: usize = 4;
const QUEUEING_HANDLE: usize = 8;
/// The discipline of classifiers, without a queue. The gateway adds it on kernels without tcx.
const CLASSIFIERS: &str = "clsact";
/// Its older form, which has classifiers at ingress only. An interface has one of both.
const INGRESS_ONLY: &str = "ingress";
/// RTNLGRP_TC is 4.
const QUEUEING_CHANGES: u32 = 1 << 3;

/// Returns the number of a family of generic netlink, or `None` if the kernel has none of this name.
fn family(name: &[u8]) -> io::Result<Option<u16>> {
    let length = u16::try_from(ATTRIBUTE_HEADER + name.len()).map_err(io::Error::other)?;
    let mut body = vec![GET_FAMILY, 1, 0, 0];
    body.extend(length.to_ne_bytes());
    body.extend(FAMILY_NAME.to_ne_bytes());
    body.extend(name);
    body.resize(body.len().next_multiple_of(4), 0);
    let found = match ask(NETLINK_GENERIC, CONTROL, REQUEST, &body) {
        Ok(found) => found,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    let id = found.iter().find_map(|(_, body)| attribute(body, GENERIC_HEADER, FAMILY_ID)?.first_chunk());
    Ok(id.map(|bytes| u16::from_ne_bytes(*bytes)))
}

/// Returns the indexes of the interfaces of radios (nl80211).
pub(crate) fn wireless_interfaces() -> io::Result<BTreeSet<u32>> {
    let Some(family) = family(b"nl80211\0")? else { return Ok(BTreeSet::new()) };
    let found = ask(NETLINK_GENERIC, family, REQUEST | DUMP, &[GET_WIRELESS, 0, 0, 0])?;
    let index = |(_, body): &(u16, Vec<u8>)| {
        let index = attribute(body, GENERIC_HEADER, WIRELESS_INDEX)?.first_chunk()?;
        Some(u32::from_ne_bytes(*index))
    };
    Ok(found.iter().filter_map(index).collect())
}

/// Returns the abilities of drivers by interface index, or `None` if the kernel does not report them.
pub(crate) fn xdp_abilities() -> io::Result<Option<BTreeMap<u32, u64>>> {
    let Some(family) = family(b"netdev\0")? else { return Ok(None) };
    let devices = ask(NETLINK_GENERIC, family, REQUEST | DUMP, &[GET_DEVICE, 1, 0, 0])?;
    let device = |(_, body): &(u16, Vec<u8>)| {
        let index = attribute(body, GENERIC_HEADER, DEVICE_INDEX)?.first_chunk()?;
        let bits = attribute(body, GENERIC_HEADER, DEVICE_XDP)?.first_chunk()?;
        Some((u32::from_ne_bytes(*index), u64::from_ne_bytes(*bits)))
    };
    Ok(Some(devices.iter().filter_map(device).collect()))
}

/// Reports by interface index whether the driver runs programs at XDP, or `None` if the kernel does not report it.
pub fn runs_programs() -> io::Result<Option<BTreeMap<u32, bool>>> {
    let abilities = xdp_abilities()?;
    Ok(abilities.map(|found| found.into_iter().map(|(index, bits)| (index, bits & BASIC != 0)).collect()))
}

/// Returns the kinds of queueing disciplines that the kernel did not install by itself, by interface index.
pub(crate) fn shapers() -> io::Result<BTreeMap<u32, String>> {
    let shapers = disciplines()?.into_iter().filter(Discipline::is_shaper);
    Ok(shapers.map(|found| (found.interface, found.kind)).collect())
}

/// Reports whether an interface has the discipline `ingress`, which only another program adds.
// By a dump of all: before Linux 6.3, a query of one is answered to the subscribers of changes instead.
pub(crate) fn has_ingress_only(interface: u32) -> io::Result<bool> {
    Ok(disciplines()?.iter().any(|found| found.interface == interface && found.kind == INGRESS_ONLY))
}

fn disciplines() -> io::Result<Vec<Discipline>> {
    let found = ask(NETLINK_ROUTE, RTM_GETQDISC, REQUEST | DUMP, &[0; QUEUEING])?;
    let answers = found.iter().filter(|(kind, _)| *kind == RTM_NEWQDISC);
    Ok(answers.filter_map(|(_, body)| discipline(body)).collect())
}

#[derive(Debug, PartialEq, Eq)]
struct Discipline {
    interface: u32,
    handle: u32,
    kind: String,
}

impl Discipline {
    /// The disciplines of the kernel have no handle.
    fn is_shaper(&self) -> bool {
        self.handle != 0 && self.kind != CLASSIFIERS
    }
}

fn discipline(body: &[u8]) -> Option<Discipline> {
    let word = |at: usize| Some(u32::from_ne_bytes(*body.get(at..)?.first_chunk()?));
    let kind = attribute(body, QUEUEING, TCA_KIND)?.split(|byte| *byte == 0).next()?;
    let kind = String::from_utf8_lossy(kind).into_owned();
    Some(Discipline { interface: word(QUEUEING_INTERFACE)?, handle: word(QUEUEING_HANDLE)?, kind })
}

fn attribute(body: &[u8], header: usize, wanted: u16) -> Option<&[u8]> {
    let found = attributes(body.get(header..)?).find(|(kind, _)| *kind == wanted);
    found.map(|(_, value)| value)
}

/// Returns the types and bodies of all messages that answer a request.
fn ask(protocol: isize, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<(u16, Vec<u8>)>> {
    const HEADER: usize = 16;
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    let length = u32::try_from(HEADER + body.len()).map_err(io::Error::other)?;
    let mut request = length.to_ne_bytes().to_vec();
    request.extend(kind.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    request.extend(body);
    socket.send_to(&request, &SocketAddr::new(0, 0), 0)?;
    let mut answers = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        for (kind, body) in messages(&datagram) {
            match kind {
                DONE => return Ok(answers),
                ERROR => {
                    let code = body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                    return if code == 0 { Ok(answers) } else { Err(io::Error::from_raw_os_error(-code)) };
                }
                kind => answers.push((kind, body.to_vec())),
            }
        }
        if flags & DUMP == 0 {
            return Ok(answers);
        }
    }
}

/// Subscription to changes of queueing disciplines.
pub(crate) struct ShaperChanges(TokioSocket);

impl ShaperChanges {
    pub(crate) fn open() -> io::Result<ShaperChanges> {
        let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
        socket.socket_mut().bind(&SocketAddr::new(0, QUEUEING_CHANGES))?;
        Ok(ShaperChanges(socket))
    }

    /// Waits for a change. Lost messages are one.
    pub(crate) async fn next(&mut self) -> io::Result<()> {
        match self.0.recv_from_full().await {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discipline(handle: u32, kind: &str) -> Vec<u8> {
        let mut body = vec![0, 0, 0, 0];
        body.extend(7_u32.to_ne_bytes());
        body.extend(handle.to_ne_bytes());
        body.extend([0; 8]);
        body.extend((5 + kind.len() as u16).to_ne_bytes());
        body.extend(TCA_KIND.to_ne_bytes());
        body.extend(kind.as_bytes());
        body.push(0);
        body
    }

    #[test]
    fn disciplines_of_the_kernel_and_of_the_gateway_are_no_shapers() {
        let is_shaper = |handle, kind| super::discipline(&discipline(handle, kind)).expect("one").is_shaper();
        assert!(!is_shaper(0, "fq_codel"));
        assert!(!is_shaper(0xffff_0000, "clsact"));
        assert!(is_shaper(0x8001_0000, "cake"));
        assert!(is_shaper(0xffff_0000, "ingress"));
    }

    #[test]
    fn loopback_is_no_radio() {
        let radios = wireless_interfaces().expect("the kernel answers");
        assert!(!radios.contains(&1));
        assert_eq!(family(b"no_such_family\0").expect("the kernel answers"), None);
    }

    #[test]
    fn disciplines_are_read() {
        let found = Discipline { interface: 7, handle: 0xffff_0000, kind: "ingress".into() };
        assert_eq!(super::discipline(&discipline(0xffff_0000, "ingress")), Some(found));
        assert_eq!(super::discipline(&[0; 7]), None);
    }

    #[test]
    fn the_kernel_answers() {
        let abilities = xdp_abilities().expect("an answer");
        if let Some(abilities) = abilities {
            assert!(!abilities.is_empty(), "each namespace has a loopback interface");
        }
        shapers().expect("an answer");
        for interface in [1, 0x7fff_fff0] {
            assert!(!has_ingress_only(interface).expect("an answer"), "the loopback interface, and none");
        }
    }
}
