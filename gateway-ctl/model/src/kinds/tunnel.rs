//! Tunnels: encrypted egresses by WireGuard or OpenVPN.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::bridge::{Bridge, TransportType};
use super::hops::{Hop, HopType};
use super::routing_policy::admit_uplink;
use super::tunnel_health::{HealthCheck, LIVE_KEYS, PeerLive, TunnelLive};
use crate::destination::Destination;
use crate::edit::EditError;
use crate::id::{FormatError, IfName, text_serde};
use crate::id_or_name::{check_reference, reference};
use crate::ovpn::{self, Ovpn, Tag};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource, ref_key};
use crate::secret::Secret;
use crate::state::State;
use crate::validated::{
    Cidr, Endpoint, PublicKey, check_free_text, check_slug, check_tags, is_host_name, text_enum,
};

text_enum! {
    #[derive(Default)]
    pub enum TunnelType {
        #[default]
        Wireguard = "wireguard",
        Openvpn = "openvpn",
    }
}

text_enum! {
    /// State that the user requested by up or down.
    #[derive(Default)]
    pub enum AdminState {
        #[default]
        Up = "up",
        Down = "down",
    }
}

/// Uplink for the outer packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Uplink {
    /// The default route.
    #[default]
    Auto,
    Interface(IfName),
}

impl Uplink {
    /// Reports whether a policy may use this hop as the underlay of the tunnel.
    pub fn allows(&self, under: &Hop) -> bool {
        match self {
            Uplink::Auto => true,
            Uplink::Interface(name) => under.r#type == HopType::Interface && under.target == name.as_str(),
        }
    }
}

impl std::fmt::Display for Uplink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Uplink::Auto => f.write_str("auto"),
            Uplink::Interface(name) => name.fmt(f),
        }
    }
}

impl std::str::FromStr for Uplink {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Uplink, FormatError> {
        if text == "auto" { Ok(Uplink::Auto) } else { text.parse().map(Uplink::Interface) }
    }
}

text_serde!(Uplink, ({ "type": "string", "description": "`auto` or the name of an interface." }));

/// A tunnel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tunnel {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Unique; policies name the tunnel by it.
    #[schemars(regex(pattern = "^[a-z0-9_-]{1,32}$"))]
    pub name: String,
    pub r#type: TunnelType,
    /// A disabled tunnel is down and cannot be brought up.
    pub enabled: bool,
    /// Brought up when it is created and when the service starts.
    pub autostart: bool,
    #[schemars(extend("readOnly" = true))]
    pub admin_state: AdminState,
    /// Time at which the tunnel was taken down. For 30 s it keeps its flows if their policies have another egress for
    /// new flows.
    #[schemars(extend("readOnly" = true))]
    pub down_since: Option<Timestamp>,
    /// Bytes of an inner packet; without it, it follows from the uplink.
    pub mtu: Option<u16>,
    /// Name servers inside the tunnel, for profiles with the DNS mode `tunnel`.
    pub dns: Vec<String>,
    pub uplink: Uplink,
    /// For information: the failure policy of each policy applies when the tunnel is down.
    pub kill_switch: bool,
    /// Seconds between keepalives to peers without their own; 0 sends none. OpenVPN: seconds between pings, unless the
    /// file or the server sets them.
    pub keepalive: u16,
    pub health_check: HealthCheck,
    /// Hide the LAN's addresses behind the tunnel's.
    pub masquerade: bool,
    /// Share of new connections in a pool: 1 to 16.
    pub weight: u16,
    /// WireGuard: name of the transport bridge for the outer packets. If the bridge is missing or disabled, the tunnel
    /// is unavailable; it never bypasses the bridge.
    pub bridge: Option<String>,
    pub notes: String,
    pub tags: Vec<String>,

    #[serde(rename(serialize = "has_private_key", deserialize = "private_key"))]
    pub private_key: Secret,
    /// Follows from the private key.
    #[schemars(extend("readOnly" = true))]
    pub public_key: Option<PublicKey>,
    /// Addresses of this end, with prefix length.
    pub addresses: Vec<Cidr>,
    pub listen_port: Option<u16>,
    pub peers: Vec<Peer>,

    /// OpenVPN: the text of the `.ovpn` file.
    #[serde(rename(serialize = "has_config", deserialize = "config"))]
    pub config: Secret,
    /// OpenVPN: replaces the user name and password in the file.
    pub username: Option<String>,
    #[serde(rename(serialize = "has_password", deserialize = "password"))]
    pub password: Secret,
    /// OpenVPN: opens the key in the file.
    #[serde(rename(serialize = "has_key_passphrase", deserialize = "key_passphrase"))]
    pub key_passphrase: Secret,
    /// OpenVPN: the servers in the file.
    #[schemars(extend("readOnly" = true))]
    pub remotes: Vec<String>,
    /// OpenVPN: the cipher that the file would like best; while the tunnel is up, the one that was agreed on.
    #[schemars(extend("readOnly" = true))]
    pub cipher: Option<String>,
}

