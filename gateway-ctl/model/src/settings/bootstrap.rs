//! The bootstrap configuration: a YAML file that is read at start, before there is a store.
//!
//! Strict, unlike the API: an unknown key is an error, and so is a setting that this version cannot obey.

mod access_point;
mod anomalies;
mod audit;
mod choices;
mod countries;
mod dataplane;
mod dns;
mod flow_log;
mod lan_ipv6;
mod mesh;
mod plan_history;
mod reconcile;
mod tls;
mod uplinks;
mod wan_access;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use access_point::Surroundings;
pub use access_point::{AccessPoint, Band, ChannelWidth, GuestNetwork, WirelessSecurity};
pub use anomalies::Anomalies;
pub use audit::Audit;
pub use choices::{FailoverMode, LogLevel, NetworkMode, UnknownHosts};
pub use countries::Countries;
pub use dataplane::{Dataplane, FastPathMode, XdpInterface, XdpMode};
pub use dns::Dns;
pub use flow_log::FlowLog;
pub use lan_ipv6::{LanIpv6, is_for_hosts};
pub use mesh::{Mesh, MeshCoordinator, MeshMembership, MeshRelay};
pub use plan_history::PlanHistory;
pub use reconcile::Reconcile;
pub use tls::Tls;
pub use wan_access::WanAccess;

use super::positions::Positions;
use super::uplink::Wan;
use super::virtual_link::{self, BridgeLink, VlanLink};
use super::yaml;
use crate::decode;
use crate::id::IfName;
use crate::kinds::Tunnel;
use crate::kinds::routing_policy::Sticky;
use crate::problem::{Problems, code};
use crate::registry::decode_input;
use crate::resource::Resource;
use crate::role::Role;
use crate::secret::Secret;
use crate::state::State;
use crate::validated::{Cidr, is_host_name, text_enum};

/// Example file with every key, its default and its meaning.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// Something wrong with the file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigError {
    /// `network.wans[0].weight`; empty for the whole file.
    pub path: String,
    /// From 1.
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

text_enum! {
    #[derive(Default)]
    pub enum UpstreamMode {
        #[default]
        Plain = "plain",
        Doh = "doh",
        Dot = "dot",
    }
}

text_enum! {
    /// Upstream for names without a forwarder.
    #[derive(Default)]
    pub enum DnsBackend {
        /// The upstream servers.
        #[default]
        Integrated = "integrated",
        /// The external filter.
        Extfilter = "extfilter",
    }
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bootstrap {
    /// The store, lists, fallback secrets.
    pub state_dir: PathBuf,
    /// Sockets and other things that may vanish at a restart of the host.
    pub runtime_dir: PathBuf,
    /// File that records that this gateway was initialised, outside of `state_dir`. None: `initialised` beside the
    /// configuration file.
    pub marker: Option<PathBuf>,
    pub listen: Listen,
    pub log: Log,
    pub network: Network,
    pub dns: Dns,
    pub auth: Auth,
    pub reconcile: Reconcile,
    pub tls: Tls,
    pub bpf: Bpf,
    pub dataplane: Dataplane,
    pub audit: Audit,
    pub flow_log: FlowLog,
    pub plan_history: PlanHistory,
    pub anomalies: Anomalies,
    pub countries: Countries,
    pub mesh: Mesh,
    /// Created at the first start, when the store has no tunnel of the name.
    #[serde(skip_deserializing)]
    pub tunnels: Vec<Tunnel>,
    #[serde(skip)]
    pub given: GivenKeys,
}

/// Keys that the file has, without the defaults. Holds API keys, so it is never printed.
#[derive(Clone, Default, PartialEq)]
pub struct GivenKeys(pub(super) Map<String, Value>);

impl fmt::Debug for GivenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenKeys")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listen {
    /// REST API and web UI.
    pub api_addr: SocketAddr,
    /// Names under which browsers may use it, in addition to addresses and `localhost`.
    pub host_names: Vec<String>,
    pub wan_access: WanAccess,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Log {
    pub level: LogLevel,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    pub mode: NetworkMode,
    pub wan_iface: IfName,
    pub lan_iface: Interfaces,
    /// Derived from `wan_iface` when empty.
    pub wans: Vec<Wan>,
    /// The phone of `/bluetooth/failover`, which is no key of the configuration.
    #[serde(skip)]
    pub bluetooth: Option<Wan>,
    pub wan_failover_mode: FailoverMode,
    pub wan_balance: bool,
    /// Scope of flows that stay on one uplink while new flows are balanced.
    pub wan_sticky: Sticky,
    /// Bridges and VLAN interfaces that the gateway makes.
    pub bridges: Vec<BridgeLink>,
    pub vlans: Vec<VlanLink>,
    pub ipv6: LanIpv6,
    /// Access point, and the address of the gateway on its network.
    pub ap: Option<AccessPoint>,
    /// Treatment of hosts on the LAN that are no device.
    pub unknown_hosts: UnknownHosts,
}

/// One interface name or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Interfaces(pub Vec<IfName>);

impl<'de> Deserialize<'de> for Interfaces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Interfaces, D::Error> {
        match Value::deserialize(deserializer)? {
            list @ Value::Array(_) => decode::from_value(&list).map(Interfaces),
            one => decode::from_value(&one).map(|name| Interfaces(vec![name])),
        }
        .map_err(serde::de::Error::custom)
    }
}

