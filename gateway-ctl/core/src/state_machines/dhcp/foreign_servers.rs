//! Other DHCP servers whose offers were observed.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

use gateway_model::MacAddr;
use jiff::{SignedDuration, Timestamp};

/// Maximum number of servers that are kept. Their addresses can be forged.
const MAX_SERVERS: usize = 64;
/// Time after which a server that was not observed again is gone: two searches without an answer.
pub(super) const LIFETIME: SignedDuration = SignedDuration::from_mins(11);

/// DHCP server on the LAN that is not this gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignServer {
    pub interface: String,
    /// Address by which it identifies itself.
    pub address: Ipv4Addr,
    /// MAC address of its messages. `None` if only a client named it.
    pub mac: Option<MacAddr>,
    /// Router that it gives to clients.
    pub router: Option<Ipv4Addr>,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
}

impl ForeignServer {
    /// Returns the time at which it is gone if it is not observed again.
    pub fn until(&self) -> Timestamp {
        self.last_seen.saturating_add(LIFETIME).unwrap_or(self.last_seen)
    }
}

impl fmt::Display for ForeignServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if let Some(mac) = self.mac {
            write!(f, " ({mac})")?;
        }
        write!(f, " gives out addresses on {}", self.interface)?;
        match self.router {
            Some(router) => write!(f, ", with {router} as the router"),
            None => Ok(()),
        }
    }
}

/// Servers by interface and address.
#[derive(Debug, Default)]
pub struct ForeignServers(BTreeMap<(String, Ipv4Addr), ForeignServer>);

impl ForeignServers {
    pub fn note(&mut self, mut server: ForeignServer) {
        let key = (server.interface.clone(), server.address);
        let known = self.0.get(&key);
        if known.is_none() && self.0.len() >= MAX_SERVERS {
            return;
        }
        if let Some(known) = known {
            server.first_seen = known.first_seen;
            server.mac = server.mac.or(known.mac);
            server.router = server.router.or(known.router);
        }
        self.0.insert(key, server);
    }

    /// Removes servers that are gone.
    pub fn expire(&mut self, now: Timestamp) {
        self.0.retain(|_, server| now.duration_since(server.last_seen) < LIFETIME);
    }

    pub fn list(&self) -> Vec<ForeignServer> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(address: u8, second: i64, mac: Option<MacAddr>) -> ForeignServer {
        let at = Timestamp::from_second(second).unwrap();
        ForeignServer {
            interface: "lan0".into(),
            address: Ipv4Addr::new(192, 0, 2, address),
            mac,
            router: None,
            first_seen: at,
            last_seen: at,
        }
    }

    #[test]
    fn a_server_is_listed_until_it_is_not_observed_any_more() {
        let mut servers = ForeignServers::default();
        let mac = Some(MacAddr([2; 6]));
        servers.note(server(66, 100, mac));
        servers.note(server(66, 200, None));
        let expected =
            ForeignServer { last_seen: Timestamp::from_second(200).unwrap(), ..server(66, 100, mac) };
        assert_eq!(servers.list(), [expected]);
        servers.expire(Timestamp::from_second(200 + LIFETIME.as_secs() - 1).unwrap());
        assert_eq!(servers.list().len(), 1);
        servers.expire(Timestamp::from_second(200 + LIFETIME.as_secs()).unwrap());
        assert_eq!(servers.list(), []);
    }

    #[test]
    fn forged_addresses_fill_no_memory() {
        let mut servers = ForeignServers::default();
        (0..=255).for_each(|address| servers.note(server(address, 1, None)));
        assert_eq!(servers.list().len(), MAX_SERVERS);
    }
}
