//! SOCKS5 proxies, and the relay that forwards traffic to them.

use gateway_ctl::os::proxy::{self, ProxyTraffic};
use gateway_model::State;
use gateway_model::kinds::Proxy;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Collection, Live, Ops, Table};

pub(super) fn rows(t: &mut Table) {
    t.collection::<Proxy>(Collection {
        path: "/proxies",
        item: "/proxies/{id}",
        actions: ["create_proxy", "replace_proxy", "delete_proxy"],
        ops: Ops::ALL,
        live: Some(Live::beside(observe)),
    });
}

pub(super) fn status_rows(t: &mut Table) {
    t.view("/tproxy/status", "get_tproxy_status", status)
        .summary("LAN traffic that is diverted to proxies")
        .doc(
            "The relay runs while policies use proxies. It accepts only packets that the ingress program marked for a proxy.",
        );
}

/// Adds the observed state of proxies.
fn observe(open: &Open, state: &State, shown: &mut [Value]) {
    let observed = open.live();
    super::observed::add_observed(shown, &state.proxies, |proxy| observed.proxy(proxy));
}

/// Status of the proxy relay.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TproxyStatus {
    pub running: bool,
    /// Addresses the relay listens on; empty while it does not run.
    pub listen: Vec<String>,
    pub mode: TproxyMode,
    /// Number of open TCP connections.
    pub connections: usize,
    /// Number of UDP flows, one per source port of a LAN host.
    pub udp_flows: usize,
    pub by_proxy: Vec<ProxyTraffic>,
}

/// Method by which traffic reaches the relay.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum TproxyMode {
    /// TPROXY: packets keep their addresses.
    Tproxy,
}

async fn status(cx: Cx, _: Req<()>) -> Result<WithHeaders<TproxyStatus>, ApiError> {
    let engines = cx.open()?.enforcement.engines();
    let relay = engines.map(|engines| engines.relay.status()).unwrap_or_default();
    let listen =
        if relay.running { proxy::addresses().map(|at| at.to_string()).to_vec() } else { Vec::new() };
    let status = TproxyStatus {
        running: relay.running,
        listen,
        mode: TproxyMode::Tproxy,
        connections: relay.by_proxy.iter().map(|proxy| proxy.connections).sum(),
        udp_flows: relay.by_proxy.iter().map(|proxy| proxy.udp_flows).sum(),
        by_proxy: relay.by_proxy,
    };
    Ok(WithHeaders::new(status))
}
