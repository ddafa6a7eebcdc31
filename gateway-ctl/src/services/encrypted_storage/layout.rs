//! Contents of the encrypted storage, and its files in the state folder.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Records that the encrypted storage holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageContent {
    /// Query log of DNS.
    QueryLog,
    /// Flow log, with its totals and the usage by hour.
    FlowLog,
    /// Packet captures.
    Captures,
    /// Hosts that were observed on the LAN.
    ObservedHosts,
    /// Usual traffic of devices, and anomalies.
    Anomalies,
    /// Leases of the DHCP server. While they wait, it serves reservations and the leases that it has in memory.
    DhcpLeases,
    /// Folder `backups`, which a local target of backups may name.
    Backups,
}

impl StorageContent {
    pub const ALL: [StorageContent; 7] = [
        StorageContent::QueryLog,
        StorageContent::FlowLog,
        StorageContent::Captures,
        StorageContent::ObservedHosts,
        StorageContent::Anomalies,
        StorageContent::DhcpLeases,
        StorageContent::Backups,
    ];

    /// Returns the folders and files of the records, below the state folder or the mounted storage.
    pub const fn paths(self) -> &'static [&'static str] {
        match self {
            StorageContent::QueryLog => &["dns/log"],
            StorageContent::FlowLog => &["flows", "flow-rollups", "usage"],
            StorageContent::Captures => &["captures"],
            // A write that was interrupted leaves the second one.
            StorageContent::ObservedHosts => &["hosts.json", "hosts.new"],
            StorageContent::Anomalies => &["anomalies.json", "anomalies.new"],
            StorageContent::DhcpLeases => &["dhcp/leases", "dhcp/leases.new"],
            StorageContent::Backups => &[BACKUPS],
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            StorageContent::QueryLog => "query_log",
            StorageContent::FlowLog => "flow_log",
            StorageContent::Captures => "captures",
            StorageContent::ObservedHosts => "observed_hosts",
            StorageContent::Anomalies => "anomalies",
            StorageContent::DhcpLeases => "dhcp_leases",
            StorageContent::Backups => "backups",
        }
    }
}

/// Folder of backups in the mounted storage.
pub(super) const BACKUPS: &str = "backups";

/// Settings beside the container, readable without a passphrase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StorageSettings {
    pub contents: Vec<StorageContent>,
    /// Slot of the key that the secrets store holds.
    pub stored_key_slot: Option<u32>,
    /// A key that the TPM seals opens the storage at the start.
    pub opens_by_tpm2: bool,
}

/// Paths and names of the storage of one state folder.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub state_dir: PathBuf,
    /// Container in use. The storage is configured while this file is there.
    pub container: PathBuf,
    /// Container of a set-up that has not ended.
    pub unfinished: PathBuf,
    pub settings: PathBuf,
    pub mount_point: PathBuf,
    /// Name of the mapped device.
    pub device: String,
}

impl Layout {
    pub(super) fn new(state_dir: &Path) -> Layout {
        Layout {
            state_dir: state_dir.to_owned(),
            container: state_dir.join("encrypted.luks"),
            unfinished: state_dir.join("encrypted.new"),
            settings: state_dir.join("encrypted.json"),
            mount_point: state_dir.join("encrypted"),
            device: format!("gatewayd-{:016x}", fnv1a(state_dir.as_os_str().as_encoded_bytes())),
        }
    }

    pub(super) fn is_configured(&self) -> bool {
        self.container.exists()
    }

    /// Reads the settings. Without readable ones, everything lives in the storage, so that nothing is written beside it.
    pub(super) fn read_settings(&self) -> StorageSettings {
        self.readable_settings().unwrap_or_else(|| StorageSettings {
            contents: StorageContent::ALL.to_vec(),
            ..StorageSettings::default()
        })
    }

    /// Reads the settings. `None` if they are missing or damaged.
    pub(super) fn readable_settings(&self) -> Option<StorageSettings> {
        let read = std::fs::read(&self.settings);
        let parsed = read
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        parsed
            .inspect_err(|error| {
                tracing::error!(
                    error,
                    "failed to read the settings of the encrypted storage: all records wait for it"
                );
            })
            .ok()
    }
}

/// Hash that is the same in each version of this program: a later one must find the device of an earlier one.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the folder under which records lie as long as no storage is configured for them. `None` if they live in the
/// encrypted storage.
pub fn plain_folder(state_dir: &Path, content: StorageContent) -> Option<PathBuf> {
    let layout = Layout::new(state_dir);
    let lives_inside = layout.is_configured() && layout.read_settings().contents.contains(&content);
    (!lives_inside).then(|| state_dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_are_those_of_earlier_versions() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(Layout::new(Path::new("/a")).device.len(), "gatewayd-".len() + 16);
    }

    #[test]
    fn contents_are_plain_until_a_container_is_there_and_all_wait_without_settings() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout::new(folder.path());
        let plain = |content| plain_folder(folder.path(), content).is_some();
        let settings =
            StorageSettings { contents: vec![StorageContent::FlowLog], ..StorageSettings::default() };
        let text = serde_json::to_vec(&settings).expect("JSON");
        std::fs::write(&layout.settings, text).expect("written");
        assert!(StorageContent::ALL.into_iter().all(plain));
        std::fs::write(&layout.container, "x").expect("written");
        assert!(plain(StorageContent::Captures) && !plain(StorageContent::FlowLog));
        std::fs::remove_file(&layout.settings).expect("removed");
        assert!(!StorageContent::ALL.into_iter().any(plain));
    }
}
