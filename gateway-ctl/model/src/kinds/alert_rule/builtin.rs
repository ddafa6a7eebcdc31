//! The rules every installation has: one for each kind of alert.

use jiff::Timestamp;

use super::{AlertRule, AlertScope, Notify, Severity};
use crate::capability::Capability;
use crate::resource::Meta;
use crate::validated::text_enum;

text_enum! {
    /// Kind of alert.
    #[derive(Default)]
    pub enum AlertKind {
        #[default]
        TunnelDown = "tunnel_down",
        TunnelFlapping = "tunnel_flapping",
        HandshakeStale = "handshake_stale",
        PolicyFallback = "policy_fallback",
        PolicyBlocked = "policy_blocked",
        LeakDetected = "leak_detected",
        DnsBypassAttempt = "dns_bypass_attempt",
        WanDown = "wan_down",
        WanDegraded = "wan_degraded",
        WanFailover = "wan_failover",
        WanFlapping = "wan_flapping",
        CaptivePortal = "captive_portal",
        DnsUpstreamDown = "dns_upstream_down",
        BlocklistUpdateFailed = "blocklist_update_failed",
        NewDevice = "new_device",
        DeviceOffline = "device_offline",
        DeviceQuarantined = "device_quarantined",
        RogueDhcp = "rogue_dhcp",
        RogueRa = "rogue_ra",
        IpConflict = "ip_conflict",
        DhcpPoolExhausted = "dhcp_pool_exhausted",
        ExceptionStarted = "exception_started",
        ExceptionExpiring = "exception_expiring",
        DriftDetected = "drift_detected",
        ApplyFailed = "apply_failed",
        RollbackPerformed = "rollback_performed",
        BackupFailed = "backup_failed",
        NodeUnreachable = "node_unreachable",
        SyncFailed = "sync_failed",
        LoginLockout = "login_lockout",
        KeyCreated = "key_created",
        DeadmanWarning = "deadman_warning",
        StorageLow = "storage_low",
        CpuTempHigh = "cpu_temp_high",
        CertExpiring = "cert_expiring",
        SecretsDecryptFailed = "secrets_decrypt_failed",
        BluetoothIds = "bluetooth_ids",
        ConntrackFull = "conntrack_full",
        ClockUnsynchronised = "clock_unsynchronised",
    }
}

impl AlertKind {
    /// Returns the capability without which nothing reports this kind.
    pub fn needs(self) -> Option<Capability> {
        match self {
            AlertKind::NodeUnreachable | AlertKind::SyncFailed => Some(Capability::Federation),
            AlertKind::BluetoothIds => Some(Capability::Bluetooth),
            _ => None,
        }
    }
}

/// Kind, name, description, severity, threshold, seconds of the window.
type Row = (AlertKind, &'static str, &'static str, Severity, f64, u32);

