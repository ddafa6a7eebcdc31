//! Views of the federation: this gateway, its peers, the objects and the events.

use std::collections::BTreeMap;

use gateway_core::federation::offer::Manifest;
use gateway_ctl::services::federation::{BusStatus, EventKind, FederationEvent};
use gateway_model::bulk_edit::{SyncedObject, inventory};
use gateway_model::kinds::{NodeStatus, SyncKind, fingerprint, fingerprint_words};
use gateway_model::{Id, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::observed::lag;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::query::parameters::{Before, Limit};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.view("/federation/status", "get_federation_status", status)
        .summary("This gateway as a member of a federation");
    t.view("/federation/peers", "list_federation_peers", peers)
        .summary("Peers, with what is exchanged with each")
        .doc("offered and received are the kinds that its role and its fields permit now.");
    t.view("/federation/manifest", "get_federation_manifest", manifest)
        .summary("Kinds that this gateway owns, with their hashes, signed by its key");
    t.view("/federation/inventory", "list_federation_inventory", list_inventory)
        .summary("Objects of the kinds that are synced, with their owners")
        .doc("Deleted objects of other gateways are listed as long as their tombstones are kept: 1000 of each kind and node.")
        .query::<InventoryQuery>();
    t.view("/federation/recent-events", "list_federation_events", events)
        .summary("Events since the start of the daemon, newest first")
        .doc("The newest 1000 are kept. The audit trail has each change.")
        .query::<EventQuery>();
}

/// Number of peers by status.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct PeerCounts {
    total: usize,
    pending: usize,
    /// Approved, and not heard of since the start of the daemon.
    approved: usize,
    connected: usize,
    unreachable: usize,
    rejected: usize,
    revoked: usize,
}

/// This gateway as a member of a federation.
#[derive(Debug, Serialize, JsonSchema)]
struct FederationStatus {
    /// Stable id of this installation.
    node_id: String,
    /// Ed25519, base64. Null until the first exchange makes it.
    public_key: Option<String>,
    /// SHA-256 of the public key, as OpenSSH writes it.
    fingerprint: Option<String>,
    /// The first 96 bits of the same hash as words. Administrators of peers compare them.
    fingerprint_words: Option<String>,
    /// Words of the key before it. Null after the overlap of both.
    previous_fingerprint_words: Option<String>,
    /// Time until which the key before it counts as well.
    overlap_until: Option<Timestamp>,
    peers: PeerCounts,
    /// Objects of this gateway that can be synced.
    own_objects: usize,
    /// Objects that came from other gateways.
    received_objects: usize,
    /// Time of the last pull that succeeded.
    last_sync: Option<Timestamp>,
    /// Peers whose last pull failed, with the reason.
    errors: Vec<String>,
    /// Session with the hub.
    bus: BusStatus,
}

/// Peer, and what is exchanged with it.
#[derive(Debug, Serialize, JsonSchema)]
struct FederationPeer {
    id: Id,
    name: String,
    url: String,
    status: NodeStatus,
    role: String,
    fingerprint: Option<String>,
    fingerprint_words: Option<String>,
    /// Kinds that it may fetch from this gateway.
    offered: Vec<SyncKind>,
    /// Kinds that this gateway fetches from it.
    received: Vec<SyncKind>,
    /// Number of objects here that came from it.
    objects: usize,
    /// Time of its last signed message since the start of the daemon.
    last_seen: Option<Timestamp>,
    last_sync: Option<Timestamp>,
    sync_lag_sec: Option<u64>,
    version: Option<String>,
    errors: Vec<String>,
}

async fn status(cx: Cx, _: Req<()>) -> Result<FederationStatus, ApiError> {
    let open = cx.open()?;
    let federation = open.federation.clone();
    let (key, previous) = blocking(move || (federation.own_key(), federation.previous_key())).await?;
    let (state, now) = (open.store.current(), open.now());
    let objects = inventory(&state);
    let received_objects = objects.iter().filter(|object| object.origin_node.is_some()).count();
    let mut counts = PeerCounts::default();
    let (mut last_sync, mut errors) = (None, Vec::new());
    for node in state.nodes.iter() {
        let peer = open.federation.peer(node.meta.id);
        counts.total += 1;
        *match peer.status(node, now) {
            NodeStatus::Pending => &mut counts.pending,
            NodeStatus::Approved => &mut counts.approved,
            NodeStatus::Connected => &mut counts.connected,
            NodeStatus::Unreachable => &mut counts.unreachable,
            NodeStatus::Rejected => &mut counts.rejected,
            NodeStatus::Revoked => &mut counts.revoked,
        } += 1;
        last_sync = last_sync.max(peer.last_sync);
        errors.extend(peer.error.map(|error| format!("{}: {error}", node.name)));
    }
    Ok(FederationStatus {
        node_id: open.federation.node_id(),
        public_key: key.map(|key| key.to_string()),
        fingerprint: key.map(fingerprint),
        fingerprint_words: key.map(fingerprint_words),
        previous_fingerprint_words: previous.map(|(key, _)| fingerprint_words(key)),
        overlap_until: previous.map(|(_, until)| until),
        peers: counts,
        own_objects: objects.len() - received_objects,
        received_objects,
        last_sync,
        errors,
        bus: open.federation.bus_status(),
    })
}

