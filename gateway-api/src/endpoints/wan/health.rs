//! Reachability of the internet by each uplink.

use gateway_ctl::services::uplinks::{TargetReport, UplinkReport};
use gateway_model::settings::uplink::{ProbeMethod, UplinkState, Wan};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;

/// Health of an uplink.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UplinkHealth {
    /// Name of the uplink, else of its interface.
    pub uplink: String,
    pub interface: String,
    pub state: UplinkState,
    /// Time since which the state is the same; null without probes.
    pub since: Option<Timestamp>,
    /// Traffic passes. Null without probes.
    pub reachable: Option<bool>,
    /// Mean time of answers, their mean difference, and loss of the last 20 rounds.
    pub latency_ms: Option<f64>,
    pub jitter_ms: Option<f64>,
    pub loss_pct: Option<f64>,
    /// Outcomes of the last round.
    pub targets: Vec<TargetReport>,
    /// Public address; null if it is not known.
    pub public_ip: Option<String>,
    /// Outcome of the last round if the method of the probes is `dns`, else null.
    pub dns_ok: Option<bool>,
    /// The same for `http`.
    pub http_ok: Option<bool>,
    pub checked_at: Option<Timestamp>,
}

pub(super) async fn show(cx: Cx, _: Req<()>) -> Result<Vec<UplinkHealth>, ApiError> {
    let world = cx.open()?.world();
    let health = |wan: &Wan| {
        let report = world.reports.uplinks.uplinks.get(wan.interface.as_str());
        health_of(wan, report.cloned().unwrap_or_default())
    };
    Ok(world.config.all_uplinks().iter().map(health).collect())
}

fn health_of(wan: &Wan, report: UplinkReport) -> UplinkHealth {
    let UplinkReport { state, since, loss_pct, latency_ms, jitter_ms, targets, checked_at } = report;
    let is_checked = checked_at.is_some();
    let any_answer = is_checked.then(|| targets.iter().any(|target| target.ok));
    let by = |method: ProbeMethod| any_answer.filter(|_| wan.probe.method == method);
    let interface = wan.interface.to_string();
    UplinkHealth {
        uplink: if wan.name.is_empty() { interface.clone() } else { wan.name.clone() },
        interface,
        state: if wan.enabled { state } else { UplinkState::Disabled },
        since,
        reachable: is_checked.then_some(state.is_usable()),
        latency_ms,
        jitter_ms,
        loss_pct,
        dns_ok: by(ProbeMethod::Dns),
        http_ok: by(ProbeMethod::Http),
        targets,
        public_ip: None,
        checked_at,
    }
}
