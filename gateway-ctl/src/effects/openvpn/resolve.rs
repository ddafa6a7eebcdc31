//! Where a server is: its name to an address, by the host's own resolver, outside of any tunnel.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::management::Remote;

const PATIENCE: Duration = Duration::from_secs(5);

/// An address of the server; a later turn gives another one if it has several.
pub async fn resolve(remote: &Remote, turn: usize) -> Option<SocketAddr> {
    if let Ok(address) = remote.host.parse::<IpAddr>() {
        return Some(SocketAddr::from((address, remote.port)));
    }
    let looking = tokio::net::lookup_host((remote.host.as_str(), remote.port));
    let found: Vec<SocketAddr> = match tokio::time::timeout(PATIENCE, looking).await {
        Ok(Ok(found)) => found.collect(),
        Ok(Err(error)) => {
            tracing::debug!(host = remote.host, %error, "cannot resolve");
            return None;
        }
        Err(_) => {
            tracing::debug!(host = remote.host, "no answer in time");
            return None;
        }
    };
    pick(&found, &remote.protocol, turn)
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
