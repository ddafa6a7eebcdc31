//! Subjects of alerts: the object that an alert is about, by the kind of alert and its subject.

use std::collections::BTreeMap;

use gateway_model::State;
use gateway_model::id::{Id, MacAddr};
use gateway_model::kinds::alert_rule::AlertKind;

use super::key::AlertKey;

/// Object that an alert is about, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Name for people.
    pub label: String,
    /// Part of the gateway that observes it.
    pub source: &'static str,
    pub resource_type: &'static str,
    pub resource_id: Option<String>,
    pub device_id: Option<Id>,
    pub labels: BTreeMap<String, String>,
}

/// Returns what a state knows of the subject of an alert.
pub fn describe(state: &State, key: &AlertKey) -> Subject {
    let (source, resource_type) = origin(key.kind);
    let id: Option<Id> = key.subject.parse().ok();
    let name = id.and_then(|id| name_of(state, key.kind, id));
    let device = device_of(state, key, id);
    let label = match (&name, device.and_then(|id| state.devices.get(id))) {
        (Some(name), _) => name.clone(),
        (None, Some(device)) => device.name.clone(),
        (None, None) => key.subject.clone(),
    };
    let mut labels = BTreeMap::from([(resource_type.to_owned(), label.clone())]);
    if let Some(device) = device.and_then(|id| state.devices.get(id)) {
        labels.insert("device".to_owned(), device.name.clone());
    }
    let resource_id = (!key.subject.is_empty()).then(|| key.subject.clone());
    Subject { label, source, resource_type, resource_id, device_id: device, labels }
}

/// Returns the part of the gateway that reports a kind, and the type of its subjects.
fn origin(kind: AlertKind) -> (&'static str, &'static str) {
    use AlertKind::*;
    match kind {
        TunnelDown | TunnelFlapping | HandshakeStale => ("tunnels", "tunnel"),
        PolicyFallback | PolicyBlocked => ("reconcile_loop", "routing_policy"),
        LeakDetected => ("egress_guard", "interface"),
        DnsBypassAttempt => ("dataplane_events", "device"),
        WanDown | WanDegraded | WanFailover | WanFlapping | CaptivePortal => ("uplinks", "uplink"),
        DnsUpstreamDown => ("dns", "dns_upstream"),
        BlocklistUpdateFailed => ("dns", "dns_list"),
        NewDevice => ("hosts", "host"),
        DeviceOffline | DeviceQuarantined => ("hosts", "device"),
        RogueDhcp => ("dhcp", "dhcp_server"),
        RogueRa => ("foreign_routers", "router"),
        IpConflict => ("dhcp", "address"),
        DhcpPoolExhausted => ("dhcp", "dhcp_pool"),
        ExceptionStarted | ExceptionExpiring => ("policies", "exception"),
        DriftDetected | ApplyFailed => ("reconcile_loop", "dataplane"),
        RollbackPerformed => ("store", "snapshot"),
        BackupFailed => ("backups", "backup"),
        NodeUnreachable | SyncFailed => ("federation", "gateway_node"),
        LoginLockout => ("api", "login"),
        KeyCreated => ("api", "api_key"),
        DeadmanWarning => ("dead_man_switch", "system"),
        StorageLow => ("storage", "disk"),
        CpuTempHigh => ("platform", "processor"),
        CertExpiring => ("tls", "certificate"),
        SecretsDecryptFailed => ("store", "secret"),
        BluetoothIds => ("bluetooth", "bluetooth_device"),
        ConntrackFull => ("conntrack", "conntrack"),
        ClockUnsynchronised => ("platform", "clock"),
        EncryptedStorageLocked => ("encrypted_storage", "encrypted_storage"),
    }
}

/// Returns the name of an object of the state.
fn name_of(state: &State, kind: AlertKind, id: Id) -> Option<String> {
    use AlertKind::*;
    match kind {
        TunnelDown | TunnelFlapping | HandshakeStale => state.tunnels.get(id).map(|one| one.name.clone()),
        PolicyFallback | PolicyBlocked => {
            let policy = state.applied.policies.get(id).or_else(|| state.routing_policies.get(id));
            policy.map(|policy| policy.name.clone())
        }
        BlocklistUpdateFailed => state.threat_feeds.get(id).map(|feed| feed.name.clone()),
        NodeUnreachable | SyncFailed => state.nodes.get(id).map(|node| node.name.clone()),
        KeyCreated => state.api_keys.get(id).map(|key| key.name.clone()),
        _ => None,
    }
}

/// Returns the device that an alert is about: by its ID, its exception, or the MAC address that the subject begins with.
fn device_of(state: &State, key: &AlertKey, id: Option<Id>) -> Option<Id> {
    use AlertKind::*;
    match key.kind {
        DeviceOffline | DeviceQuarantined | DnsBypassAttempt => id,
        ExceptionStarted | ExceptionExpiring => state.exceptions.get(id?).map(|one| one.device_id),
        NewDevice | IpConflict => {
            let mac = key.subject.split(['%', ' ', '@']).next()?.parse::<MacAddr>().ok()?;
            state.device_by_mac(mac).map(|device| device.meta.id)
        }
        _ => None,
    }
}
