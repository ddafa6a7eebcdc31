//! `GET /tunnels/history`.

use gateway_ctl::services::history::{History, TunnelHistory};
use gateway_model::Id;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::Minutes;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.view("/tunnels/history", "list_tunnel_history", show)
        .heavy()
        .summary("States and traffic of each tunnel in the last day, by minute")
        .doc("Kept in memory since the start of the daemon.")
        .query::<TunnelHistoryQuery>();
}

/// Query of the histories.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TunnelHistoryQuery {
    /// Length of the history: 1 to 1440 minutes, by default all.
    minutes: Minutes,
    /// Only the tunnel with this id or name.
    tunnel: Option<String>,
}

/// History of a tunnel.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RecordedTunnel {
    pub tunnel_id: Id,
    pub name: String,
    #[serde(flatten)]
    pub history: TunnelHistory,
}

async fn show(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<RecordedTunnel>>, ApiError> {
    let TunnelHistoryQuery { minutes, tunnel: wanted } = request.query.read()?;
    let open = cx.open()?;
    let (state, now, recorded) = (open.store.current(), open.now(), &open.handles.get::<History>());
    let mut list = Vec::new();
    for tunnel in state.tunnels.iter() {
        let id = tunnel.meta.id;
        if wanted.as_ref().is_some_and(|wanted| *wanted != tunnel.name && *wanted != id.to_string()) {
            continue;
        }
        let history = recorded.tunnel(id, now, minutes.get());
        list.push(RecordedTunnel { tunnel_id: id, name: tunnel.name.clone(), history });
    }
    Ok(WithHeaders::counted(list))
}
