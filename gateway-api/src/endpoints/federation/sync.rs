//! Pulls: those of other gateways, which the keys of approved nodes sign, and those that an administrator asks for.

use gateway_core::federation::message::Envelope;
use gateway_ctl::services::federation::{ServeError, SyncResult};
use gateway_model::Resource;
use gateway_model::kinds::Node;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

pub(super) fn rows(t: &mut Table) {
    let audit = Audit { action: "sync_federation", resource_type: "federation" };
    t.action("/federation/sync", "sync_federation", Effect::Acts(audit), sync)
        .summary("Pull from peers now")
        .doc(
            "From the peer with this URL or name, else from each node that sends objects to this gateway. Answers when the \
             changes are in force here and the peer was reached again.",
        )
        .answers(&[Code::NotFound, Code::InvalidState, Code::UpstreamFailed]);
    t.question("/federation/pull", "pull_federation", pull)
        .summary("Objects for another gateway")
        .doc(
            "Gateways call it. It needs no credential: the request is signed by the key of an approved node, and so is \
             the reply. payload is a JSON text.",
        )
        .access(Access::Open)
        .answers(&[Code::Forbidden, Code::InvalidState])
        .heavy()
        .requires_input();
    t.question("/federation/notice", "notice_federation", notice)
        .summary("Notice that another gateway has changed objects")
        .doc(
            "Gateways call it. It needs no credential: the key of an approved node signs it. A pull from this node follows at \
             once, unless this gateway has the revisions that the notice names. One pull answers many notices.",
        )
        .access(Access::Open)
        .answers(&[Code::Forbidden, Code::InvalidState])
        .requires_input();
}

/// Peers to pull from.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SyncInput {
    /// URL, name or id of a node. Null: all nodes that send objects to this gateway.
    peer: Option<String>,
}

async fn sync(cx: Cx, request: Req<SyncInput>) -> Result<Vec<SyncResult>, ApiError> {
    let open = cx.open()?;
    let Some(peer) = request.input.peer else { return Ok(open.federation.pull_all().await) };
    let state = open.store.current();
    let wanted = peer.trim().trim_end_matches('/');
    let is_named = |node: &&Node| {
        node.url.trim_end_matches('/') == wanted || node.name == wanted || node.meta.id.to_string() == wanted
    };
    let node = state.nodes.iter().find(is_named).ok_or_else(|| ApiError::not_found(Node::NOUN, &peer))?;
    if node.received_kinds(&state).is_empty() {
        let message = format!(
            "The node {} sends nothing to this gateway: it needs an approval, a role that may push, and kinds in \
             sync_resources and allowed_receive_resources, with the sync_policy pull or both.",
            node.name
        );
        return Err(ApiError::new(Code::InvalidState, message)
            .detail("state", node.status.as_str())
            .detail("allowed", ["approved"]));
    }
    let result = open.federation.pull(node.meta.id).await;
    let result = result.ok_or_else(|| ApiError::not_found(Node::NOUN, &peer))?;
    match &result.error {
        None => Ok(vec![result]),
        Some(error) => {
            let message = format!("Nothing was taken from {}: {error}.", result.node);
            Err(ApiError::new(Code::UpstreamFailed, message).detail("target", node.url.clone()))
        }
    }
}

async fn pull(cx: Cx, request: Req<Envelope>) -> Result<Envelope, ApiError> {
    let federation = cx.open()?.federation.clone();
    let served = blocking(move || federation.serve(&request.input)).await?;
    served.map_err(refused)
}

/// Answer to a notice.
#[derive(Debug, Serialize, JsonSchema)]
struct NoticeAnswer {
    /// A pull follows.
    pulls: bool,
}

async fn notice(cx: Cx, request: Req<Envelope>) -> Result<NoticeAnswer, ApiError> {
    let federation = cx.open()?.federation.clone();
    let noticed = blocking(move || federation.notice(&request.input)).await?;
    noticed.map(|pulls| NoticeAnswer { pulls }).map_err(refused)
}

fn refused(error: ServeError) -> ApiError {
    let message = format!("The message has no answer: {error}.");
    match error {
        ServeError::Signature | ServeError::Addressee | ServeError::Repeated | ServeError::Clock => {
            ApiError::new(Code::Forbidden, message)
        }
        ServeError::Message(_) => ApiError::bad_request(message),
        ServeError::NoKey => ApiError::new(Code::InvalidState, message)
            .detail("state", "no_key")
            .detail("allowed", Vec::<String>::new()),
    }
}
