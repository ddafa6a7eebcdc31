//! Reasons why Bluetooth does not do what a user asks for.

use gateway_core::bluetooth::nap::NapRefusal;
use gateway_core::bluetooth::pairing::PairingError;
use gateway_model::id::MacAddr;

use crate::os::bluez::BluezError;

/// Part of the host that is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("an engine that enforces policies")]
    Engine,
    #[error("the system bus of D-Bus (Debian package dbus)")]
    Bus,
    #[error("the daemon of BlueZ, which does not run (Debian package bluez)")]
    Daemon,
    #[error("a Bluetooth adapter")]
    Adapter,
}

impl Missing {
    /// Returns the part whose absence an error of a connection shows.
    pub(super) fn of(error: &BluezError) -> Missing {
        match error {
            BluezError::NoBus(_) => Missing::Bus,
            BluezError::NoAdapter => Missing::Adapter,
            _ => Missing::Daemon,
        }
    }
}

/// Reason why a request has no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BluetoothError {
    #[error("it needs {0}")]
    Missing(Missing),
    #[error("the adapter is off")]
    PoweredOff,
    #[error("there is no Bluetooth device {0}")]
    UnknownDevice(MacAddr),
    #[error("allowed_macs of /bluetooth/settings does not have {0}")]
    NotAllowed(MacAddr),
    #[error("the device is not paired")]
    NotPaired(MacAddr),
    #[error("a switch of the host blocks the adapter (rfkill)")]
    Blocked,
    #[error("/bluetooth/failover is off")]
    FailoverOff,
    #[error(transparent)]
    Nap(#[from] NapRefusal),
    #[error(transparent)]
    Pairing(#[from] PairingError),
    #[error("pairing failed: {0}")]
    PairingFailed(String),
    #[error("{0}")]
    Failed(String),
}

impl From<BluezError> for BluetoothError {
    fn from(error: BluezError) -> BluetoothError {
        match error {
            BluezError::NoBus(_) | BluezError::NoDaemon | BluezError::NoAdapter => {
                BluetoothError::Missing(Missing::of(&error))
            }
            BluezError::NoDevice(mac) => BluetoothError::UnknownDevice(mac),
            BluezError::Blocked => BluetoothError::Blocked,
            BluezError::Timeout | BluezError::Refused(_) => BluetoothError::Failed(error.to_string()),
        }
    }
}
