//! Behaviour of each kind of alert: how the threshold and the window of its rule are applied.

use gateway_model::kinds::alert_rule::AlertKind;

/// Use of threshold and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The condition lasts for the window. The threshold is not used.
    Lasting,
    /// The measured value is at least the threshold for the window. A report without a value is always above.
    AtLeast,
    /// The value is the number of times that the producer has counted in the window, and at least the threshold.
    Count,
    /// The measured value is at most the threshold for the window. A report without a value is always below.
    AtMost,
    /// So many reports come within the window.
    Rate,
    /// So many reports come in a row, without an end in between.
    InARow,
}

/// Behaviour of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    pub measure: Measure,
    /// It reports events, which have no end. Its alert resolves itself after a day without another.
    pub is_event: bool,
    /// Its alerts are about devices or hosts, so that the rule's scope applies.
    pub is_about_devices: bool,
}

const CONDITION: Behaviour =
    Behaviour { measure: Measure::Lasting, is_event: false, is_about_devices: false };
const EVENT: Behaviour = Behaviour { measure: Measure::Rate, is_event: true, ..CONDITION };

/// Returns the behaviour of a kind.
pub fn behaviour(kind: AlertKind) -> Behaviour {
    use AlertKind::*;
    let measured = |measure| Behaviour { measure, ..CONDITION };
    let about_devices = |behaviour| Behaviour { is_about_devices: true, ..behaviour };
    match kind {
        TunnelDown
        | PolicyFallback
        | PolicyBlocked
        | WanDown
        | WanDegraded
        | WanFailover
        | WanFlapping
        | CaptivePortal
        | DnsUpstreamDown
        | RogueDhcp
        | RogueRa
        | LeakDetected
        | ApplyFailed
        | SecretsDecryptFailed
        | ConntrackFull
        | ClockUnsynchronised
        | EncryptedStorageLocked => CONDITION,
        TunnelFlapping => measured(Measure::Count),
        HandshakeStale | DhcpPoolExhausted | DeadmanWarning | StorageLow | CpuTempHigh | NodeUnreachable => {
            measured(Measure::AtLeast)
        }
        CertExpiring => measured(Measure::AtMost),
        ExceptionExpiring => about_devices(measured(Measure::AtMost)),
        BlocklistUpdateFailed | BackupFailed | SyncFailed => measured(Measure::InARow),
        DnsBypassAttempt => about_devices(EVENT),
        NewDevice | DeviceOffline | DeviceQuarantined | IpConflict | ExceptionStarted => {
            about_devices(CONDITION)
        }
        RollbackPerformed | KeyCreated | LoginLockout | BluetoothIds | DriftDetected => EVENT,
    }
}