/// In the order of their slots: only ever append.
const RULES: &[Row] = {
    use AlertKind::*;
    use Severity::*;
    &[
        (TunnelDown, "Tunnel down", "A tunnel that should be up is down. Threshold: none.", Critical, 0.0, 0),
        (
            TunnelFlapping,
            "Tunnel flapping",
            "A tunnel goes up and down. Threshold: times that it went down in the window.",
            Warning,
            4.0,
            600,
        ),
        (
            HandshakeStale,
            "Handshake stale",
            "The last handshake of a tunnel is old. Threshold: seconds.",
            Warning,
            180.0,
            0,
        ),
        (
            PolicyFallback,
            "Policy on its fallback",
            "A policy sends traffic by another way than its first. Threshold: none.",
            Warning,
            0.0,
            30,
        ),
        (
            PolicyBlocked,
            "Policy blocks",
            "A policy blocks because no hop of it is available. Threshold: none.",
            Critical,
            0.0,
            30,
        ),
        (
            LeakDetected,
            "Leak prevented",
            "Packets left past the egress guard. Threshold: none.",
            Critical,
            0.0,
            0,
        ),
        (
            DnsBypassAttempt,
            "Resolver evaded",
            "A device asks resolvers other than this one. Threshold: queries in the window.",
            Warning,
            10.0,
            300,
        ),
        (WanDown, "Uplink down", "An uplink reaches nothing. Threshold: none.", Critical, 0.0, 0),
        (
            WanDegraded,
            "Uplink degraded",
            "An uplink has more loss or latency than its limits. Threshold: none.",
            Warning,
            0.0,
            60,
        ),
        (WanFailover, "Uplink changed", "Traffic moved to another uplink. Threshold: none.", Warning, 0.0, 0),
        (
            WanFlapping,
            "Uplink flapping",
            "An uplink comes and goes and was set aside. Threshold: none.",
            Warning,
            0.0,
            0,
        ),
        (
            CaptivePortal,
            "Captive portal",
            "An uplink answers with a sign-in page. Threshold: none.",
            Warning,
            0.0,
            0,
        ),
        (
            DnsUpstreamDown,
            "Resolver unreachable",
            "A resolver that queries are forwarded to does not answer. Threshold: none.",
            Critical,
            0.0,
            0,
        ),
        (
            BlocklistUpdateFailed,
            "List not updated",
            "A list or feed could not be fetched. Threshold: failures in a row.",
            Warning,
            3.0,
            0,
        ),
        (NewDevice, "New device", "A device was seen for the first time. Threshold: none.", Info, 0.0, 0),
        (DeviceOffline, "Device offline", "A known device is offline. Threshold: none.", Info, 0.0, 600),
        (
            DeviceQuarantined,
            "Device quarantined",
            "A device was put into quarantine. Threshold: none.",
            Warning,
            0.0,
            0,
        ),
        (
            RogueDhcp,
            "Foreign DHCP server",
            "Another DHCP server answers on the LAN. Threshold: none.",
            Critical,
            0.0,
            0,
        ),
        (
            RogueRa,
            "Foreign router",
            "Another router announces itself on the LAN. Threshold: none.",
            Critical,
            0.0,
            0,
        ),
        (IpConflict, "Address in use twice", "Two cards use one address. Threshold: none.", Warning, 0.0, 0),
        (
            DhcpPoolExhausted,
            "Addresses run out",
            "The DHCP range is nearly given out. Threshold: per cent in use.",
            Warning,
            95.0,
            0,
        ),
        (
            ExceptionStarted,
            "Exception started",
            "A device is excepted from its policies. Threshold: none.",
            Info,
            0.0,
            0,
        ),
        (
            ExceptionExpiring,
            "Exception ends soon",
            "An exception is about to end. Threshold: seconds before its end.",
            Info,
            300.0,
            0,
        ),
        (
            DriftDetected,
            "Drift detected",
            "The kernel differed from the plan and was corrected. Threshold: items.",
            Warning,
            1.0,
            0,
        ),
        (
            ApplyFailed,
            "Apply failed",
            "A plan could not be put into the kernel; the one before stands. Threshold: none.",
            Critical,
            0.0,
            0,
        ),
        (
            RollbackPerformed,
            "Rolled back",
            "The configuration went back to an earlier state. Threshold: none.",
            Warning,
            0.0,
            0,
        ),
        (
            BackupFailed,
            "Backup failed",
            "A backup could not be made or stored. Threshold: failures in a row.",
            Warning,
            1.0,
            0,
        ),
        (
            NodeUnreachable,
            "Peer unreachable",
            "A peer of the federation does not answer. Threshold: seconds.",
            Warning,
            300.0,
            0,
        ),
        (
            SyncFailed,
            "Sync failed",
            "Objects could not be exchanged with a peer. Threshold: failures in a row.",
            Warning,
            3.0,
            0,
        ),
        (
            LoginLockout,
            "Sign-in locked",
            "Sign-in is locked after too many failures. Threshold: none.",
            Warning,
            0.0,
            0,
        ),
        (KeyCreated, "Key created", "Somebody made an API key. Threshold: none.", Info, 0.0, 0),
        (
            DeadmanWarning,
            "Dead-man switch",
            "The time of the dead-man switch runs out. Threshold: per cent of it passed.",
            Critical,
            50.0,
            0,
        ),
        (
            StorageLow,
            "Storage low",
            "The disk of the gateway is nearly full. Threshold: per cent in use.",
            Warning,
            90.0,
            0,
        ),
        (
            CpuTempHigh,
            "Processor hot",
            "The processor is hot over the window. Threshold: degrees Celsius.",
            Warning,
            85.0,
            120,
        ),
        (
            CertExpiring,
            "Certificate expires",
            "A certificate in use ends soon. Threshold: days before its end.",
            Warning,
            14.0,
            0,
        ),
        (
            SecretsDecryptFailed,
            "Secrets unreadable",
            "Stored secrets cannot be opened. Threshold: none.",
            Critical,
            0.0,
            0,
        ),
        (
            BluetoothIds,
            "Suspicious Bluetooth device",
            "An unknown Bluetooth device behaves suspiciously. Threshold: events in the window.",
            Warning,
            1.0,
            300,
        ),
        (
            ConntrackFull,
            "Too many connections",
            "The conntrack table filled up, and the largest holders lost entries beyond their fair share. Threshold: none.",
            Warning,
            0.0,
            0,
        ),
        (
            ClockUnsynchronised,
            "Clock not synchronised",
            "The clock of the gateway was not set by a time server for the window. Threshold: none.",
            Warning,
            0.0,
            600,
        ),
    ]
};

pub(super) fn rules(now: Timestamp) -> Vec<AlertRule> {
    let rule = |(slot, (kind, name, description, severity, threshold, window_sec)): (u32, &Row)| AlertRule {
        meta: Meta::builtin(5, slot, now),
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        kind: *kind,
        // Devices that sleep come and go all day.
        enabled: *kind != AlertKind::DeviceOffline,
        severity: *severity,
        threshold: *threshold,
        window_sec: *window_sec,
        cooldown_sec: 300,
        auto_resolve: true,
        notify: Notify::Webhook,
        scope: AlertScope::default(),
        webhook_url: None,
    };
    (1..).zip(RULES).map(rule).collect()
}
