//! States and facts for tests, made of the objects that users send.

use std::collections::BTreeMap;

use gateway_core::compile::{Compiled, Input, compile};
use gateway_core::facts::{DefaultRoute, Facts, Link, MeshLeg, MeshLink, TunnelFact};
use gateway_core::indexes::LegId;
use gateway_core::network::{Network, UplinkSettings};
use gateway_model::registry::kind;
use gateway_model::{EditError, Id, State};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A private key, a preshared key and the public key of a peer, recognisable wherever they appear.
pub(crate) const PRIVATE_KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";
pub(crate) const PRESHARED_KEY: &str = "UFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFM=";
pub(crate) const PEER: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";

/// Everything that is compiled.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub state: State,
    pub network: Network,
    pub facts: Facts,
    pub now: Timestamp,
    pub ids: BTreeMap<String, Id>,
}

/// Returns the leg with a number.
pub(crate) fn leg(number: u8) -> LegId {
    LegId::new(number).expect("a leg")
}

impl Fixture {
    /// A gateway with a LAN `lan0` (192.168.1.1/24, fd00:1::1/64) and an uplink `wan0`, both up.
    pub(crate) fn new() -> Fixture {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().expect("a time");
        let mut fixture = Fixture {
            state: State::new(now).begin(now),
            network: Network {
                lan: vec!["lan0".into()],
                uplinks: vec![UplinkSettings { interface: "wan0".into(), ..UplinkSettings::default() }],
                sample_every: 0,
                fast_path: false,
                xdp: Default::default(),
                ..Network::default()
            },
            facts: Facts::default(),
            now,
            ids: BTreeMap::new(),
        };
        fixture.link("lan0", 2).link("wan0", 3);
        fixture.address("lan0", "192.168.1.1/24").address("lan0", "fd00:1::1/64");
        fixture.address("wan0", "198.51.100.2/24").address("wan0", "2001:db8:ffff::2/64");
        fixture.default_route("wan0", "198.51.100.1").default_route("wan0", "2001:db8:ffff::1");
        fixture
    }

    pub(crate) fn link(&mut self, name: &str, index: u32) -> &mut Fixture {
        let link = Link { index, up: true, mtu: 1500, ..Link::default() };
        self.facts.links.insert(name.to_owned(), link);
        self
    }

    pub(crate) fn vlan_link(&mut self, name: &str, index: u32, parent: &str, id: u16) -> &mut Fixture {
        self.link(name, index);
        let link = self.facts.links.get_mut(name).expect("just made");
        link.vlan = Some((parent.to_owned(), id));
        link.lower = Some(parent.to_owned());
        self
    }

    pub(crate) fn address(&mut self, name: &str, address: &str) -> &mut Fixture {
        let addresses = self.facts.addresses.entry(name.to_owned()).or_default();
        addresses.insert(address.parse().expect("an address with prefix length"));
        self
    }

    pub(crate) fn default_route(&mut self, interface: &str, gateway: &str) -> &mut Fixture {
        let gateway: std::net::IpAddr = gateway.parse().expect("an address");
        self.facts.default_routes.push(DefaultRoute {
            interface: interface.to_owned(),
            gateway: Some(gateway),
            metric: 100,
            ipv6: gateway.is_ipv6(),
        });
        self
    }

    pub(crate) fn create(&mut self, noun: &str, input: Value) -> Result<Id, EditError> {
        let name = input["name"].as_str().map(str::to_owned);
        let written = kind(noun).expect("a kind").create(&mut self.state, input)?;
        if let Some(name) = name {
            self.ids.insert(name, written.id);
        }
        Ok(written.id)
    }

    pub(crate) fn device(&mut self, name: &str, mac: &str) -> Id {
        self.create("device", json!({"name": name, "mac": mac})).expect("a device")
    }

    /// A tunnel for both families whose interface is up and which is usable.
    pub(crate) fn tunnel(&mut self, name: &str) -> Id {
        self.tunnel_with(name, &["10.64.0.2/32", "fd64::2/128"])
    }

    pub(crate) fn tunnel_with(&mut self, name: &str, addresses: &[&str]) -> Id {
        let id = self
            .create(
                "tunnel",
                json!({
                    "name": name, "type": "wireguard", "private_key": PRIVATE_KEY, "addresses": addresses,
                    "peers": [{"public_key": PEER, "preshared_key": PRESHARED_KEY, "endpoint": "203.0.113.9:51820", "allowed_ips": ["0.0.0.0/0", "::/0"]}],
                }),
            )
            .expect("a tunnel");
        let index = 100 + u32::try_from(self.state.tunnels.len()).expect("few tunnels");
        self.link(&format!("wg-{name}"), index);
        self.facts.links.get_mut(&format!("wg-{name}")).expect("just made").kind = "tun".to_owned();
        self.set_usable(name, true);
        id
    }

    /// A usable peer of a mesh that offers these prefixes. This gateway has an address of each family there.
    pub(crate) fn mesh_peer(&mut self, name: &str, number: u8, routes: &[&str]) -> &mut Fixture {
        let interface = format!("mesh{number}");
        self.link("mesh0", 40).link(&interface, 41 + u32::from(number));
        let own = ["100.64.0.5", "fd7a:115c:a1e0::5"];
        for (interface, address) in
            [("mesh0", own[0]), ("mesh0", own[1]), (&interface, own[0]), (&interface, own[1])]
        {
            let length = if address.contains(':') { 128 } else { 32 };
            self.address(interface, &format!("{address}/{length}"));
        }
        let mesh = self.facts.mesh.get_or_insert_with(|| MeshLink {
            interface: "mesh0".to_owned(),
            mtu: 1280,
            port: 41641,
            addresses: own.iter().map(|address| address.parse().expect("an address")).collect(),
            ..MeshLink::default()
        });
        let leg = MeshLeg {
            number: leg(number),
            interface,
            routes: routes.iter().map(|net| net.parse().expect("a network")).collect(),
            accepts_routes: false,
            usable: true,
            reason: String::new(),
        };
        mesh.legs.insert(name.to_owned(), leg);
        self
    }

    pub(crate) fn set_peer_usable(&mut self, name: &str, usable: bool) -> &mut Fixture {
        let leg = self.facts.mesh.as_mut().and_then(|mesh| mesh.legs.get_mut(name)).expect("a peer");
        leg.usable = usable;
        leg.reason = if usable { String::new() } else { "no answer for 15 s".to_owned() };
        self
    }

    pub(crate) fn set_usable(&mut self, tunnel: &str, usable: bool) -> &mut Fixture {
        let id = self.ids[tunnel].to_string();
        let reason = if usable { "" } else { "no handshake for 192 s" };
        self.facts
            .tunnels
            .insert(id, TunnelFact { usable, reason: reason.to_owned(), ..TunnelFact::default() });
        self
    }

    pub(crate) fn policy(&mut self, input: Value) -> Id {
        self.create("routing_policy", input).expect("a policy")
    }

    pub(crate) fn apply(&mut self) -> &mut Fixture {
        self.state.freeze_applied();
        self
    }

    pub(crate) fn input(&self) -> Input<'_> {
        Input { state: &self.state, network: &self.network, facts: &self.facts, now: self.now }
    }

    pub(crate) fn compiled(&self) -> Compiled {
        compile(&self.input())
    }
}
