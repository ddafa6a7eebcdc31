//! The upstreams as they are shown.

use serde::Serialize;

use super::health::Figures;
use crate::hooks::Server;

/// An upstream by one of the paths it was asked by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpstreamStatus {
    pub address: String,
    pub protocol: String,
    pub egress: String,
    /// Null until it was asked.
    pub rtt_ms: Option<f64>,
    pub ok: bool,
    pub queries: u64,
    pub failures: u64,
    pub last_error: Option<String>,
}

impl UpstreamStatus {
    pub(super) fn of(server: &Server, egress: &str, figures: &Figures) -> UpstreamStatus {
        UpstreamStatus {
            address: server.shown.to_string(),
            protocol: server.protocol.to_string(),
            egress: egress.to_owned(),
            // Tenths are enough for people.
            rtt_ms: figures.rtt.map(|rtt| (rtt.as_secs_f64() * 10_000.0).round() / 10.0),
            ok: !figures.dead,
            queries: figures.queries,
            failures: figures.failures,
            last_error: figures.last_error.clone(),
        }
    }
}
