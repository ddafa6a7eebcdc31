//! Configuration in force: the configuration file, overridden by runtime settings. All parts of the daemon read it
//! here, or in the [`World`](crate::world::World) that is built with it.
//!
//! It is decoded from the tree of the file with the stored values inserted, so no value has a second validation. A
//! stored value that no longer fits is ignored and logged: an edited file cannot stop a start.

mod lan;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::indexes::LegId;
use gateway_core::network::{
    InterfaceSettings, LanIpv6Settings, MeshPorts, Network, UplinkNumbers, UplinkSettings,
};
use gateway_core::plan::VirtualLink;
use gateway_core::wan_access::WanAccess;
use gateway_core::xdp::XdpModes;
use gateway_model::settings::bootstrap::{Dataplane, FastPathMode, LanIpv6, MeshCoordinator, XdpInterface};
use gateway_model::settings::group::Group as _;
use gateway_model::settings::groups::{
    BluetoothFailover, InterfaceConfig, InterfaceMethod, InterfacesConfig,
};
use gateway_model::settings::uplink::Wan;
use gateway_model::settings::{Bootstrap, Settings};
use gateway_model::validated::Cidr;
use gateway_model::{Revision, State, decode};
use ipnet::IpNet;
use parking_lot::Mutex;

use lan::{access_point, access_point_addresses, add_segments};

/// Sampling rate: the BPF programs report one of this many new flows.
const SAMPLE_EVERY: u32 = 16;

/// Configuration in force with certain stored settings. A copy is cheap.
#[derive(Clone, Debug, Default)]
pub struct EffectiveConfiguration {
    /// Configuration file with the stored settings applied. Keys that need a restart keep their values from the
    /// start.
    pub config: Arc<Bootstrap>,
    /// Part of the configuration that the compiler uses.
    pub network: Arc<Network>,
}

/// Configuration file and the effect of stored settings. Clones share all of it.
#[derive(Clone, Debug)]
pub struct Configuration(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: Bootstrap,
    at_start: Settings,
    last: Mutex<LastConfiguration>,
}

#[derive(Debug, Default)]
struct LastConfiguration {
    uplinks: UplinkNumbers,
    made: Option<((Revision, Revision), EffectiveConfiguration)>,
}

impl Configuration {
    /// Creates the configuration. `at_start` are the stored settings at the start of the daemon; keys that need a
    /// restart keep those values.
    pub fn new(file: Bootstrap, at_start: Settings) -> Configuration {
        Configuration(Arc::new(Inner { file, at_start, last: Mutex::default() }))
    }

    /// Returns the configuration file without stored settings.
    pub fn file(&self) -> &Bootstrap {
        &self.0.file
    }

    /// Returns the configuration in force with the settings and segments of a state. It is built once for each revision
    /// of them.
    pub fn with(&self, state: &State) -> EffectiveConfiguration {
        let mut last = self.0.last.lock();
        match &last.made {
            Some((revisions, made)) if *revisions == revisions_of(state) => made.clone(),
            _ => self.make(&mut last, state),
        }
    }

    /// Restores the indexes that uplinks have in the kernel. Used at the start, before a plan exists.
    pub fn recall_uplinks(&self, numbers: &BTreeMap<String, LegId>) {
        let mut last = self.0.last.lock();
        *last = LastConfiguration::default();
        for (interface, number) in numbers {
            last.uplinks.recall(interface, *number);
        }
    }

    fn make(&self, last: &mut LastConfiguration, state: &State) -> EffectiveConfiguration {
        let settings = &state.settings;
        let (mut config, left_out) = self.0.file.in_force(settings, &self.0.at_start);
        for (key, why) in left_out {
            tracing::warn!(key, why, "ignored a stored setting that conflicts with the configuration file");
        }
        config.network.bluetooth = phone(&config, settings);
        let mut network = network(&config, &mut last.uplinks);
        network.interfaces = self.interfaces(&config, settings);
        add_segments(&mut network, state, &config);
        let network = Arc::new(network);
        let made = EffectiveConfiguration { config: Arc::new(config), network };
        last.made = Some((revisions_of(state), made.clone()));
        made
    }

