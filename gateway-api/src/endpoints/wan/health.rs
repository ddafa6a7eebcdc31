//! Reachability of the internet by each uplink.

use std::net::IpAddr;

use gateway_core::facts::Facts;
use gateway_ctl::services::history::{History, UplinkHistory};
use gateway_ctl::world::reports::uplinks::{TargetReport, UplinkReport};
use gateway_model::settings::uplink::{ProbeMethod, UplinkState, Wan};
use gateway_outbound::reserved::is_reserved;
use ipnet::IpNet;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::HistoryQuery;
use crate::request::Req;

/// Health of an uplink.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct UplinkHealth {
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
    /// Public address on the interface, IPv4 first. Null if it has none: behind NAT this host does not know it.
    pub public_ip: Option<String>,
    /// Outcome of the last round if the method of the probes is `dns`, else null.
    pub dns_ok: Option<bool>,
    /// The same for `http`.
    pub http_ok: Option<bool>,
    pub checked_at: Option<Timestamp>,
    /// States and measurements of the last day. Left out unless `history` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<UplinkHistory>,
}

pub(super) async fn show(cx: Cx, request: Req<()>) -> Result<Vec<UplinkHealth>, ApiError> {
    let minutes = request.query.read::<HistoryQuery>()?.wanted();
    let open = cx.open()?;
    let (world, recorded) = (open.world(), &open.handles.get::<History>());
    let history = |wan: &Wan, minutes| recorded.uplink(wan.interface.as_str(), world.now, minutes);
    let health = |wan: &Wan| {
        let report = world.reports.uplinks.uplinks.get(wan.interface.as_str());
        let health = health_of(wan, report.cloned().unwrap_or_default(), &world.facts);
        UplinkHealth { history: minutes.map(|minutes| history(wan, minutes)), ..health }
    };
    Ok(world.config.all_uplinks().iter().map(health).collect())
}

fn health_of(wan: &Wan, report: UplinkReport, facts: &Facts) -> UplinkHealth {
    let UplinkReport { name: _, state, since, loss_pct, latency_ms, jitter_ms, targets, checked_at } = report;
    let is_checked = checked_at.is_some();
    let any_answer = is_checked.then(|| targets.iter().any(|target| target.ok));
    let by = |method: ProbeMethod| any_answer.filter(|_| wan.probe.method == method);
    UplinkHealth {
        uplink: wan.display_name().to_owned(),
        interface: wan.interface.to_string(),
        state: if wan.enabled { state } else { UplinkState::Disabled },
        since,
        reachable: is_checked.then_some(state.is_usable()),
        latency_ms,
        jitter_ms,
        loss_pct,
        dns_ok: by(ProbeMethod::Dns),
        http_ok: by(ProbeMethod::Http),
        targets,
        public_ip: public_address(wan, facts).map(|address| address.to_string()),
        checked_at,
        history: None,
    }
}

fn public_address(wan: &Wan, facts: &Facts) -> Option<IpAddr> {
    let addresses = facts.addresses.get(wan.interface.as_str())?.iter().map(IpNet::addr);
    addresses.filter(|address| !is_reserved(*address)).min_by_key(IpAddr::is_ipv6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_address_is_one_of_the_interface_that_the_internet_knows() {
        let wan = Wan::of_interface("eth0".parse().expect("a name"));
        let of = |addresses: &[&str]| {
            let mut facts = Facts::default();
            let nets = addresses.iter().map(|address| address.parse().expect("an address"));
            facts.addresses.insert("eth0".to_owned(), nets.collect());
            public_address(&wan, &facts).map(|address| address.to_string())
        };
        assert_eq!(of(&["192.168.1.2/24", "100.64.0.2/10", "fe80::1/64"]), None, "behind NAT");
        assert_eq!(of(&["2001:db8::2/64", "203.0.113.2/24"]).as_deref(), Some("203.0.113.2"));
        assert_eq!(of(&["10.0.0.2/8", "2001:db8::2/64"]).as_deref(), Some("2001:db8::2"));
    }
}
