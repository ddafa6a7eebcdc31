//! Statistics of cover traffic.

use gateway_ctl::world::reports::tunnels::Cover;
use gateway_model::Tunnel;
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::settings::groups::{CoverMachine, CoverSettings};
use schemars::JsonSchema;
use serde::Serialize;

use super::pools::percent;
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;

/// Padding packets and user packets. Counters grow while cover is on, and restart with the device of the tunnel. Bytes
/// are those of WireGuard datagrams.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CoverStats")]
pub(super) struct Stats {
    enabled: bool,
    engine: &'static str,
    /// Schedules of cover traffic.
    machines: Vec<CoverMachine>,
    /// `upstream`: cover is only sent towards the remote end.
    direction: &'static str,
    /// This end sends cover and the remote end drops it. The remote end sends none, so received traffic has no cover.
    one_sided: bool,
    padding_packets: u64,
    padding_bytes: u64,
    /// Number of packets with user traffic.
    normal_packets: u64,
    normal_bytes: u64,
    /// Cover bytes in percent of the bytes of user traffic; null without user traffic.
    overhead_pct: Option<f64>,
    budget_pct: u64,
    /// Number of cover packets that were delayed because the budget was used up.
    throttled: u64,
    /// Always 0: no schedule of this version delays user packets.
    blocked_ms: u64,
    per_tunnel: Vec<TunnelCover>,
}

/// Cover traffic of a tunnel.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CoverOfTunnel")]
struct TunnelCover {
    tunnel: String,
    id: String,
    state: CoverState,
    /// Reason for the state; empty if it needs none.
    note: &'static str,
    padding_packets: u64,
    padding_bytes: u64,
    normal_packets: u64,
    normal_bytes: u64,
    overhead_pct: Option<f64>,
    throttled: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CoverState {
    /// Cover is off; the tunnel supports it.
    Off,
    /// Cover is sent.
    Active,
    /// Cover is on, but the tunnel has no session or no user traffic yet.
    Waiting,
    /// The tunnel does not support cover.
    NotSupported,
}

pub(super) async fn stats(cx: Cx, _: Req<()>) -> Result<Stats, ApiError> {
    let open = cx.open()?;
    let world = open.world();
    let (state, seen) = (world.state, world.reports.tunnels);
    let CoverSettings { enabled, budget_pct, machines } = state.group();
    let of = |tunnel: &Tunnel| TunnelCover::new(tunnel, enabled, seen.cover.get(&tunnel.meta.id));
    let per_tunnel: Vec<TunnelCover> = state.tunnels.iter().map(of).collect();
    let sum = |count: fn(&TunnelCover) -> u64| per_tunnel.iter().map(count).sum();
    let (padding_bytes, normal_bytes) = (sum(|of| of.padding_bytes), sum(|of| of.normal_bytes));
    Ok(Stats {
        enabled,
        engine: "maybenot",
        machines,
        direction: "upstream",
        one_sided: true,
        padding_packets: sum(|of| of.padding_packets),
        padding_bytes,
        normal_packets: sum(|of| of.normal_packets),
        normal_bytes,
        overhead_pct: percent(padding_bytes, normal_bytes),
        budget_pct,
        throttled: sum(|of| of.throttled),
        blocked_ms: 0,
        per_tunnel,
    })
}

impl TunnelCover {
    fn new(tunnel: &Tunnel, enabled: bool, cover: Option<&Cover>) -> Self {
        let counts = cover.and_then(Cover::status).unwrap_or_default();
        let (state, note) = match (tunnel.r#type, cover) {
            (TunnelType::Openvpn, _) => {
                (CoverState::NotSupported, "OpenVPN runs in a process of its own, which sends no cover.")
            }
            (_, Some(Cover::OfTheKernel)) => {
                (CoverState::NotSupported, "The kernel's WireGuard carries this tunnel and sends no cover.")
            }
            _ if !enabled => (CoverState::Off, ""),
            (_, Some(Cover::Here(status))) if status.session && status.normal_packets > 0 => {
                (CoverState::Active, "")
            }
            (_, Some(Cover::Here(status))) if status.session => {
                (CoverState::Waiting, "Nothing was sent yet that cover could look like.")
            }
            _ => (CoverState::Waiting, "The tunnel has no session with its far end."),
        };
        Self {
            tunnel: tunnel.name.clone(),
            id: tunnel.meta.id.to_string(),
            state,
            note,
            padding_packets: counts.padding_packets,
            padding_bytes: counts.padding_bytes,
            normal_packets: counts.normal_packets,
            normal_bytes: counts.normal_bytes,
            overhead_pct: percent(counts.padding_bytes, counts.normal_bytes),
            throttled: counts.throttled,
        }
    }
}