    /// Returns the configurations of interfaces in force. Those of uplinks wait for a restart.
    fn interfaces(&self, config: &Bootstrap, settings: &Settings) -> BTreeMap<String, InterfaceSettings> {
        let (now, at_start) = (configured(settings), configured(&self.0.at_start));
        let uplinks = config.uplinks();
        let names: BTreeSet<_> = now.0.keys().chain(at_start.0.keys()).collect();
        let in_force = |name| if uplinks.contains(name) { at_start.0.get(name) } else { now.0.get(name) };
        let found = names.into_iter().filter_map(|name| Some((name, in_force(name)?)));
        let mut found: BTreeMap<String, InterfaceSettings> =
            found.map(|(name, config)| (name.to_string(), interface_settings(config))).collect();
        for (name, address, is_guest) in access_point_addresses(config) {
            let settings = found.entry(name).or_default();
            settings.method = InterfaceMethod::Static;
            settings.address = Some(address);
            settings.gateway = None;
            settings.on_demand = is_guest;
        }
        if let Some(phone) = &config.network.bluetooth {
            let settings = InterfaceSettings {
                method: InterfaceMethod::Dhcp,
                on_demand: true,
                ..InterfaceSettings::default()
            };
            found.insert(phone.interface.to_string(), settings);
        }
        found
    }

    /// Returns whether the stored configuration of an interface waits for a restart.
    pub fn is_interface_pending(&self, config: &Bootstrap, settings: &Settings, interface: &str) -> bool {
        let is_uplink = config.uplinks().iter().any(|uplink| uplink.as_str() == interface);
        let of = |settings: &Settings| {
            let all = configured(settings);
            let found = all.0.into_iter().find(|(name, _)| name.as_str() == interface);
            found.map(|(_, config)| config).unwrap_or_default()
        };
        is_uplink && of(settings) != of(&self.0.at_start)
    }
}

/// Returns the part of a configuration that the compiler uses.
pub fn network(config: &Bootstrap, numbers: &mut UplinkNumbers) -> Network {
    let uplinks = config.all_uplinks();
    let is_first = |(index, wan): &(usize, &Wan)| {
        !uplinks[..*index].iter().any(|other| other.interface == wan.interface)
    };
    let firsts = uplinks.iter().enumerate().filter(is_first).map(|(_, wan)| wan);
    let (enabled, disabled): (Vec<&Wan>, Vec<&Wan>) = firsts.partition(|wan| wan.enabled);
    let names: Vec<&str> = enabled.iter().map(|wan| wan.interface.as_str()).collect();
    let numbers = numbers.assign(&names);
    let uplink = |wan: &&Wan| {
        Some(UplinkSettings {
            number: *numbers.get(wan.interface.as_str())?,
            interface: wan.interface.to_string(),
            name: wan.name.clone(),
            probe_targets: wan.probe.targets.iter().filter_map(|target| target.parse().ok()).collect(),
            gateway: wan.gateway_address(),
            weight: wan.weight,
            balances: wan.balance,
            failover_states: wan.failover_states,
            failback_states: wan.failback_states,
        })
    };
    Network {
        lan: config.all_lans().iter().map(ToString::to_string).collect(),
        uplinks: enabled.iter().filter_map(uplink).collect(),
        disabled_uplinks: disabled.iter().map(|wan| wan.interface.to_string()).collect(),
        virtual_links: virtual_links(config),
        segment_links: BTreeMap::new(),
        interfaces: BTreeMap::new(),
        balances: config.network.wan_balance,
        sticky: config.network.wan_sticky,
        sample_every: SAMPLE_EVERY,
        fast_path: config.dataplane.fast_path == FastPathMode::On,
        flow_log: config.flow_log.enabled,
        server_names: config.flow_log.enabled && config.flow_log.server_names,
        xdp: xdp_modes(&config.dataplane),
        dns_port: config.dns.listen_addr.port(),
        admin_port: admin_port(config),
        wan_access: wan_access(config),
        mesh_ports: mesh_ports(config),
        resolvers: config.dns.upstream_servers.clone(),
        ipv6: lan_ipv6(config),
        unknown_hosts: config.network.unknown_hosts,
        access_point: access_point(config),
    }
}