/// The other end of a WireGuard tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    pub public_key: PublicKey,
    #[serde(default, rename(serialize = "has_preshared_key", deserialize = "preshared_key"))]
    pub preshared_key: Secret,
    #[serde(default)]
    pub endpoint: Option<Endpoint>,
    /// Inner destinations behind this peer; `0.0.0.0/0` and `::/0` for an egress.
    #[serde(default)]
    pub allowed_ips: Vec<Cidr>,
    #[serde(default)]
    pub persistent_keepalive: Option<u16>,
}

impl Default for Tunnel {
    fn default() -> Tunnel {
        Tunnel {
            meta: Meta::default(),
            name: String::new(),
            r#type: TunnelType::Wireguard,
            enabled: true,
            autostart: true,
            admin_state: AdminState::Up,
            down_since: None,
            mtu: None,
            dns: Vec::new(),
            uplink: Uplink::Auto,
            kill_switch: true,
            keepalive: 25,
            health_check: HealthCheck::default(),
            masquerade: true,
            weight: 1,
            bridge: None,
            notes: String::new(),
            tags: Vec::new(),
            private_key: Secret::default(),
            public_key: None,
            addresses: Vec::new(),
            listen_port: None,
            peers: Vec::new(),
            config: Secret::default(),
            username: None,
            password: Secret::default(),
            key_passphrase: Secret::default(),
            remotes: Vec::new(),
            cipher: None,
        }
    }
}

/// OpenVPN takes no longer words.
const LONGEST_CREDENTIAL: usize = 255;

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// The public key that belongs to a WireGuard private key.
pub fn public_key(private_key: &Secret) -> Option<PublicKey> {
    let secret = x25519_dalek::StaticSecret::from(*private_key.key()?);
    Some(PublicKey(x25519_dalek::PublicKey::from(&secret).to_bytes()))
}

impl Tunnel {
    /// Reports whether the tunnel should be up by its own settings.
    pub fn wanted_up(&self) -> bool {
        self.enabled && self.admin_state == AdminState::Up
    }

    pub fn set_admin_state(&mut self, want: AdminState, now: Timestamp) {
        if self.admin_state != want {
            self.down_since = (want == AdminState::Down).then_some(now);
        }
        self.admin_state = want;
    }

    fn validate_wireguard(&self, problems: &mut Problems) {
        match (self.private_key.is_set(), &self.public_key) {
            (false, _) => problems.required("private_key"),
            (true, None) => {
                problems.add(
                    code::FORMAT,
                    "private_key",
                    "Expected a WireGuard key: 32 bytes in base64, 44 characters.",
                );
            }
            (true, Some(_)) => {}
        }
        if self.addresses.is_empty() {
            problems
                .warn("addresses", "Without an address of its own nothing can be sent through the tunnel.");
        }
        if self.addresses.len() > 32 {
            problems.add(code::RANGE, "addresses", "At most 32 addresses.");
        }
        for (index, address) in self.addresses.iter().enumerate() {
            let ip = address.net().addr();
            if ip.is_multicast() || ip.is_unspecified() || ip.is_loopback() {
                problems.add(
                    code::RANGE,
                    format!("addresses[{index}]"),
                    format!("{ip} cannot be the address of an interface."),
                );
            }
            if self.addresses[..index].contains(address) {
                problems.add(
                    code::DUPLICATE,
                    format!("addresses[{index}]"),
                    format!("{address} is given twice."),
                );
            }
        }
        if self.listen_port == Some(0) {
            problems.add(code::RANGE, "listen_port", "Must be from 1 to 65535.");
        }
        if self.peers.is_empty() {
            problems.warn("peers", "Without a peer the tunnel leads nowhere.");
        }
        self.validate_peers(problems);
    }