/// Values that no message quotes.
pub(super) const SECRETS: &[&str] =
    &["auth.api_keys[].key", "network.ap.passphrase", "network.ap.guest.passphrase"];

/// Uplinks have the numbers from 1 to 15 in marks.
const MOST_UPLINKS: usize = 15;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Auth {
    /// While false, every request is admin.
    pub enabled: bool,
    pub local_net: Cidr,
    pub api_keys: Vec<ApiKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    #[serde(default)]
    pub name: String,
    #[serde(rename(serialize = "has_key", deserialize = "key"))]
    pub key: Secret,
    #[serde(default = "admin")]
    pub role: Role,
}

fn admin() -> Role {
    Role::Admin
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bpf {
    /// Folder on a BPF file system for pinned links and maps.
    pub pin_dir: PathBuf,
}

impl Default for Bootstrap {
    fn default() -> Bootstrap {
        Bootstrap {
            state_dir: "/var/lib/gatewayd".into(),
            runtime_dir: "/run/gatewayd".into(),
            marker: None,
            listen: Listen::default(),
            log: Log::default(),
            network: Network::default(),
            dns: Dns::default(),
            auth: Auth::default(),
            reconcile: Reconcile::default(),
            tls: Tls::default(),
            bpf: Bpf::default(),
            dataplane: Dataplane::default(),
            audit: Audit::default(),
            flow_log: FlowLog::default(),
            plan_history: PlanHistory::default(),
            anomalies: Anomalies::default(),
            countries: Countries::default(),
            mesh: Mesh::default(),
            tunnels: Vec::new(),
            given: GivenKeys::default(),
        }
    }
}

impl Listen {
    /// Reports whether a name is one of the configured host names.
    pub fn has_host_name(&self, name: &str) -> bool {
        self.host_names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

impl Default for Listen {
    fn default() -> Listen {
        Listen {
            api_addr: SocketAddr::from(([127, 0, 0, 1], 8080)),
            host_names: Vec::new(),
            wan_access: WanAccess::default(),
        }
    }
}

impl Default for Network {
    fn default() -> Network {
        let name = |text: &str| text.parse().expect("a valid interface name");
        Network {
            mode: NetworkMode::Primary,
            wan_iface: name("eth0"),
            lan_iface: Interfaces(vec![name("eth1")]),
            wans: Vec::new(),
            bluetooth: None,
            wan_failover_mode: FailoverMode::Auto,
            wan_balance: false,
            wan_sticky: Sticky::Flow,
            bridges: Vec::new(),
            vlans: Vec::new(),
            ipv6: LanIpv6::default(),
            ap: None,
            unknown_hosts: UnknownHosts::Direct,
        }
    }
}

impl Default for Auth {
    fn default() -> Auth {
        let local_net = "127.0.0.0/8".parse().expect("a valid network");
        Auth { enabled: false, local_net, api_keys: Vec::new() }
    }
}

impl Default for Bpf {
    fn default() -> Bpf {
        Bpf { pin_dir: "/sys/fs/bpf/gatewayd".into() }
    }
}

impl Bootstrap {
    /// Interfaces of the LAN that `network.lan_iface` lists.
    pub fn lans(&self) -> &[IfName] {
        &self.network.lan_iface.0
    }

    /// Interfaces of the LAN, with those of the access point that are not listed.
    pub fn all_lans(&self) -> Vec<IfName> {
        let network = &self.network;
        let mut all = network.lan_iface.0.clone();
        if let Some(ap) = &network.ap {
            let of_radio =
                (network.mode == NetworkMode::Portable).then(|| ap.lan_interface(&network.bridges));
            let guest = ap.guest_network().map(|guest| &guest.interface);
            for name in of_radio.into_iter().chain(guest) {
                if !all.contains(name) {
                    all.push(name.clone());
                }
            }
        }
        all
    }

    /// Settings that are accepted and have no effect yet, as human-readable text.
    pub fn without_effect(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let default = Auth::default();
        let given = !self.auth.api_keys.is_empty() || self.auth.local_net != default.local_net;
        if !self.auth.enabled && given {
            notes.push("auth.local_net and auth.api_keys: not used while auth.enabled is false".to_owned());
        }
        if !self.tls.enabled && (self.tls.cert.is_some() || self.tls.key.is_some()) {
            notes.push("tls.cert and tls.key: not used while tls.enabled is false".to_owned());
        }
        notes
    }

    pub(super) fn validate(&self, problems: &mut Problems) {
        for (path, folder) in [
            ("state_dir", &self.state_dir),
            ("runtime_dir", &self.runtime_dir),
            ("bpf.pin_dir", &self.bpf.pin_dir),
        ] {
            if !folder.is_absolute() {
                problems.add(code::FORMAT, path, "Expected an absolute path.");
            }
        }
        self.audit.validate(problems);
        self.plan_history.validate(problems);
        self.anomalies.validate(problems);
        self.countries.validate(problems);
        self.mesh.coordinator.validate(problems);
        self.mesh.member.validate(problems);
        if let Some(marker) = &self.marker {
            if !marker.is_absolute() {
                problems.add(code::FORMAT, "marker", "Expected an absolute path.");
            }
            if marker.starts_with(&self.state_dir) {
                let message =
                    "The marker must be outside of state_dir: it has to survive the loss of that folder.";
                problems.add(code::CONFLICT, "marker", message);
            }
        }
        if self.bpf.pin_dir.components().skip(1).any(|part| Path::new(&part).to_string_lossy().contains('.'))
        {
            problems.add(
                code::FORMAT,
                "bpf.pin_dir",
                "The kernel does not allow dots in names of a bpf file system.",
            );
        }
        if self.listen.api_addr.port() == 0 {
            problems.add(code::RANGE, "listen.api_addr", "The port must be from 1 to 65535.");
        }
        for (index, name) in self.listen.host_names.iter().enumerate() {
            if !is_host_name(name) {
                let message = "Expected a host name, without scheme and port.";
                problems.add(code::FORMAT, format!("listen.host_names[{index}]"), message);
            }
        }
        if self.reconcile.interval_sec < 5 {
            problems.add(code::RANGE, "reconcile.interval_sec", "Must be at least 5.");
        }
        self.validate_network(problems);
        self.validate_auth(problems);
        let uplinks = self.all_uplinks();
        let names: Vec<&str> =
            uplinks.iter().flat_map(|wan| [wan.interface.as_str(), wan.display_name()]).collect();
        self.listen.wan_access.validate(self.auth.enabled, self.tls.enabled, &names, problems);
        self.dataplane.validate(problems);
        self.flow_log.validate(problems);
        for (address, name) in &self.dns.upstream_tls_names {
            if !is_host_name(name) {
                problems.add(code::FORMAT, format!("dns.upstream_tls_names.{address}"), "Expected a domain.");
            }
        }
        self.validate_tls(problems);
    }

    fn validate_tls(&self, problems: &mut Problems) {
        let Tls { enabled: _, cert, key } = &self.tls;
        for (path, file) in [("tls.cert", cert), ("tls.key", key)] {
            if file.as_ref().is_some_and(|file| !file.is_absolute()) {
                problems.add(code::FORMAT, path, "Expected an absolute path.");
            }
        }
        match (cert, key) {
            (Some(_), None) => problems.required("tls.key"),
            (None, Some(_)) => problems.required("tls.cert"),
            _ => {}
        }
    }

    fn validate_network(&self, problems: &mut Problems) {
        let network = &self.network;
        match network.mode {
            NetworkMode::Primary => {}
            NetworkMode::Embedded => problems.not_supported("network.mode", "The mode embedded"),
            NetworkMode::Portable if network.ap.as_ref().is_some_and(|ap| ap.enabled) => {}
            NetworkMode::Portable => {
                let message = "A portable gateway runs an access point: set network.ap with enabled first.";
                problems.add(code::CONFLICT, "network.mode", message);
            }
        }
        for (index, wan) in network.wans.iter().enumerate() {
            let path = format!("network.wans[{index}]");
            wan.validate(&path, problems);
        }
        if network.wans.iter().filter(|wan| wan.enabled).count() > MOST_UPLINKS {
            problems.add(code::RANGE, "network.wans", format!("At most {MOST_UPLINKS} uplinks."));
        }
        network.ipv6.validate(problems);
        let (lans, uplinks) = (self.lans(), self.uplinks());
        let is_portable = network.mode == NetworkMode::Portable;
        let surroundings = Surroundings {
            lans,
            is_portable,
            wan: &network.wan_iface,
            wans: &network.wans,
            bridges: &network.bridges,
            vlans: &network.vlans,
        };
        network.ap.iter().for_each(|ap| ap.validate(&surroundings, problems));
        let routed: Vec<IfName> = lans.iter().chain(&uplinks).cloned().collect();
        virtual_link::validate(&network.bridges, &network.vlans, &routed, problems);
        if lans.is_empty() && !is_portable {
            problems.required("network.lan_iface");
        }
        for (index, lan) in lans.iter().enumerate() {
            let path = if lans.len() == 1 {
                "network.lan_iface".to_owned()
            } else {
                format!("network.lan_iface[{index}]")
            };
            if uplinks.contains(lan) {
                problems.add(code::CONFLICT, path, format!("{lan} is the uplink already."));
            } else if lans[..index].contains(lan) {
                problems.add(code::DUPLICATE, path, format!("{lan} is given twice."));
            }
        }
    }

    fn validate_auth(&self, problems: &mut Problems) {
        for (index, key) in self.auth.api_keys.iter().enumerate() {
            let path = format!("auth.api_keys[{index}].key");
            if key.key.expose().len() < 16 {
                problems.add(code::RANGE, path, "A key has at least 16 characters.");
            } else if self.auth.api_keys[..index].iter().any(|other| other.key == key.key) {
                problems.add(code::DUPLICATE, path, "This key is given twice.");
            }
        }
    }
}

/// Reads the file. Returns all errors at once, each with its position.
pub fn parse(text: &str) -> Result<Bootstrap, Vec<ConfigError>> {
    let positions = Positions::of(text);
    let at = |path: &str, message: String| {
        let (line, column) = positions.find(path);
        ConfigError { path: path.to_owned(), line, column, message }
    };
    let tree: serde_yaml::Value = serde_yaml::from_str(text).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |location| (location.line(), location.column()));
        vec![ConfigError { path: String::new(), line, column, message: format!("Not valid YAML: {error}.") }]
    })?;
    let tree =
        yaml::to_json(tree, "").map_err(|foreign| vec![at(&foreign.path, foreign.message.to_owned())])?;
    let mut map = match tree {
        Value::Object(map) => map,
        Value::Null => Default::default(),
        _ => return Err(vec![at("", "Expected keys and values, such as `log: { level: info }`.".into())]),
    };
    let mut problems = Problems::new();
    let tunnels = map.shift_remove("tunnels");
    let given = GivenKeys(map.clone());
    let decoded = decode::decode::<Bootstrap>(Value::Object(map), SECRETS, &mut problems);
    let mut bootstrap = None;
    if let Some(mut decoded) = decoded {
        for path in &decoded.unknown {
            problems.add(code::UNKNOWN_KEY, path, "Unknown key.");
        }
        let mut found = Problems::new();
        decoded.value.validate(&mut found);
        decoded.merge(&mut problems, found);
        decoded.value.tunnels = read_tunnels(tunnels, &mut problems);
        decoded.value.given = given;
        bootstrap = Some(decoded.value);
    }
    match bootstrap {
        Some(bootstrap) if problems.is_empty() => Ok(bootstrap),
        _ => {
            let mut errors: Vec<ConfigError> =
                problems.iter().map(|problem| at(&problem.path, problem.message.clone())).collect();
            errors.sort_by_key(|error| (error.line, error.column));
            Err(errors)
        }
    }
}