/// Returns the revisions of what the configuration in force is made of.
fn revisions_of(state: &State) -> (Revision, Revision) {
    (state.settings.revision(), state.segments.revision())
}

fn xdp_modes(dataplane: &Dataplane) -> XdpModes {
    let of = |one: &XdpInterface| (one.interface.to_string(), one.mode);
    XdpModes { general: dataplane.xdp, interfaces: dataplane.xdp_interfaces.iter().map(of).collect() }
}

/// Returns the bridges and VLAN interfaces by name. The names were checked to be unique.
fn virtual_links(config: &Bootstrap) -> BTreeMap<String, VirtualLink> {
    let bridges = config.network.bridges.iter().map(|bridge| {
        let ports = bridge.ports.iter().map(ToString::to_string).collect();
        (bridge.name.to_string(), VirtualLink::Bridge { ports })
    });
    let vlans = config.network.vlans.iter().map(|vlan| {
        (vlan.name.to_string(), VirtualLink::Vlan { parent: vlan.parent.to_string(), id: vlan.id })
    });
    bridges.chain(vlans).collect()
}

fn lan_ipv6(config: &Bootstrap) -> Option<LanIpv6Settings> {
    let LanIpv6 { enabled, delegation, trust_delegation, prefix, .. } = &config.network.ipv6;
    let prefix = prefix.map(Cidr::net).and_then(|net| match net {
        IpNet::V6(net) => Some(net),
        IpNet::V4(_) => None,
    });
    enabled.then_some(LanIpv6Settings {
        prefix,
        delegation: *delegation,
        trust_delegation: *trust_delegation,
    })
}

fn admin_port(config: &Bootstrap) -> u16 {
    let address = config.listen.api_addr;
    if address.ip().is_loopback() { 0 } else { address.port() }
}

/// Returns the access to the API by uplinks. There is none to a listener on loopback.
fn wan_access(config: &Bootstrap) -> Option<WanAccess> {
    let access = &config.listen.wan_access;
    let port = admin_port(config);
    if !access.enabled || port == 0 {
        return None;
    }
    let uplinks = config.all_uplinks();
    let is_named = |wan: &&Wan| {
        let named = |name: &String| name == wan.interface.as_str() || name == wan.display_name();
        wan.enabled && (access.uplinks.is_empty() || access.uplinks.iter().any(named))
    };
    let interfaces: Vec<String> =
        uplinks.iter().filter(is_named).map(|wan| wan.interface.to_string()).collect();
    let clients = access.cidrs.iter().map(|cidr| cidr.net().trunc()).collect();
    (!interfaces.is_empty()).then_some(WanAccess { port, interfaces, clients })
}

/// Returns the ports of the coordinator of the mesh that uplinks may reach.
fn mesh_ports(config: &Bootstrap) -> Option<MeshPorts> {
    let MeshCoordinator { enabled, listen_addr, wan_access, relay, .. } = &config.mesh.coordinator;
    let is_open = *enabled && *wan_access && !listen_addr.ip().is_loopback();
    let udp = relay.enabled.then_some(relay.stun_port);
    is_open.then_some(MeshPorts { tcp: listen_addr.port(), udp })
}

/// Returns the stored configurations of interfaces. One that cannot be read counts as not set.
fn configured(settings: &Settings) -> InterfacesConfig {
    let value = settings.get(InterfacesConfig::KEY);
    value.and_then(|value| decode::from_value::<InterfacesConfig>(value).ok()).unwrap_or_default()
}