    fn validate_peers(&self, problems: &mut Problems) {
        if self.peers.len() > 256 {
            problems.add(code::RANGE, "peers", "At most 256 peers.");
        }
        let mut keys = BTreeSet::new();
        let mut networks = BTreeSet::new();
        for (index, peer) in self.peers.iter().enumerate() {
            let path = format!("peers[{index}]");
            if !keys.insert(peer.public_key) {
                problems.add(code::DUPLICATE, format!("{path}.public_key"), "Another peer has this key.");
            }
            if Some(peer.public_key) == self.public_key {
                problems.add(code::CONFLICT, format!("{path}.public_key"), "This is the tunnel's own key.");
            }
            if peer.preshared_key.is_set() && peer.preshared_key.key().is_none() {
                let message = "Expected a WireGuard key: 32 bytes in base64, 44 characters.";
                problems.add(code::FORMAT, format!("{path}.preshared_key"), message);
            }
            for (place, net) in peer.allowed_ips.iter().enumerate() {
                if !networks.insert(net.net().trunc()) {
                    let message = format!("{net} is given twice: a network belongs to one peer.");
                    problems.add(code::DUPLICATE, format!("{path}.allowed_ips[{place}]"), message);
                }
            }
            if peer.allowed_ips.is_empty() {
                problems.warn(format!("{path}.allowed_ips"), "Nothing is sent to a peer without networks.");
            }
        }
    }

    fn validate_health_check(&self, problems: &mut Problems) {
        self.health_check.validate("health_check", &self.dns, problems);
        let Ok(Some(probe)) = self.health_check.probe(&self.dns) else { return };
        let of_family = |address: &Cidr| address.net().addr().is_ipv6() == probe.address().is_ipv6();
        if self.r#type == TunnelType::Wireguard && !self.addresses.iter().any(of_family) {
            let message = format!("The tunnel has no address from which to reach {}.", probe.address());
            problems.add(code::CONFLICT, "health_check.target", message);
        }
    }

    fn validate_openvpn(&self, problems: &mut Problems) {
        for (field, given) in [
            ("addresses", !self.addresses.is_empty()),
            ("peers", !self.peers.is_empty()),
            ("listen_port", self.listen_port.is_some()),
        ] {
            if given {
                problems.add(
                    code::CONFLICT,
                    field,
                    "This field is of WireGuard; the server and the file say it here.",
                );
            }
        }
        let username = self.username.as_deref().unwrap_or_default();
        for (field, text) in [
            ("username", username),
            ("password", self.password.expose()),
            ("key_passphrase", self.key_passphrase.expose()),
        ] {
            if text.len() > LONGEST_CREDENTIAL || text.chars().any(char::is_control) {
                let message = format!("At most {LONGEST_CREDENTIAL} bytes, no control characters.");
                problems.add(code::FORMAT, field, message);
            }
        }
        if !self.config.is_set() {
            return problems.required("config");
        }
        if !self.config.is_readable() {
            return problems.warn("config", "The stored file cannot be read; give it again.");
        }
        match ovpn::parse(self.config.expose()) {
            Ok(file) => self.validate_file(&file, problems),
            Err(errors) => {
                for error in errors {
                    problems.add(code::FORMAT, "config", format!("{}.", capitalised(&error.to_string())));
                }
            }
        }
    }

    fn validate_file(&self, file: &Ovpn, problems: &mut Problems) {
        for dropped in &file.dropped {
            problems.warn("config", dropped.to_string());
        }
        if file.asks_credentials && file.credentials.is_none() && self.username.is_none() {
            problems.warn(
                "username",
                "The server asks for a user name and a password; the tunnel comes up when both are set.",
            );
        }
        if !ovpn::SERVER_CHECKS.iter().any(|name| file.has(name))
            && file.block(Tag::PeerFingerprint).is_none()
        {
            let message = "Whoever has a certificate of the same authority can pose as the server: add `remote-cert-tls server`.";
            problems.warn("config", message);
        }
    }

    fn validate_bridge(&self, state: &State, problems: &mut Problems) {
        if self.bridge.is_none() {
            return;
        }
        if self.r#type == TunnelType::Openvpn {
            return problems.not_supported("bridge", "A bridge below an OpenVPN tunnel");
        }
        check_reference::<Bridge>("bridge", &self.bridge, state, problems);
        if self.peers.len() > 1 {
            problems.add(code::CONFLICT, "peers", "A bridge leads to one place: one peer at most.");
        }
        let Some(bridge) = state.referred::<Bridge>(&self.bridge) else { return };
        match &bridge.transport {
            None => {
                let message =
                    format!("{} is a bridge of kind segment, which carries no tunnel.", bridge.name);
                problems.add(code::CONFLICT, "bridge", message);
            }
            Some(transport) if transport.r#type == TransportType::Socks5 => {
                if self.peers.iter().any(|peer| peer.endpoint.is_none()) {
                    let message = "The proxy needs the address of the peer.";
                    problems.add(code::REQUIRED, "peers[0].endpoint", message);
                }
            }
            Some(_) => {}
        }
    }

    /// The file as it is obeyed.
    pub fn openvpn_file(&self) -> Option<Ovpn> {
        ovpn::parse(self.config.expose()).ok()
    }
}

