//! Status of the upstreams as the API shows it.

use serde::Serialize;

use super::health::HealthStats;
use crate::hooks::Server;

/// Upstream over one of the paths that queries to it used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpstreamStatus {
    pub address: String,
    pub protocol: String,
    pub egress: String,
    /// Smoothed time to an answer, in milliseconds. Null until the first answer.
    pub rtt_ms: Option<f64>,
    pub ok: bool,
    pub queries: u64,
    pub failures: u64,
    pub last_error: Option<String>,
}

impl UpstreamStatus {
    pub(super) fn of(server: &Server, egress: &str, figures: &HealthStats) -> UpstreamStatus {
        UpstreamStatus {
            address: server.shown.to_string(),
            protocol: server.protocol.to_string(),
            egress: egress.to_owned(),
            // One decimal is precise enough.
            rtt_ms: figures.rtt.map(|rtt| (rtt.as_secs_f64() * 10_000.0).round() / 10.0),
            ok: !figures.dead,
            queries: figures.queries,
            failures: figures.failures,
            last_error: figures.last_error.clone(),
        }
    }
}