fn interface_settings(config: &InterfaceConfig) -> InterfaceSettings {
    let InterfaceConfig { method, address: _, prefix: _, gateway, dns, mtu } = config;
    let address = config.network();
    let gateway =
        gateway.filter(|gateway| address.is_some_and(|net| net.addr().is_ipv4() == gateway.is_ipv4()));
    InterfaceSettings {
        method: *method,
        address,
        gateway,
        dns: dns.clone(),
        mtu: *mtu,
        ..InterfaceSettings::default()
    }
}

/// Returns the uplink of `/bluetooth/failover`, with the probes of the first other one. `None`: it is off, or the interface is
/// listed as an uplink.
fn phone(config: &Bootstrap, settings: &Settings) -> Option<Wan> {
    let value = settings.get(BluetoothFailover::KEY)?;
    let failover: BluetoothFailover = decode::from_value(value).ok()?;
    let first = config.network.wans.iter().find(|wan| wan.enabled);
    let phone = failover.uplink(first.map(|wan| wan.probe.clone()).unwrap_or_default())?;
    let is_listed = config.network.wans.iter().any(|wan| wan.interface == phone.interface);
    (!is_listed).then_some(phone)
}

/// Returns the name servers for endpoints of tunnels: those of the configuration, else those of the uplinks.
pub fn endpoint_name_servers(in_force: &EffectiveConfiguration) -> Vec<IpAddr> {
    let EffectiveConfiguration { config, network } = in_force;
    if !config.dns.bootstrap_servers.is_empty() {
        return config.dns.bootstrap_servers.clone();
    }
    let settings = network.uplinks.iter().filter_map(|uplink| network.interfaces.get(&uplink.interface));
    settings.flat_map(|settings| settings.dns.iter().copied()).collect()
}

/// Returns the interval of periodic reconciles; `None` if they are off.
pub fn reconcile_interval(config: &Bootstrap) -> Option<Duration> {
    config.reconcile.enabled.then(|| Duration::from_secs(config.reconcile.interval_sec))
}

#[cfg(test)]
mod tests {
    use gateway_model::settings::bootstrap::parse;
    use serde_json::{Value, json};

    use super::*;

    fn configuration(file: &str) -> (Configuration, State) {
        let state = State::new("2026-11-20T12:00:00Z".parse().expect("a time"));
        (Configuration::new(parse(file).expect("valid"), state.settings.clone()), state)
    }

    fn set(state: &State, key: &str, value: Value) -> State {
        let mut draft = state.begin("2026-11-20T12:00:01Z".parse().expect("a time"));
        draft.set(key, value);
        draft
    }

    #[test]
    fn uplinks_and_lans_follow_the_stored_settings() {
        let (configuration, state) = configuration("network: { wan_iface: wan0, lan_iface: lan0 }");
        let before = configuration.with(&state);
        assert_eq!((before.network.lan.len(), before.network.uplinks.len()), (1, 1));
        let wans = json!([{"interface": "wan1", "gateway": "192.0.2.1"}, {"interface": "wan0"}]);
        let state = set(&state, "network.wans", wans);
        let state = set(&state, "network.lan_iface", json!(["lan0", "lan1"]));
        let after = configuration.with(&state);
        assert_eq!(after.network.lan, ["lan0", "lan1"]);
        let uplinks: Vec<(u8, &str)> = after
            .network
            .uplinks
            .iter()
            .map(|uplink| (uplink.number.get(), uplink.interface.as_str()))
            .collect();
        assert_eq!(uplinks, [(2, "wan1"), (1, "wan0")], "the number of wan0 is in flows");
        assert_eq!(after.network.uplinks[0].gateway, Some("192.0.2.1".parse().expect("an address")));
    }

