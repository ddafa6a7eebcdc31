//! List of the uplinks.

use gateway_model::settings::bootstrap::{Bootstrap, FailoverMode};
use gateway_model::settings::uplink::Wan;
use gateway_model::{EditError, Problems, State, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::advice::{advice, unnamed_fields};
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::reply::WithHeaders;
use crate::request::{Body, Req, Request, decode};
use crate::table::expect;

const NOUN: &str = "wan_uplinks";
const WANS: &str = "network.wans";
const MODE: &str = "network.wan_failover_mode";
const BALANCE: &str = "network.wan_balance";

/// Uplinks and the distribution of traffic.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct WanUplinks {
    pub uplinks: Vec<Wan>,
    /// `manual`: the manager only observes. `auto`: it applies its decisions.
    pub wan_failover_mode: FailoverMode,
    /// New flows are distributed by weight over all uplinks that work and have `balance`.
    pub wan_balance: bool,
}

/// The whole list. An omitted mode or balance keeps its value.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WanUplinksRequest {
    pub uplinks: Vec<Wan>,
    #[serde(default)]
    #[schemars(with = "FailoverMode")]
    pub wan_failover_mode: Option<FailoverMode>,
    #[serde(default)]
    #[schemars(with = "bool")]
    pub wan_balance: Option<bool>,
}

pub(super) async fn show(cx: Cx, _: Req<()>) -> Result<WithHeaders<WanUplinks>, ApiError> {
    let Open { store, worlds, .. } = cx.open()?;
    let state = store.current();
    let config = worlds.configuration().with(&state).config;
    Ok(tagged(&state, &config, Vec::new()))
}

pub(super) async fn replace(cx: Cx, request: Request) -> Result<WithHeaders<WanUplinks>, ApiError> {
    let Body::Json(body) = request.body else {
        return Err(ApiError::bad_request("This operation needs a JSON object as its body."));
    };
    let unnamed = unnamed_fields(&body["uplinks"]);
    let (input, mut decoded) = decode::<WanUplinksRequest>(body)?;
    let WanUplinksRequest { uplinks, wan_failover_mode, wan_balance } = input;
    let if_match = request.if_match;
    blocking(move || {
        let Open { store, worlds, .. } = cx.open()?;
        let file = worlds.configuration().file();
        cx.commit_blocking(|draft| {
            expect(NOUN, draft.settings.revision(), if_match.as_deref())?;
            draft.set(WANS, json!(uplinks));
            if let Some(mode) = wan_failover_mode {
                draft.set(MODE, json!(mode));
            }
            if let Some(balance) = wan_balance {
                draft.set(BALANCE, json!(balance));
            }
            file.overlaid(&draft.settings).map(drop).map_err(renamed)
        })?;
        let state = store.current();
        let config = worlds.configuration().with(&state).config;
        decoded.extend(unnamed);
        decoded.extend(advice(&config, &worlds.last().facts, &state.group()));
        Ok(tagged(&state, &config, decoded))
    })
    .await?
}

fn tagged(state: &State, config: &Bootstrap, warnings: Vec<Warning>) -> WithHeaders<WanUplinks> {
    let shown = WanUplinks {
        uplinks: config.listed_uplinks().into_owned(),
        wan_failover_mode: config.network.wan_failover_mode,
        wan_balance: config.network.wan_balance,
    };
    let etag = Some(state.settings.revision().to_string());
    WithHeaders { etag, warnings, ..WithHeaders::new(shown) }
}

/// Names the fields of the problems as the request does.
fn renamed(problems: Problems) -> EditError {
    let mut renamed = Problems::new();
    for problem in problems.list() {
        let path = problem.path.replace(WANS, "uplinks").replace("network.", "");
        renamed.add(problem.code, path, problem.message.clone()).allowed = problem.allowed.clone();
    }
    EditError::Invalid(renamed)
}
