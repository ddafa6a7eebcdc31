//! Address of an OpenVPN server, resolved through the tunnel's underlay.

use std::net::{IpAddr, SocketAddr};

use gateway_common::wire::Mark;

use super::management::Remote;
use gateway_outbound::Resolver;

/// Returns an address of the server. A later `turn` gives another one if it has several. `mark` is the fwmark of the
/// outer packets.
pub(super) async fn resolve(
    names: &Resolver,
    mark: Mark,
    remote: &Remote,
    turn: usize,
) -> Result<SocketAddr, String> {
    if let Ok(address) = remote.host.parse::<IpAddr>() {
        return Ok(SocketAddr::from((address, remote.port)));
    }
    let found = names.resolve(&format!("{}:{}", remote.host, remote.port), Some(mark)).await;
    let found = found.map_err(|error| error.to_string())?;
    pick(&found, &remote.protocol, turn).ok_or_else(|| "no address of its protocol's family".to_owned())
}

/// Returns a name with a random label in front, as `remote-random-hostname` of OpenVPN: six bytes in hexadecimal. Servers
/// with a wildcard in their zone, such as those of AWS, answer each of them with other addresses.
pub(super) fn with_random_label(host: &str) -> String {
    if host.parse::<IpAddr>().is_ok() {
        return host.to_owned();
    }
    let number = getrandom::u64().unwrap_or_default() & 0xffff_ffff_ffff;
    format!("{number:012x}.{host}")
}

fn pick(found: &[SocketAddr], protocol: &str, turn: usize) -> Option<SocketAddr> {
    let fits = |at: &&SocketAddr| {
        !(protocol.contains('4') && at.is_ipv6() || protocol.contains('6') && at.is_ipv4())
    };
    let mut fitting: Vec<SocketAddr> = Vec::new();
    for at in found.iter().filter(fits) {
        if !fitting.contains(at) {
            fitting.push(*at);
        }
    }
    fitting.get(turn % fitting.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_labels_differ_and_addresses_have_none() {
        let label = || with_random_label("cvpn.example");
        let (one, other) = (label(), label());
        assert_ne!(one, other);
        let (first, rest) = one.split_once('.').unwrap();
        assert_eq!(rest, "cvpn.example");
        assert!(first.len() == 12 && first.bytes().all(|b| b.is_ascii_hexdigit()), "{one}");
        assert_eq!(with_random_label("192.0.2.1"), "192.0.2.1");
    }

    #[test]
    fn each_turn_takes_the_next_address_of_the_right_family() {
        let four = |last: u8| SocketAddr::from(([192, 0, 2, last], 1194));
        let six = SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 1194));
        let found = [four(1), four(1), six, four(2)];
        let taken = |protocol| (0..4).map(|turn| pick(&found, protocol, turn).unwrap()).collect::<Vec<_>>();
        assert_eq!(taken("udp"), [four(1), six, four(2), four(1)]);
        assert_eq!(taken("tcp4-client"), [four(1), four(2), four(1), four(2)]);
        assert_eq!(pick(&found, "udp6", 7), Some(six));
        assert_eq!(pick(&[], "udp", 3), None);
    }
}