async fn peers(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<FederationPeer>>, ApiError> {
    let open = cx.open()?;
    let state = open.store.current();
    let peers = state.nodes.iter().map(|node| {
        let (peer, now) = (open.federation.peer(node.meta.id), open.now());
        FederationPeer {
            id: node.meta.id,
            name: node.name.clone(),
            url: node.url.clone(),
            status: peer.status(node, now),
            role: node.role.clone(),
            fingerprint: node.public_key.map(fingerprint),
            fingerprint_words: node.public_key.map(fingerprint_words),
            offered: node.offered_kinds(&state),
            received: node.received_kinds(&state),
            objects: state.received_from(node.meta.id),
            last_seen: peer.last_seen,
            last_sync: peer.last_sync,
            sync_lag_sec: lag(&peer, now),
            version: peer.version,
            errors: peer.error.into_iter().collect(),
        }
    });
    Ok(WithHeaders::counted(peers.collect()))
}

async fn manifest(cx: Cx, _: Req<()>) -> Result<Manifest, ApiError> {
    let federation = cx.open()?.federation.clone();
    blocking(move || federation.manifest()).await
}

/// Query of the inventory.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct InventoryQuery {
    /// Maximum number of objects: 1 to 1000, default 100.
    limit: Limit<100, 1000>,
    /// Only this kind.
    kind: Option<SyncKind>,
    /// Only objects that came from this node.
    node_id: Option<Id>,
}

/// Object of a kind that is synced.
#[derive(Debug, Serialize, JsonSchema)]
struct InventoryObject {
    kind: SyncKind,
    /// Collection of the object. Null for a deleted object.
    collection: Option<&'static str>,
    id: Id,
    /// Empty for a deleted object.
    name: String,
    /// Revision of this store at its last change; of a deleted object, the revision of the node's kind without it.
    revision: u64,
    /// Id of the node that owns it; null for this gateway.
    origin_node: Option<Id>,
    /// Its node has deleted it.
    deleted: bool,
}

async fn list_inventory(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<InventoryObject>>, ApiError> {
    let InventoryQuery { limit, kind, node_id } = request.query.read()?;
    let state = cx.open()?.store.current();
    let present = inventory(&state).into_iter().map(present);
    let mut objects: Vec<InventoryObject> = present.chain(tombstones(&state)).collect();
    objects.retain(|object| {
        kind.is_none_or(|kind| object.kind == kind) && (node_id.is_none() || object.origin_node == node_id)
    });
    let total = objects.len();
    objects.truncate(limit.get());
    let mut answer = WithHeaders::new(objects);
    answer.total = Some(total);
    Ok(answer)
}

fn present(object: SyncedObject) -> InventoryObject {
    let SyncedObject { kind, collection, id, name, revision, origin_node } = object;
    InventoryObject { kind, collection: Some(collection), id, name, revision, origin_node, deleted: false }
}

fn tombstones(state: &State) -> impl Iterator<Item = InventoryObject> {
    let received =
        state.nodes.iter().flat_map(|node| node.received.iter().map(move |received| (node, received)));
    received.flat_map(|(node, received)| {
        let tombstones: &BTreeMap<Id, u64> = &received.tombstones;
        tombstones.iter().map(move |(id, revision)| InventoryObject {
            kind: received.kind,
            collection: None,
            id: *id,
            name: String::new(),
            revision: *revision,
            origin_node: Some(node.meta.id),
            deleted: true,
        })
    })
}

/// Query of the events.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct EventQuery {
    /// Maximum number of events: 1 to 1000, default 100.
    limit: Limit<100, 1000>,
    /// Only events before this event id or this time (RFC 3339).
    before: Option<Before<u64>>,
    /// Only this kind.
    kind: Option<EventKind>,
    /// Only events about this node.
    node_id: Option<Id>,
}

async fn events(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<FederationEvent>>, ApiError> {
    let EventQuery { limit, before, kind, node_id } = request.query.read()?;
    let open: &Open = cx.open()?;
    let mut events = open.federation.events();
    events.retain(|event| {
        kind.is_none_or(|kind| event.kind == kind) && (node_id.is_none() || event.node_id == node_id)
    });
    let total = events.len();
    events.retain(|event| match &before {
        Some(Before::Id(id)) => event.id < *id,
        Some(Before::Time(time)) => event.at < *time,
        None => true,
    });
    events.truncate(limit.get());
    let mut answer = WithHeaders::new(events);
    answer.total = Some(total);
    Ok(answer)
}
