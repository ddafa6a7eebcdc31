//! Pulls from the nodes that send objects to this gateway: periodically, and on request.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::federation::message::{Envelope, PullReply, Purpose};
use gateway_core::federation::replica::{Change, Refusal, Replica};
use gateway_model::bulk_edit::held;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::kinds::{Node, SyncKind};
use gateway_model::{EditError, Id};
use gateway_outbound::backoff::give_or_take_a_quarter;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use super::Federation;
use super::apply::{ACTOR, ApplyError, CONFIRM_WITHIN};
use super::client::PeerError;
use super::events::EventKind;
use super::exchange::nonce;
use super::identity::Identity;
use super::observed::MAX_FAILURES;
use super::serve::signed;
use crate::store::AuditTicket;
use crate::supervise::blocking;

/// Path of the pull at a node.
const PULL_PATH: &str = "/federation/pull";
const PERIOD: Duration = Duration::from_secs(30);
/// Least time between the begins of two pulls, however many notices arrive.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of attempts to reach the node after a change.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(2);

/// Result of a pull from a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SyncResult {
    /// Id of the node.
    pub node_id: Id,
    /// Name of the node.
    pub node: String,
    /// Kinds whose objects changed here.
    pub changed: Vec<SyncKind>,
    /// Reason why the pull failed; null if it succeeded.
    pub error: Option<String>,
}

/// Transport by which a change came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Pull,
    Bus,
}

/// Reason why a change of a node was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum PullError {
    #[error("the key of this gateway cannot be read")]
    NoKey,
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("the reply is not signed by the key of the node")]
    Signature,
    #[error("{0}")]
    Reply(#[from] gateway_core::federation::message::MessageError),
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("the reply is for another gateway")]
    Addressee,
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error("the node was not reached after its change, which was rolled back")]
    RolledBack,
}

impl PullError {
    fn is_unreachable(&self) -> bool {
        matches!(self, PullError::Peer(PeerError::Unreachable(_)))
    }

    fn event(&self) -> EventKind {
        match self {
            PullError::Refused(refusal) if refusal.is_conflict() => EventKind::ConflictDetected,
            PullError::Apply(ApplyError::Refused(EditError::Invalid(problems)))
                if problems.iter().any(|problem| problem.code == gateway_model::problem::code::CONFLICT) =>
            {
                EventKind::ConflictDetected
            }
            PullError::Apply(ApplyError::Refused(_) | ApplyError::Kernel(_)) | PullError::RolledBack => {
                EventKind::ResourceRejected
            }
            _ => EventKind::SyncFailed,
        }
    }
}