    #[test]
    fn keys_that_wait_for_a_restart_keep_their_values_and_others_count_at_once() {
        let (configuration, state) = configuration("");
        let state = set(&state, "listen.api_addr", json!("127.0.0.1:9090"));
        let state = set(&state, "reconcile.interval_sec", json!(7));
        let config = configuration.with(&state).config;
        assert_eq!(config.listen.api_addr.port(), 8080);
        assert_eq!(reconcile_interval(&config), Some(Duration::from_secs(7)));
        let restarted = Configuration::new(Bootstrap::default(), state.settings.clone());
        assert_eq!(restarted.with(&state).config.listen.api_addr.port(), 9090);
    }

    #[test]
    fn the_coordinator_of_the_mesh_opens_its_ports_by_the_setting() {
        let (configuration, state) =
            configuration("mesh: { coordinator: { host: gw.example.net, wan_access: true } }");
        assert_eq!(configuration.with(&state).network.mesh_ports, None, "it is off");
        let state = set(&state, "mesh.coordinator.enabled", json!(true));
        let found = configuration.with(&state).network.mesh_ports;
        assert_eq!(found, Some(MeshPorts { tcp: 8443, udp: Some(3478) }));
        let relayless = set(&state, "mesh.coordinator.relay.enabled", json!(false));
        let found = configuration.with(&relayless).network.mesh_ports;
        assert_eq!(found, Some(MeshPorts { tcp: 8443, udp: None }));
        let state = set(&relayless, "mesh.coordinator.wan_access", json!(false));
        assert_eq!(configuration.with(&state).network.mesh_ports, None, "for the LAN alone");
    }

    #[test]
    fn access_by_uplinks_follows_the_stored_settings_where_sign_in_and_tls_are_in_force() {
        let access = json!(true);
        let (configuration, state) = configuration(
            "listen: { api_addr: 0.0.0.0:8443 }\nauth: { enabled: true }\ntls: { enabled: true }\n\
             network: { wan_iface: wan0, lan_iface: lan0 }",
        );
        assert_eq!(configuration.with(&state).network.wan_access, None);
        let state = set(&state, "listen.wan_access.enabled", access.clone());
        let state = set(&state, "listen.wan_access.cidrs", json!(["203.0.113.7/24"]));
        let found = configuration.with(&state).network.wan_access.clone().expect("access");
        assert_eq!((found.port, found.interfaces.as_slice()), (8443, ["wan0".to_owned()].as_slice()));
        assert_eq!(found.clients, ["203.0.113.0/24".parse::<IpNet>().expect("a network")]);
        // Sign-in that waits for a restart does not protect yet.
        let (unsafe_now, state) = self::configuration("listen: { api_addr: 0.0.0.0:8443 }");
        let state = set(&state, "auth.enabled", json!(true));
        let state = set(&state, "tls.enabled", json!(true));
        let state = set(&state, "listen.wan_access.enabled", access);
        assert_eq!(unsafe_now.with(&state).network.wan_access, None);
    }

    #[test]
    fn address_of_an_access_point_is_that_of_its_interface_from_the_next_start_on() {
        let (configuration, state) = configuration("network: { wan_iface: wan0, lan_iface: lan0 }");
        let stored = json!({"method": "static", "address": "192.168.1.1", "prefix": 24, "mtu": 1400});
        let state = set(&state, "interfaces", json!({"lan0": stored}));
        let ap = json!({"interface": "lan0", "subnet": "10.9.0.0/24", "ip": "10.9.0.1"});
        let state = set(&state, "network.ap", ap);
        let address = |configuration: &Configuration| {
            let settings = configuration.with(&state).network.interfaces["lan0"].clone();
            (settings.method, settings.address.map(|net| net.to_string()), settings.mtu)
        };
        let of = |address: &str| (InterfaceMethod::Static, Some(address.to_owned()), Some(1400));
        assert_eq!(address(&configuration), of("192.168.1.1/24"));
        let restarted = Configuration::new(configuration.file().clone(), state.settings.clone());
        assert_eq!(address(&restarted), of("10.9.0.1/24"));
    }

