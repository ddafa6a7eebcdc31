//! Ports that the configuration needs, and whether another program has them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use gateway_core::health::{CheckState, Finding, PortUse, Protocol};
use gateway_core::plan::names::{NTP_PORT, RELAY_PORT};
use gateway_core::state_machines::dhcp::SERVER_PORT;
use gateway_ctl::os::port_use;
use gateway_ctl::services::{dhcp, dns};
use gateway_model::settings::bootstrap::{Bootstrap, DnsBackend};

use super::check::Check;

/// Name of the daemon's process.
const DAEMON: &str = "gatewayd";

/// Need of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The gateway does not work without it.
    Always,
    /// Needed once the DHCP server is enabled, which is a setting of the store.
    Dhcp,
}

/// Port that the configuration needs.
#[derive(Clone, Debug)]
pub(super) struct NeededPort {
    /// Key of the configuration, or name of the function.
    pub key: &'static str,
    pub protocol: Protocol,
    pub address: SocketAddr,
    /// Function that clients lose without it.
    pub lost: &'static str,
    pub need: Need,
}

/// Returns the ports that a configuration needs.
pub(super) fn needed(config: &Bootstrap) -> Vec<NeededPort> {
    let always =
        |key, protocol, address, lost| NeededPort { key, protocol, address, lost, need: Need::Always };
    let mut ports = vec![always(
        "listen.api_addr",
        Protocol::Tcp,
        config.listen.api_addr,
        "there is neither API nor dashboard",
    )];
    for address in both_families(config.dns.listen_addr) {
        for protocol in [Protocol::Udp, Protocol::Tcp] {
            ports.push(always("dns.listen_addr", protocol, address, dns::LOST));
        }
    }
    for address in config.dns.tls_listen_addrs.iter().copied().flat_map(both_families) {
        ports.push(always("dns.tls_listen_addrs", Protocol::Tcp, address, "hosts get no encrypted DNS"));
    }
    let any = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    ports.push(NeededPort {
        key: "DHCP server",
        protocol: Protocol::Udp,
        address: any(SERVER_PORT),
        lost: dhcp::LOST,
        need: Need::Dhcp,
    });
    ports.push(always("time server", Protocol::Udp, any(NTP_PORT), "hosts get no answer to NTP queries"));
    let relay = SocketAddr::from((Ipv4Addr::LOCALHOST, RELAY_PORT));
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        ports.push(always("relay of proxies", protocol, relay, "policies with proxies block"));
    }
    ports
}

fn both_families(address: SocketAddr) -> impl Iterator<Item = SocketAddr> {
    let is_any = address.ip() == Ipv4Addr::UNSPECIFIED;
    [address].into_iter().chain(is_any.then(|| SocketAddr::from((Ipv6Addr::UNSPECIFIED, address.port()))))
}

/// Checks a port. The daemon itself may have it.
pub(super) fn check(port: &NeededPort) -> Check {
    let NeededPort { key, protocol, address, lost, need } = port;
    let name = format!("{key} {protocol} {address}");
    match port_use::conflict(*protocol, *address) {
        Some(PortUse { holder: Some(holder), .. }) if holder.program == DAEMON => {
            return Check::ok(name, format!("the running daemon has it (process {})", holder.pid));
        }
        Some(taken) => {
            let Finding { message, remedy, .. } = Finding::port_taken(lost, &taken, CheckState::Failed);
            return match need {
                Need::Always => Check::failed(name, message, remedy),
                Need::Dhcp => Check::note(name, message, format!("before you enable /dhcp: {remedy}")),
            };
        }
        None => {}
    }
    // The daemon's sockets for IPv6 leave IPv4 alone, which those of the standard library do not.
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        return Check::ok(name, "free");
    }
    match bind(*protocol, *address) {
        Ok(()) => Check::ok(name, "free"),
        // Port 53 needs a right that the check of privileges reports.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Check::note(name, error.to_string(), "run as root to see whether it is free")
        }
        Err(error) => Check::failed(name, error.to_string(), format!("set {key} to an address of this host")),
    }
}

fn bind(protocol: Protocol, address: SocketAddr) -> io::Result<()> {
    match protocol {
        Protocol::Udp => UdpSocket::bind(address).map(drop),
        Protocol::Tcp => TcpListener::bind(address).map(drop),
    }
}

/// Checks that names can be resolved by the file alone.
pub(super) fn upstreams(config: &Bootstrap) -> Check {
    let name = "dns.upstream_servers";
    if config.dns.backend != DnsBackend::Integrated {
        return Check::ok(name, "the external filter resolves");
    }
    if config.dns.upstream_servers.is_empty() {
        let Finding { message, remedy, .. } = Finding::no_upstream();
        return Check::note(name, format!("{message}, unless a setting in the store does"), remedy);
    }
    Check::ok(name, format!("{} set", config.dns.upstream_servers.len()))
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_port_of_another_program_fails_with_its_name() {
        use std::os::fd::OwnedFd;
        use std::process::{Command, Stdio};
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("bound");
        let stdin = Stdio::from(OwnedFd::from(socket));
        let mut child = Command::new("sleep").arg("60").stdin(stdin).spawn().expect("a child");
        let port = |need| NeededPort {
            key: "dns.listen_addr",
            protocol: Protocol::Udp,
            address,
            lost: dns::LOST,
            need,
        };
        let checks = [check(&port(Need::Always)), check(&port(Need::Dhcp))];
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!(checks.each_ref().map(|check| check.verdict), [Verdict::Failed, Verdict::Note]);
        for check in checks {
            assert!(check.result.contains(&format!("sleep (process {})", child.id())), "{}", check.result);
            assert!(check.fix.contains("sleep"), "{}", check.fix);
        }
        assert_eq!(check(&port(Need::Always)).verdict, Verdict::Ok);
    }

    #[test]
    fn every_listener_of_the_configuration_is_needed() {
        let text = "dns: { listen_addr: '0.0.0.0:5353', tls_listen_addrs: ['192.0.2.1:853'] }\n";
        let config = gateway_model::settings::bootstrap::parse(text).expect("valid");
        let ports = needed(&config);
        for (protocol, address) in [
            (Protocol::Udp, "0.0.0.0:5353"),
            (Protocol::Tcp, "[::]:5353"),
            (Protocol::Tcp, "192.0.2.1:853"),
            (Protocol::Udp, "0.0.0.0:67"),
        ] {
            let address: SocketAddr = address.parse().expect("an address");
            let is_there = ports.iter().any(|port| (port.protocol, port.address) == (protocol, address));
            assert!(is_there, "{protocol} {address}");
        }
        assert_eq!(upstreams(&config).verdict, Verdict::Note);
    }
}
