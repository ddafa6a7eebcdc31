//! `GET /tunnels/history`.

use gateway_ctl::services::history::TunnelHistory;
use gateway_model::Id;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Placeholder, Table};

pub fn rows(t: &mut Table) {
    t.view("/tunnels/history", "list_tunnel_history", show)
        .heavy()
        .summary("States and traffic of each tunnel in the last day, by minute")
        .doc("Kept in memory since the start of the daemon.")
        .parameter(
            "minutes",
            Placeholder::Integer,
            "Length of the history: 1 to 1440 minutes, by default all.",
        )
        .parameter("tunnel", Placeholder::Text, "Only the tunnel with this id or name.");
}

/// History of a tunnel.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecordedTunnel {
    pub tunnel_id: Id,
    pub name: String,
    #[serde(flatten)]
    pub history: TunnelHistory,
}

async fn show(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<RecordedTunnel>>, ApiError> {
    let minutes = request.query.minutes()?;
    let wanted = request.query.get("tunnel");
    let open = cx.open()?;
    let (state, now, recorded) = (open.store.current(), open.now(), open.enforcement.history());
    let mut list = Vec::new();
    for tunnel in state.tunnels.iter() {
        let id = tunnel.meta.id;
        if wanted.is_some_and(|wanted| wanted != tunnel.name && wanted != id.to_string()) {
            continue;
        }
        let history = recorded.map(|recorded| recorded.tunnel(id, now, minutes));
        let history = history.unwrap_or_default();
        list.push(RecordedTunnel { tunnel_id: id, name: tunnel.name.clone(), history });
    }
    Ok(WithHeaders::counted(list))
}
