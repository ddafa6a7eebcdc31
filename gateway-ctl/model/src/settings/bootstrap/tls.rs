//! The section `tls` of the configuration file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tls {
    /// The REST API and the web UI speak HTTPS, except on the local socket.
    pub enabled: bool,
    /// PEM files. Without them the daemon makes a certificate for itself.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}