impl Resource for Tunnel {
    const NOUN: &'static str = "tunnel";
    const COLLECTION: &'static str = "tunnels";
    // A tunnel's number is in the packet mark of its traffic, which has eight bits for it and keeps
    // the first fifteen for uplinks.
    const SLOTS: u32 = 241;
    const SECRETS: &'static [&'static str] =
        &["private_key", "peers[].preshared_key", "config", "password", "key_passphrase"];
    const SENT_SECRETS: &'static [&'static str] = &["password", "key_passphrase"];
    // WireGuard sends neither of its keys, and knows its peer by the key of the peer, to which a preshared key is bound. The
    // file of OpenVPN has the destination in itself.
    const LOCAL_SECRETS: &'static [&'static str] = &["private_key", "peers[].preshared_key", "config"];
    const READ_ONLY: &'static [&'static str] = LIVE_KEYS;
    const REQUIRED: &'static [&'static str] = &["name", "type"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn prepare(&mut self) {
        self.public_key = public_key(&self.private_key);
        if self.r#type != TunnelType::Openvpn {
            (self.remotes, self.cipher) = (Vec::new(), None);
        } else if self.config.is_readable() {
            let file = self.openvpn_file().unwrap_or_default();
            self.remotes = file.remotes.iter().map(ToString::to_string).collect();
            self.cipher = file.cipher().map(str::to_owned);
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_slug("name", &self.name, problems);
        if let Some(mtu) = self.mtu
            && !(576..=9000).contains(&mtu)
        {
            problems.add(code::RANGE, "mtu", "Must be from 576 to 9000; IPv6 needs at least 1280.");
        }
        if self.dns.len() > 16 {
            problems.add(code::RANGE, "dns", "At most 16 name servers.");
        }
        for (index, server) in self.dns.iter().enumerate() {
            if server.parse::<std::net::IpAddr>().is_err() && !is_host_name(server) {
                problems.add(code::FORMAT, format!("dns[{index}]"), "Expected an address or a domain.");
            }
        }
        if !(1..=256).contains(&self.weight) {
            problems.add(code::RANGE, "weight", "Must be from 1 to 256.");
        }
        self.validate_bridge(state, problems);
        if !self.masquerade {
            problems.not_supported("masquerade", "A tunnel without masquerading");
        }
        self.validate_health_check(problems);
        check_free_text("notes", &self.notes, 4000, problems);
        check_tags("tags", &self.tags, problems);
        match self.r#type {
            TunnelType::Wireguard => self.validate_wireguard(problems),
            TunnelType::Openvpn => self.validate_openvpn(problems),
        }
        let before = state.tunnels.get(self.meta.id).filter(|before| before.name != self.name);
        if let Some(before) = before {
            let bound = state.routing_policies.with_key(&ref_key(Self::NOUN, &before.name)).count();
            if bound > 0 {
                let message = format!(
                    "{bound} policies name it {:?}; for them it is unavailable until they are edited.",
                    before.name
                );
                problems.warn("name", message);
            }
        }
    }

    fn refs(&self) -> Vec<Ref> {
        reference::<Bridge>("bridge", &self.bridge, Hold::Firm).into_iter().collect()
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
        if let Some(port) = self.listen_port {
            keys.shared(format!("listen:{port}"));
        }
    }

    fn admit(&self, _before: Option<&Self>, state: &State) -> Result<(), EditError> {
        admit_uplink(self, state)?;
        let Some(port) = self.listen_port else { return Ok(()) };
        let mut others = state.tunnels.with_key(&format!("listen:{port}"));
        match others.find(|other| other.meta.id != self.meta.id) {
            None => Ok(()),
            Some(other) => Err(EditError::Conflict {
                resource_type: Self::NOUN,
                field: "listen_port".into(),
                existing_id: other.meta.id,
                message: format!("The tunnel {} listens on port {port} already.", other.name),
            }),
        }
    }

    fn secrets(&mut self) -> Vec<(String, &mut Secret)> {
        let mut secrets = vec![("/private_key".to_owned(), &mut self.private_key)];
        for (index, peer) in self.peers.iter_mut().enumerate() {
            secrets.push((format!("/peers/{index}/preshared_key"), &mut peer.preshared_key));
        }
        secrets.push(("/config".to_owned(), &mut self.config));
        secrets.push(("/password".to_owned(), &mut self.password));
        secrets.push(("/key_passphrase".to_owned(), &mut self.key_passphrase));
        secrets
    }

    fn destination(&self) -> Destination {
        let file = self.openvpn_file();
        let fields =
            file.map(|file| [("config.remote", file.servers()), ("config.ca", file.server_identity())]);
        fields.into_iter().flatten().collect()
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        let keep = |map: &mut Map<String, Value>, key: &str, secret: &Secret| {
            if secret.is_set() && !map.contains_key(key) {
                map.insert(key.to_owned(), secret.kept().into());
            }
        };
        keep(input, "private_key", &before.private_key);
        keep(input, "config", &before.config);
        keep(input, "password", &before.password);
        keep(input, "key_passphrase", &before.key_passphrase);
        input.insert("admin_state".into(), before.admin_state.as_str().into());
        input.insert("down_since".into(), before.down_since.map(|at| at.to_string()).into());
        for peer in input.get_mut("peers").and_then(Value::as_array_mut).into_iter().flatten() {
            let Value::Object(peer) = peer else { continue };
            let key: Option<PublicKey> =
                peer.get("public_key").and_then(Value::as_str).and_then(|key| key.parse().ok());
            if let Some(old) = before.peers.iter().find(|old| Some(old.public_key) == key) {
                keep(peer, "preshared_key", &old.preshared_key);
            }
        }
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        describe_observed_peer(generator);
        Some(TunnelLive::json_schema(generator))
    }
}

/// Adds the observed fields to the schema of a shown peer, which that of the tunnel refers to.
fn describe_observed_peer(generator: &mut SchemaGenerator) {
    let live = PeerLive::json_schema(generator);
    let Some(Value::Object(peer)) = generator.definitions_mut().get_mut(&*Peer::schema_name()) else {
        return;
    };
    for key in ["properties", "required"] {
        match (peer.get_mut(key), live.get(key)) {
            (Some(Value::Object(fields)), Some(Value::Object(more))) => fields.extend(more.clone()),
            (Some(Value::Array(names)), Some(Value::Array(more))) => {
                let missing: Vec<Value> = more.iter().filter(|name| !names.contains(name)).cloned().collect();
                names.extend(missing);
            }
            _ => {}
        }
    }
}