/// The initial tunnels, by the rules of the API but with unknown keys refused.
fn read_tunnels(given: Option<Value>, problems: &mut Problems) -> Vec<Tunnel> {
    let list = match given {
        None => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            problems.add(code::TYPE, "tunnels", "Expected a list.");
            return Vec::new();
        }
    };
    let state = State::default();
    let mut tunnels: Vec<Tunnel> = Vec::new();
    for (index, value) in list.into_iter().enumerate() {
        let path = |inner: &str| match inner {
            "" => format!("tunnels[{index}]"),
            inner => format!("tunnels[{index}].{inner}"),
        };
        let (mut tunnel, unknown) = match decode_input::<Tunnel>(value, None, &state) {
            Ok(decoded) => decoded,
            Err(found) => {
                for problem in found.list() {
                    problems.add(problem.code, path(&problem.path), problem.message.clone());
                }
                continue;
            }
        };
        for warning in unknown {
            problems.add(code::UNKNOWN_KEY, path(&warning.path), "Unknown key.");
        }
        tunnel.prepare();
        let mut found = Problems::new();
        tunnel.validate(&state, &mut found);
        for problem in found.list() {
            problems.add(problem.code, path(&problem.path), problem.message.clone());
        }
        if tunnels.iter().any(|other| other.name == tunnel.name) {
            problems.add(code::DUPLICATE, path("name"), format!("The name {} is given twice.", tunnel.name));
        }
        tunnels.push(tunnel);
    }
    tunnels
}

#[cfg(test)]
mod tests;
