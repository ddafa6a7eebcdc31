//! Notices: this gateway lets the nodes that fetch from it know at once that something has changed, so that they pull now.
//!
//! A notice is signed and has the revisions of the kinds that the node may fetch. It is sent once: the periodic pull of the
//! node makes up for one that is lost. Many edits are one notice, and a node has one under way at most.

pub(super) mod counts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::federation::message::{Envelope, Notice, Purpose, SCHEMA};
use gateway_core::federation::offer::offer;
use gateway_model::bulk_edit::revision;
use gateway_model::kinds::{Node, SyncKind};
use gateway_model::validated::PublicKey;
use gateway_model::{Id, State};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Federation;
use super::bus::status::BusState;
use super::exchange::nonce;
use super::identity::Identity;
use super::serve::{ServeError, signed};
use crate::service;
use crate::supervise::blocking;

/// Path of a notice at a node.
const NOTICE_PATH: &str = "/federation/notice";
/// Time in which changes of the store are collected.
const COALESCE: Duration = Duration::from_millis(200);
/// The same while there is a session with a hub, over which most nodes get the change before.
const COALESCE_BESIDE_HUB: Duration = Duration::from_secs(2);
/// Maximum number of notices under way.
const MAX_UNDER_WAY: usize = 16;
/// Time for which a node that was not reached gets no notice. It pulls when it is back.
const REST: Duration = Duration::from_secs(60);

type Revisions = BTreeMap<String, u64>;

/// Last notice to a node.
#[derive(Debug, Default)]
struct Sent {
    /// Key of this gateway at that time.
    own_key: Option<PublicKey>,
    revisions: Revisions,
    is_under_way: bool,
    rests_until: Option<Instant>,
}

impl Federation {
    /// Returns the service that notifies the nodes.
    pub fn notice_service(self: &Arc<Self>) -> service::Service {
        let measured = self.clone();
        service::Service::new("federation_notices", self, |federation| federation.run_notices())
            .measures(move |registry| measured.notices.measure(registry))
    }

    async fn run_notices(self: Arc<Self>) {
        let mut revisions = self.store.watch();
        // At the start the nodes pull by themselves, and what changes from then on is noticed.
        let mut sent: BTreeMap<Id, Sent> = self.due_nodes(&self.store.current()).collect();
        let mut under_way: JoinSet<(Id, bool)> = JoinSet::new();
        loop {
            tokio::select! {
                changed = revisions.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    sleep(self.coalescing()).await;
                }
                Some(done) = under_way.join_next() => {
                    let Ok((id, is_reached)) = done else { continue };
                    let Some(sent) = sent.get_mut(&id) else { continue };
                    sent.is_under_way = false;
                    sent.rests_until = (!is_reached).then(|| Instant::now() + REST);
                }
            }
            self.send_due(&mut sent, &mut under_way);
        }
    }

    fn coalescing(&self) -> Duration {
        if self.bus_status().state == BusState::Connected { COALESCE_BESIDE_HUB } else { COALESCE }
    }

    /// Returns the nodes that may fetch from this gateway, with the revisions of their kinds.
    fn due_nodes(&self, state: &State) -> impl Iterator<Item = (Id, Sent)> {
        let own_key = Identity::of(state).map(|identity| identity.public_key());
        let of = |node: &Node| {
            let kinds = node.offered_kinds(state).into_iter();
            let revisions: Revisions = kinds.map(|kind| (kind.to_string(), revision(state, kind))).collect();
            (node.meta.id, Sent { own_key, revisions, ..Sent::default() })
        };
        let nodes: Vec<(Id, Sent)> = state.nodes.iter().map(of).collect();
        nodes.into_iter().filter(|(_, sent)| !sent.revisions.is_empty())
    }

    /// Sends the notices that are due, up to the limit.
    fn send_due(self: &Arc<Self>, sent: &mut BTreeMap<Id, Sent>, under_way: &mut JoinSet<(Id, bool)>) {
        let state = self.store.current();
        let due: BTreeMap<Id, Sent> = self.due_nodes(&state).collect();
        sent.retain(|id, _| due.contains_key(id));
        let now = Instant::now();
        for (id, Sent { own_key, revisions, .. }) in due {
            let last = sent.entry(id).or_default();
            let rests = last.rests_until.is_some_and(|until| now < until);
            let has_new_key = last.own_key != own_key;
            if (last.revisions == revisions && !has_new_key) || last.is_under_way || rests {
                continue;
            }
            if under_way.len() >= MAX_UNDER_WAY {
                return;
            }
            last.revisions.clone_from(&revisions);
            last.own_key = own_key;
            let Some(node) = state.nodes.get(id).cloned() else { continue };
            last.is_under_way = true;
            let federation = self.clone();
            under_way.spawn(async move { (id, federation.send_notice(&node, revisions, has_new_key).await) });
        }
    }

    /// Sends one notice. Returns false if the node was not reached.
    async fn send_notice(self: Arc<Self>, node: &Node, revisions: Revisions, has_new_key: bool) -> bool {
        let (federation, id) = (self.clone(), node.meta.id);
        let Some(key) = node.public_key else { return true };
        let composed = blocking(move || {
            let state = federation.store.current();
            if !has_new_key && federation.holds_all(&state, id) {
                return None;
            }
            let at = federation.store.clock().now();
            let notice = Notice { schema: SCHEMA, to: key, nonce: nonce(), at, revisions };
            let envelope = signed(&Identity::of(&state)?, Purpose::Notice, &notice);
            serde_json::to_vec(&envelope).ok()
        });
        let Some(body) = composed.await else { return true };
        match self.client.post(&node.url, &node.ca_certificate, NOTICE_PATH, body).await {
            Ok(_) => {
                self.notices.count_sent();
                true
            }
            Err(error) => {
                tracing::debug!(node = node.name, %error, "a node takes no notice; it will pull");
                false
            }
        }
    }

    /// Reports whether the last pull of a node was of what this gateway has now.
    fn holds_all(&self, state: &State, id: Id) -> bool {
        let Some(node) = state.nodes.get(id) else { return false };
        let held = self.peers.held(id);
        let holds =
            |kind: SyncKind| held.get(&kind).is_some_and(|hash| offer(state, kind, hash).hash == *hash);
        node.offered_kinds(state).into_iter().all(holds)
    }

    /// Takes a notice. Returns true if a pull follows. May open the secret of the key.
    pub fn notice(&self, request: &Envelope) -> Result<bool, ServeError> {
        let (node, identity) = self.sender(request, Purpose::Notice)?;
        let notice = Notice::parse(&request.payload)?;
        self.check_fresh(&node, &identity, notice.to, notice.at, &notice.nonce)?;
        let state = self.store.current();
        let is_newer = |kind: SyncKind| {
            let held = node.received(kind).map_or(0, |held| held.revision);
            notice.revisions.get(kind.as_str()).is_some_and(|revision| *revision > held)
        };
        let pulls = node.received_kinds(&state).into_iter().any(is_newer);
        if pulls {
            self.notices.count_taken();
            self.wake();
        }
        Ok(pulls)
    }
}
