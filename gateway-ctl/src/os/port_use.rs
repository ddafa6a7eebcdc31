//! Sockets of programs at a port, in the network namespace of the calling thread (proc_pid_net(5), proc_pid_fd(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use gateway_core::health::{PortHolder, PortUse, Protocol};

/// States of sockets in the tables of the kernel (include/net/tcp_states.h).
const TCP_LISTEN: &str = "0A";
/// A UDP socket without a remote address.
const UDP_UNCONNECTED: &str = "07";

/// Returns the sockets that take packets of anyone at a port, without those of this process. Reads the descriptors of
/// all processes only if there are some. Blocks.
pub fn others_at(protocol: Protocol, port: u16) -> io::Result<Vec<PortUse>> {
    let mut sockets = sockets_at(protocol, port)?;
    if sockets.is_empty() {
        return Ok(Vec::new());
    }
    let own = inodes(Path::new("/proc/self"));
    sockets.retain(|(inode, _)| !own.contains(inode));
    if sockets.is_empty() {
        return Ok(Vec::new());
    }
    let mut holders = holders(&sockets.iter().map(|(inode, _)| *inode).collect::<Vec<_>>());
    let uses = sockets.into_iter().map(|(inode, address)| PortUse {
        protocol,
        address,
        holder: holders.remove(&inode),
    });
    Ok(uses.collect())
}

/// Returns the socket of another program that conflicts with an own one at this address.
pub fn conflict(protocol: Protocol, address: SocketAddr) -> Option<PortUse> {
    let others = others_at(protocol, address.port());
    let others =
        others.inspect_err(|error| tracing::debug!(%error, "failed to read the sockets of this host"));
    others.ok()?.into_iter().find(|other| is_conflict(address, other.address))
}

/// Reports whether two sockets at these addresses of one port may exclude each other.
pub fn is_conflict(own: SocketAddr, other: SocketAddr) -> bool {
    let (own, other) = (own.ip(), other.ip());
    let is_same_family = own.is_ipv4() == other.is_ipv4();
    // An IPv6 wildcard of another program usually takes IPv4, too.
    let takes_all = other.is_unspecified() && (is_same_family || other.is_ipv6());
    own == other || takes_all || own.is_unspecified() && is_same_family
}

fn sockets_at(protocol: Protocol, port: u16) -> io::Result<Vec<(u64, SocketAddr)>> {
    let (tables, state) = match protocol {
        Protocol::Udp => (["udp", "udp6"], UDP_UNCONNECTED),
        Protocol::Tcp => (["tcp", "tcp6"], TCP_LISTEN),
    };
    let mut found = Vec::new();
    for table in tables {
        match fs::read_to_string(Path::new("/proc/thread-self/net").join(table)) {
            Ok(text) => found.extend(parse(&text, state).filter(|(_, address)| address.port() == port)),
            // A host without IPv6 has no such table.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Returns inode and local address of the sockets in a state.
fn parse<'a>(table: &'a str, state: &'a str) -> impl Iterator<Item = (u64, SocketAddr)> + 'a {
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_ascii_whitespace();
        let (local, is) = (fields.nth(1)?, fields.nth(1)?);
        let inode = fields.nth(5)?.parse().ok()?;
        if is == state { Some((inode, address(local)?)) } else { None }
    })
}

/// Parses an address: words in the byte order of the host, in hexadecimal digits, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let words = ip.as_bytes().chunks(8).map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        u32::from_str_radix(word, 16).ok().map(u32::to_ne_bytes)
    });
    let bytes = words.collect::<Option<Vec<_>>>()?.concat();
    let ip: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Returns the programs that hold sockets, by inode. The first one of several processes that share a socket.
fn holders(sockets: &[u64]) -> BTreeMap<u64, PortHolder> {
    let mut found = BTreeMap::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        for inode in inodes(&process.path()).into_iter().filter(|inode| sockets.contains(inode)) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let holder = PortHolder { program: name.trim().to_owned(), pid };
            found.entry(inode).or_insert(holder);
        }
        if found.len() == sockets.len() {
            break;
        }
    }
    found
}

/// Returns the sockets of a process. Empty if it is gone, or of another user.
fn inodes(process: &Path) -> Vec<u64> {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let sockets = descriptors.filter_map(|descriptor| {
        let target = fs::read_link(descriptor.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    });
    sockets.collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn addresses_of_the_kernel_are_read() {
        let be = |text: &str| address(text).map(|address| address.to_string());
        if cfg!(target_endian = "little") {
            assert_eq!(be("0100007F:0035").as_deref(), Some("127.0.0.1:53"));
            assert_eq!(be("00000000000000000000000001000000:0043").as_deref(), Some("[::1]:67"));
        }
        assert_eq!(be("xyz:0035"), None);
    }

    #[test]
    fn wildcards_exclude_the_addresses_of_their_family() {
        let conflicts = |own: &str, other: &str| {
            let address = |ip: &str| SocketAddr::new(ip.parse().expect("an address"), 53);
            is_conflict(address(own), address(other))
        };
        assert!(conflicts("0.0.0.0", "192.0.2.1") && conflicts("192.0.2.1", "0.0.0.0"));
        assert!(conflicts("0.0.0.0", "::") && conflicts("::", "2001:db8::1"));
        assert!(!conflicts("::", "0.0.0.0") && !conflicts("0.0.0.0", "2001:db8::1"));
        assert!(!conflicts("192.0.2.1", "192.0.2.2"));
    }

    #[test]
    fn own_sockets_are_not_those_of_others() {
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
        for (protocol, address) in
            [(Protocol::Udp, udp.local_addr().unwrap()), (Protocol::Tcp, tcp.local_addr().unwrap())]
        {
            let all = sockets_at(protocol, address.port()).expect("tables");
            assert!(all.iter().any(|(_, other)| *other == address), "{protocol}: {all:?}");
            assert_eq!(conflict(protocol, address), None, "{protocol}");
        }
    }

    #[test]
    fn the_program_of_a_socket_is_named() {
        // The child keeps the socket; this process closes its own descriptor.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().unwrap();
        let stdin = Stdio::from(std::os::fd::OwnedFd::from(listener));
        let mut child = Command::new("sleep").arg("60").stdin(stdin).spawn().expect("a child");
        let found = conflict(Protocol::Tcp, address);
        child.kill().expect("killed");
        child.wait().expect("ended");
        let holder = found.and_then(|found| found.holder).expect("a holder");
        assert_eq!((holder.program.as_str(), holder.pid), ("sleep", child.id()));
    }
}
