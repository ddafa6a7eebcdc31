//! Configuration file: reading it, reporting its errors, and deriving the settings of the engine and the API from it.

use std::io;
use std::path::{Path, PathBuf};

use gateway_model::settings::bootstrap::{self, Bootstrap, ConfigError};

use crate::auth;
use crate::context::Settings;
use crate::preflight::Subject;

pub const DEFAULT_PATH: &str = "/etc/gatewayd/config.yaml";
/// File name of the marker in the directory of the configuration file.
const MARKER: &str = "initialised";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// One line per error, each with its position.
    #[error("{}", lines(path, errors))]
    Invalid { path: PathBuf, errors: Vec<ConfigError> },
}

fn lines(path: &Path, errors: &[ConfigError]) -> String {
    let line = |error: &ConfigError| {
        let ConfigError { path: key, line, column, message } = error;
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        format!("{}:{line}:{column}: {key}{message}", path.display())
    };
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Reads and checks the file. Has no side effects.
pub fn load(path: &Path) -> Result<Bootstrap, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut config =
        bootstrap::parse(&text).map_err(|errors| Error::Invalid { path: path.to_owned(), errors })?;
    let path = std::path::absolute(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    config.marker.get_or_insert_with(|| path.with_file_name(MARKER));
    Ok(config)
}

/// Returns the settings of the API.
pub fn api(config: &Bootstrap) -> Settings {
    let bootstrap::Auth { enabled, local_net, api_keys } = config.auth.clone();
    Settings {
        auth: auth::Settings {
            enabled,
            local_net: local_net.net(),
            api_keys,
            setup_folder: Some(config.state_dir.clone()),
        },
        ..Settings::default()
    }
}

pub fn store_path(config: &Bootstrap) -> PathBuf {
    config.state_dir.join("store.redb")
}

/// Returns the path of the marker, the file that records that this gateway was initialised.
pub fn marker_path(config: &Bootstrap) -> PathBuf {
    config.marker.clone().unwrap_or_else(|| Path::new(DEFAULT_PATH).with_file_name(MARKER))
}

/// Returns the path of the socket for local tools.
pub fn socket_path(config: &Bootstrap) -> PathBuf {
    config.runtime_dir.join("api.sock")
}

/// Returns the input of the preflight checks.
pub fn preflight(config: &Bootstrap) -> Subject {
    let lan = config.lans().iter().map(|name| ("network.lan_iface", name.to_string()));
    let wan_key = if config.network.wans.is_empty() { "network.wan_iface" } else { "network.wans" };
    let wan = config.uplinks().into_iter().map(|name| (wan_key, name.to_string()));
    Subject {
        config: config.clone(),
        interfaces: wan.chain(lan).collect(),
        state_dir: config.state_dir.clone(),
        runtime_dir: config.runtime_dir.clone(),
        sessions: Vec::new(),
        may_cut_sessions: false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gateway_core::network::UplinkNumbers;
    use gateway_ctl::configuration::{network, reconcile_interval};

    use super::*;

    #[test]
    fn each_error_is_one_line_with_file_line_and_column() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, "log:\n  level: loud\nreconcile:\n  interval_sec: 1\n").expect("file");
        let text = load(&path).expect_err("two errors").to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with(&format!("{}:2:", path.display())), "{text}");
        assert!(lines[1].contains("reconcile.interval_sec"), "{text}");
    }

    #[test]
    fn the_example_file_is_a_configuration() {
        let config = bootstrap::parse(bootstrap::EXAMPLE).expect("the example is valid");
        assert_eq!(network(&config, &mut UplinkNumbers::default()).lan, ["eth1"]);
        assert_eq!(reconcile_interval(&config), Some(Duration::from_secs(60)));
        assert_eq!(preflight(&config).interfaces.len(), 2);
    }

    #[test]
    fn sign_in_reaches_the_api() {
        let text = "auth: { enabled: true, local_net: 10.0.0.0/8 }\n";
        let config = bootstrap::parse(text).expect("valid");
        let settings = api(&config);
        assert!(settings.auth.enabled && settings.auth.local_net.to_string() == "10.0.0.0/8");
        let config = Bootstrap::default();
        assert!(!api(&config).auth.enabled, "off unless it is asked for");
    }
}