    #[test]
    fn a_configuration_is_made_once_for_a_revision_of_the_settings() {
        let (configuration, state) = configuration("");
        let one = configuration.with(&state);
        assert!(Arc::ptr_eq(&one.config, &configuration.with(&state).config));
        let state = set(&state, "log.level", json!("warn"));
        assert!(!Arc::ptr_eq(&one.config, &configuration.with(&state).config));
    }

    #[test]
    fn phone_of_the_failover_is_an_uplink_of_last_resort_while_the_settings_say_so() {
        let (configuration, state) = configuration("network: { wan_iface: wan0, lan_iface: lan0 }");
        let failover =
            |enabled: bool| json!({"enabled": enabled, "device_mac": "00:16:3e:00:00:01", "priority": 300});
        let state = set(&state, "bluetooth_failover", failover(true));
        let in_force = configuration.with(&state);
        let phone = in_force.config.network.bluetooth.clone().expect("an uplink");
        assert_eq!((phone.priority, phone.metered, phone.balance), (300, true, false));
        assert_eq!(in_force.config.listed_uplinks().len(), 1);
        let selected: Vec<String> =
            in_force.config.selected_uplinks().iter().map(|wan| wan.interface.to_string()).collect();
        assert_eq!(selected, ["wan0", "bnep-wan"]);
        assert!(in_force.network.interfaces["bnep-wan"].on_demand);
        assert_eq!(in_force.network.uplinks.len(), 2);
        let state = set(&state, "bluetooth_failover", failover(false));
        let in_force = configuration.with(&state);
        assert_eq!((in_force.network.uplinks.len(), in_force.network.interfaces.len()), (1, 0));
        assert!(in_force.config.selected_uplinks().is_empty(), "a single uplink needs no probes");
    }

    #[test]
    fn configurations_of_uplinks_wait_for_a_restart_and_others_do_not() {
        let (configuration, state) = configuration("network: { wan_iface: wan0, lan_iface: lan0 }");
        let uplink = json!({"method": "static", "address": "192.0.2.7", "prefix": 24, "dns": ["192.0.2.53"]});
        let other =
            json!({"method": "static", "address": "198.51.100.7", "prefix": 24, "gateway": "fd00::1"});
        let state = set(&state, "interfaces", json!({"wan0": uplink, "eth9": other}));
        let in_force = configuration.with(&state);
        let names: Vec<&String> = in_force.network.interfaces.keys().collect();
        assert_eq!(names, ["eth9"]);
        assert_eq!(in_force.network.interfaces["eth9"].gateway, None, "it is of another family");
        assert!(configuration.is_interface_pending(&in_force.config, &state.settings, "wan0"));
        assert!(!configuration.is_interface_pending(&in_force.config, &state.settings, "eth9"));
        assert!(endpoint_name_servers(&in_force).is_empty());
        let restarted = Configuration::new(configuration.file().clone(), state.settings.clone());
        let in_force = restarted.with(&state);
        assert_eq!(in_force.network.interfaces.len(), 2);
        assert_eq!(endpoint_name_servers(&in_force), ["192.0.2.53".parse::<IpAddr>().expect("an address")]);
        assert!(!restarted.is_interface_pending(&in_force.config, &state.settings, "wan0"));
    }

    #[test]
    fn numbers_of_uplinks_in_the_kernel_are_kept_at_start() {
        let (configuration, state) = configuration("network: { wan_iface: wan1 }");
        assert_eq!(configuration.with(&state).network.uplinks[0].number.get(), 1);
        configuration.recall_uplinks(
            &[("wan0", 1), ("wan1", 2)]
                .map(|(name, number)| (name.to_owned(), LegId::new(number).expect("a leg")))
                .into(),
        );
        assert_eq!(configuration.with(&state).network.uplinks[0].number.get(), 2);
    }
}