impl Federation {
    /// Pulls until it is aborted.
    pub(super) async fn run(self: Arc<Self>) {
        let mut revisions = self.store.watch();
        loop {
            let nodes = self.store.current().nodes.revision();
            let begun = Instant::now();
            self.end_overlap().await;
            self.pull_all().await;
            let sleep = tokio::time::sleep(give_or_take_a_quarter(PERIOD));
            tokio::pin!(sleep);
            loop {
                tokio::select! {
                    () = &mut sleep => break,
                    () = self.due.notified() => {
                        tokio::time::sleep_until(begun + MIN_INTERVAL).await;
                        break;
                    }
                    changed = revisions.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        if self.store.current().nodes.revision() != nodes {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Pulls from each node that sends objects to this gateway.
    pub async fn pull_all(self: &Arc<Self>) -> Vec<SyncResult> {
        let state = self.store.current();
        self.peers.keep(|node| state.nodes.contains(node));
        let sends = |node: &&Arc<Node>| !node.received_kinds(&state).is_empty();
        let nodes: Vec<Arc<Node>> = state.nodes.arcs().filter(sends).cloned().collect();
        for kind in [AlertKind::NodeUnreachable, AlertKind::SyncFailed] {
            self.active_alerts
                .keep(kind, |subject| nodes.iter().any(|node| node.meta.id.to_string() == subject));
        }
        let mut results = Vec::new();
        for node in nodes {
            results.extend(self.pull(node.meta.id).await);
        }
        results
    }

    /// Pulls from one node. `None` if there is no such node.
    pub async fn pull(self: &Arc<Self>, id: Id) -> Option<SyncResult> {
        let _one_at_a_time = self.pulling.lock().await;
        let node = self.store.current().nodes.get(id)?.clone();
        let outcome = self.pull_once(&node).await;
        let (changed, error) = match outcome {
            Ok(changed) => {
                self.report_success(&node, &changed, Transport::Pull);
                (changed, None)
            }
            Err(error) => {
                self.report_failure(&node, &error);
                (Vec::new(), Some(error.to_string()))
            }
        };
        Some(SyncResult { node_id: id, node: node.name.clone(), changed, error })
    }

    async fn pull_once(self: &Arc<Self>, node: &Arc<Node>) -> Result<Vec<SyncKind>, PullError> {
        let (replica, changes) = self.fetch(node).await?;
        self.confirm_pending().await?;
        self.take_changes(node, replica, changes).await
    }

    /// Applies changes of a node that were verified, and reaches the node once more. Needs the lock of pulls.
    pub(super) async fn take_changes(
        self: &Arc<Self>,
        node: &Arc<Node>,
        mut replica: Replica,
        changes: Vec<Change>,
    ) -> Result<Vec<SyncKind>, PullError> {
        let is_new = |change: &Change| {
            let received = &change.received;
            !self.peers.was_rolled_back(node.meta.id, received.kind, &received.hash)
        };
        let changes: Vec<Change> = changes.into_iter().filter(is_new).collect();
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        replica.written(&changes);
        let kinds: Vec<SyncKind> = changes.iter().map(|change| change.received.kind).collect();
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        self.note(EventKind::SyncStarted, node.meta.id, format!("It has changed {}.", names.join(", ")));
        let changes = Arc::new(changes);
        self.apply(node, changes.clone(), replica.received()).await?;
        if self.confirm(node.meta.id).await? {
            return Ok(kinds);
        }
        for change in changes.iter() {
            self.peers.note_rollback(node.meta.id, change.received.kind, &change.received.hash);
        }
        Err(PullError::RolledBack)
    }

    /// Reaches the node once more, and confirms the change. False if it was not reached in time.
    async fn confirm(self: &Arc<Self>, id: Id) -> Result<bool, PullError> {
        let deadline = Instant::now() + CONFIRM_WITHIN;
        while Instant::now() < deadline {
            let Some(node) = self.store.current().nodes.get(id).cloned() else { return Ok(false) };
            if self.fetch(&node).await.is_ok() {
                self.confirm_pending().await?;
                return Ok(true);
            }
            tokio::time::sleep(CONFIRM_INTERVAL).await;
        }
        Ok(false)
    }

    /// Confirms a change of the federation, which the daemon may have left pending when it was killed.
    async fn confirm_pending(&self) -> Result<(), PullError> {
        if self.store.pending().is_none_or(|pending| pending.author != ACTOR) {
            return Ok(());
        }
        let store = self.store.clone();
        let ticket = AuditTicket { actor: ACTOR.to_owned(), ..AuditTicket::system("confirm_apply", "plan") };
        let confirmed = blocking(move || store.confirm_pending(ticket)).await;
        confirmed.map_err(ApplyError::Store)?;
        Ok(())
    }

    /// Asks the node for what changed. The reply is verified.
    async fn fetch(self: &Arc<Self>, node: &Node) -> Result<(Replica, Vec<Change>), PullError> {
        let state = self.store.current();
        let identity = Identity::of(&state).ok_or(PullError::NoKey)?;
        let key = node.public_key.ok_or(PullError::Signature)?;
        let mut replica = Replica::new(&node.received);
        let now = self.store.clock().now();
        let request = replica.request(&node.received_kinds(&state), key, nonce(), now);
        let envelope = signed(&identity, Purpose::PullRequest, &request);
        let body = serde_json::to_vec(&envelope).map_err(|error| PeerError::Form(error.to_string()))?;
        let answer = self.client.post(&node.url, &node.ca_certificate, PULL_PATH, body).await?;
        let envelope = Envelope::parse(&answer)?;
        if !self.is_by_node(node.meta.id, Purpose::PullReply, &envelope).await {
            return Err(PullError::Signature);
        }
        let reply = PullReply::parse(&envelope.payload)?;
        if reply.to != identity.public_key() {
            return Err(PullError::Addressee);
        }
        let version = reply.version.clone();
        let now = self.store.clock().now();
        self.peers.update(node.meta.id, |peer| (peer.last_seen, peer.version) = (Some(now), Some(version)));
        let changes = replica.reply(reply, |kind| held(&state, node.meta.id, kind), now)?;
        Ok((replica, changes))
    }

    pub(super) fn report_success(&self, node: &Node, changed: &[SyncKind], transport: Transport) {
        let (id, subject) = (node.meta.id, node.meta.id.to_string());
        let now = self.store.clock().now();
        let before = self.peers.update(id, |peer| {
            (peer.last_sync, peer.error, peer.is_conflict) = (Some(now), None, false);
            (peer.failures, peer.unreachable_since) = (0, None);
        });
        self.active_alerts.clear(AlertKind::NodeUnreachable, &subject);
        self.active_alerts.clear(AlertKind::SyncFailed, &subject);
        if before.failures >= MAX_FAILURES {
            self.note(EventKind::PeerRestored, id, "It answers again.".to_owned());
        }
        if before.is_conflict {
            self.note(EventKind::ConflictResolved, id, "Its objects are taken again.".to_owned());
        }
        if !changed.is_empty() {
            let kinds: Vec<&str> = changed.iter().map(|kind| kind.as_str()).collect();
            let kinds = kinds.join(", ");
            let message = match transport {
                Transport::Pull => format!("Took {kinds}."),
                Transport::Bus => format!("Took {kinds} over the hub."),
            };
            self.note(EventKind::SyncCompleted, id, message);
        }
    }

    pub(super) fn report_failure(&self, node: &Node, error: &PullError) {
        let (id, message) = (node.meta.id, error.to_string());
        let kind = error.event();
        let now = self.store.clock().now();
        let before = self.peers.update(id, |peer| {
            if error.is_unreachable() {
                peer.failures += 1;
                peer.unreachable_since.get_or_insert(now);
            } else {
                (peer.failures, peer.unreachable_since) = (0, None);
            }
            (peer.error, peer.is_conflict) = (Some(message.clone()), kind == EventKind::ConflictDetected);
        });
        // The same failure again is not another event.
        if before.error.as_ref() != Some(&message) {
            tracing::warn!(node = node.name, error = message, "failed to pull from a node");
            self.note(kind, id, message.clone());
        }
        let peer = self.peers.get(id);
        if peer.failures == MAX_FAILURES {
            self.note(EventKind::PeerUnreachable, id, message.clone());
        }
        let (alerts, subject) = (&self.active_alerts, id.to_string());
        if let Some(since) = peer.unreachable_since {
            let text = format!("the node {} is not reached: {message}", node.name);
            let seconds = now.duration_since(since).as_secs_f64();
            alerts.measure(AlertKind::NodeUnreachable, &subject, seconds, text);
        } else {
            alerts.clear(AlertKind::NodeUnreachable, &subject);
            let text = format!("objects of the node {} are not taken: {message}", node.name);
            alerts.raise(AlertKind::SyncFailed, &subject, text);
        }
    }
}
