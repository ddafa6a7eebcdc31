//! Servers that leak checks ask for the address that they see.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::{Endpoint, Host};

/// Maximum number of servers.
const MAX_SERVERS: usize = 8;

/// Servers that take part in leak checks. By default no third party does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LeakCheckSettings {
    /// STUN servers (RFC 8489) that the gateway asks, over UDP, for the address that they see: at most 8. A name is
    /// resolved by `dns.bootstrap_servers`, through the egress by which the server is asked.
    #[schemars(length(max = 8))]
    pub stun_servers: Vec<Endpoint>,
}

impl Group for LeakCheckSettings {
    const KEY: &'static str = "privacy.leak_check";
    const NOUN: &'static str = "privacy_leak_check";

    fn validate(&self, _: &State, problems: &mut Problems) {
        let servers = &self.stun_servers;
        if servers.len() > MAX_SERVERS {
            problems.add(code::RANGE, "stun_servers", format!("Name at most {MAX_SERVERS} servers."));
        }
        for (index, server) in servers.iter().enumerate() {
            let path = format!("stun_servers[{index}]");
            if servers[..index].contains(server) {
                problems.add(code::DUPLICATE, path, format!("{server} is named twice."));
            } else if !is_reachable(&server.host) {
                let message = "Expected a server elsewhere, such as stun.example.net:3478 or 192.0.2.1:3478.";
                problems.add(code::FORMAT, path, message);
            }
        }
    }
}

/// Reports whether an egress can lead to the host.
fn is_reachable(host: &Host) -> bool {
    match host {
        Host::Address(address) => {
            !(address.is_unspecified() || address.is_loopback() || address.is_multicast())
        }
        Host::Name(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::edit::EditError;
    use crate::settings::group::GroupKind;

    fn put(servers: &Value) -> Result<State, EditError> {
        let group = GroupKind::find("privacy.leak_check").unwrap();
        let mut draft = State::default().begin("2026-11-24T12:00:00Z".parse().unwrap());
        group.put(&mut draft, json!({"stun_servers": servers}))?;
        Ok(draft)
    }

    #[test]
    fn no_server_takes_part_by_default() {
        assert!(State::default().group::<LeakCheckSettings>().stun_servers.is_empty());
    }

    #[test]
    fn names_and_addresses_of_both_families_are_stored() {
        let servers = json!(["stun.example.net:3478", "192.0.2.1:50000", "[2001:db8::1]:3478"]);
        let state = put(&servers).unwrap();
        let stored = serde_json::to_value(state.group::<LeakCheckSettings>()).unwrap();
        assert_eq!(stored["stun_servers"], servers);
    }

    #[test]
    fn each_invalid_server_is_refused_by_its_field() {
        let many: Vec<String> = (1..=9).map(|number| format!("192.0.2.{number}:3478")).collect();
        for (servers, path) in [
            (json!(["stun.example.net"]), "stun_servers[0]"),
            (json!(["192.0.2.1:0"]), "stun_servers[0]"),
            (json!(["2001:db8::1:3478"]), "stun_servers[0]"),
            (json!(["192.0.2.1:3478", "127.0.0.1:3478"]), "stun_servers[1]"),
            (json!(["[::]:3478"]), "stun_servers[0]"),
            (json!(["224.0.0.1:3478"]), "stun_servers[0]"),
            (json!(["192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:1"]), "stun_servers[2]"),
            (json!(many), "stun_servers"),
            (json!("192.0.2.1:3478"), "stun_servers"),
        ] {
            let EditError::Invalid(problems) = put(&servers).unwrap_err() else {
                panic!("not a validation error")
            };
            assert!(problems.has(path), "{servers}: {problems}");
        }
    }
}
