//! Use of the conntrack table: its level, the hosts that hold its entries, and the removal of some.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    DELETE, DONE, DUMP, ERROR, FAMILY_HEADER, GET, IP_V6_SRC, TUPLE_IP, TUPLE_ORIG, attribute, error, key,
    messages, open, request,
};

const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
const MAXIMUM: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
/// `CTA_TIMEOUT` and `CTA_IP_V4_SRC`.
const TIMEOUT: u16 = 7;
const IP_V4_SRC: u16 = 1;
/// Deletions in one datagram. The kernel answers with errors only, at most one each, which must fit into the socket.
const BATCH: usize = 64;
const REQUEST_ONLY: u16 = libc::NLM_F_REQUEST as u16;

/// Number of entries, and the kernel's maximum. For the network namespace of the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub entries: usize,
    pub maximum: usize,
}

/// Reads the level.
pub(crate) fn level() -> io::Result<Level> {
    Ok(Level { entries: number(COUNT)?, maximum: number(MAXIMUM)? })
}

/// Raises the kernel's maximum. Only the first network namespace may set it.
pub(crate) fn raise_maximum(maximum: usize) -> io::Result<()> {
    std::fs::write(MAXIMUM, maximum.to_string())
}

fn number(path: &str) -> io::Result<usize> {
    std::fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
}

/// Entry of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldEntry {
    /// Address of the host that began the flow.
    pub source: IpAddr,
    /// Seconds until the entry ends by itself if no packet comes.
    pub seconds_left: u32,
    /// Attributes that identify the entry to the kernel.
    key: Vec<u8>,
}

#[cfg(test)]
impl HeldEntry {
    /// Returns an entry that is in no table.
    pub(crate) fn of(source: IpAddr, seconds_left: u32) -> Self {
        Self { source, seconds_left, key: Vec::new() }
    }
}

/// Lists all entries. Blocks on the kernel.
pub(crate) fn list() -> io::Result<Vec<HeldEntry>> {
    let socket = open()?;
    socket.send(&request(GET, DUMP, libc::AF_UNSPEC, &[]), 0)?;
    let mut entries = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        for (kind, body) in messages(&datagram) {
            match kind {
                DONE => return Ok(entries),
                ERROR => return Err(error(body).unwrap_or_else(|| io::ErrorKind::InvalidData.into())),
                _ => entries.extend(body.get(FAMILY_HEADER..).and_then(read)),
            }
        }
    }
}

/// Deletes entries. Those that are already gone are no error. Blocks on the kernel.
pub(crate) fn delete_all<'a>(entries: impl IntoIterator<Item = &'a HeldEntry>) -> io::Result<()> {
    let socket = open()?;
    let mut datagram = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let family = if entry.source.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        datagram.extend(request(DELETE, REQUEST_ONLY, family, &entry.key));
        if index % BATCH == BATCH - 1 {
            send(&socket, &datagram)?;
            datagram.clear();
        }
    }
    if datagram.is_empty() { Ok(()) } else { send(&socket, &datagram) }
}

/// Sends deletions, and reads the errors that they left.
fn send(socket: &rtnetlink::sys::Socket, datagram: &[u8]) -> io::Result<()> {
    socket.send(datagram, 0)?;
    let mut answer = Vec::with_capacity(8192);
    loop {
        answer.clear();
        match socket.recv(&mut answer, libc::MSG_DONTWAIT) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        let gone = |error: &io::Error| error.raw_os_error() == Some(libc::ENOENT);
        let failures = messages(&answer).filter(|(kind, _)| *kind == ERROR);
        if let Some(failure) = failures.filter_map(|(_, body)| error(body)).find(|error| !gone(error)) {
            return Err(failure);
        }
    }
}

fn read(message: &[u8]) -> Option<HeldEntry> {
    let addresses = attribute(attribute(message, TUPLE_ORIG)?, TUPLE_IP)?;
    let four = || Some(IpAddr::from(Ipv4Addr::from(*attribute(addresses, IP_V4_SRC)?.first_chunk::<4>()?)));
    let six = || Some(IpAddr::from(Ipv6Addr::from(*attribute(addresses, IP_V6_SRC)?.first_chunk::<16>()?)));
    // Without a time-out, it is being removed.
    let seconds_left = attribute(message, TIMEOUT).and_then(|seconds| seconds.first_chunk());
    Some(HeldEntry {
        source: four().or_else(six)?,
        seconds_left: seconds_left.map_or(0, |seconds| u32::from_be_bytes(*seconds)),
        key: key(message)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ID, NESTED};
    use super::*;

    fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = [(content.len() as u16 + 4).to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(address: &[u8], kind: u16) -> Vec<u8> {
        let addresses = attribute(NESTED | TUPLE_IP, &attribute(kind, address));
        let tuple = attribute(NESTED | TUPLE_ORIG, &addresses);
        [tuple, attribute(TIMEOUT, &300_u32.to_be_bytes()), attribute(ID, &[9; 4])].concat()
    }

    #[test]
    fn entries_of_both_families_are_read() {
        let four = read(&message(&[10, 0, 0, 2], IP_V4_SRC)).expect("an entry");
        assert_eq!((four.source, four.seconds_left), ("10.0.0.2".parse().expect("an address"), 300));
        let six = read(&message(&[0xfd; 16], IP_V6_SRC)).expect("an entry");
        assert!(six.source.is_ipv6() && six.key.len() > four.key.len());
        let whole = message(&[10, 0, 0, 2], IP_V4_SRC);
        for length in 0..16 {
            assert_eq!(read(&whole[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn the_table_of_this_machine_is_read_and_entries_that_are_gone_are_no_error() {
        let (Ok(level), Ok(entries)) = (level(), list()) else {
            // Without conntrack in the kernel, both fail.
            assert!(level().is_err() && list().is_err());
            return;
        };
        assert!(level.maximum > 0);
        let gone = HeldEntry {
            key: message(&[192, 0, 2, 77], IP_V4_SRC),
            ..HeldEntry::of([192, 0, 2, 77].into(), 1)
        };
        delete_all(std::iter::repeat_n(&gone, 3 * BATCH)).expect_err("a tuple without ports");
        drop(entries);
    }
}
