//! The mesh: the one that this gateway coordinates, or the one of another coordinator of which it is a member.

mod member;
mod qr_code;
mod views;

use gateway_ctl::services::mesh::{
    AdministrationError, CreatedKey, DerpMode, KeyTerms, MeshPeer, MeshStatus,
};
use gateway_model::validated::Cidr;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};
use qr_code::QrCode;
use views::{all_peers, status_of, unreadable};

/// Objects of the mesh in audit entries.
const PEER: &str = "mesh_peer";
const KEY: &str = "mesh_key";

pub(super) fn rows(t: &mut Table) {
    let stores = |action, resource_type| Effect::Stores(Audit { action, resource_type });
    t.view("/mesh/status", "get_mesh_status", status)
        .summary("State of the mesh: coordinator, relay and number of peers")
        .doc("The gateway coordinates a mesh if mesh.coordinator.enabled is set. It is no node of it, so what only a node observes is null. Else it shows the mesh of another coordinator, if the gateway is registered there.");
    t.view("/mesh/derp-mode", "get_mesh_derp_mode", derp_mode)
        .summary("Relays of the mesh")
        .doc("`embedded`: nodes use the relay of this gateway alone. `off`: they have none. The settings are below mesh.coordinator.relay. `auto`: this gateway is a member, and uses the relays of the map.");
    t.view("/mesh/peers", "list_mesh_peers", peers)
        .summary("Peers of the mesh")
        .doc("Those of the map if this gateway is a member of a mesh. Else those that it coordinates, or did: they are in the store while the coordinator is off.");
    t.view("/mesh/peers/{id}", "get_mesh_peer", peer).summary("A peer of the mesh");
    t.erase("/mesh/peers/{id}", "delete_mesh_peer", stores("delete_mesh_peer", PEER), remove)
        .summary("Remove a peer from the mesh")
        .doc("It loses its access to the coordinator, the relay and the other peers at once. It can come back with a new pre-auth key alone. A member cannot remove peers.")
        .answers(&[Code::InvalidState]);
    t.action(
        "/mesh/peers/{id}/routes",
        "approve_mesh_routes",
        stores("approve_mesh_routes", PEER),
        approve_routes,
    )
    .summary("Approve the prefixes that a peer may route")
    .doc("They replace those that were approved before. 0.0.0.0/0 and ::/0 make an exit of it. A prefix counts once the peer offers it, too. A member cannot approve any.")
    .answers(&[Code::InvalidState])
    .requires_input();
    t.action("/mesh/create-key", "create_mesh_key", stores("create_mesh_key", KEY), create_key)
        .summary("Create a pre-auth key, by which stock clients join the mesh")
        .doc("Only this response shows the key. The gateway keeps its hash.")
        .answers(&[Code::InvalidState, Code::LimitReached])
        .status(201);
    member::rows(t);
}

/// Prefixes that a peer may route.
#[derive(Debug, Deserialize, JsonSchema)]
struct RoutesInput {
    /// In CIDR notation; host bits are ignored.
    routes: Vec<Cidr>,
}

/// A new key, with its QR code.
#[derive(Serialize, JsonSchema)]
struct ShownKey {
    #[serde(flatten)]
    key: CreatedKey,
    /// QR code of the key as an SVG image.
    qr_svg: String,
    /// QR code of the key as text for terminals.
    qr_text: String,
}

/// Result of a removal.
#[derive(Debug, Serialize, JsonSchema)]
struct RemovedPeer {
    id: String,
}

async fn status(cx: Cx, _: Req<()>) -> Result<MeshStatus, ApiError> {
    status_of(&cx).await
}

async fn derp_mode(cx: Cx, _: Req<()>) -> Result<DerpMode, ApiError> {
    let open = cx.open()?;
    Ok(open.mesh_member.derp_mode(open.mesh.derp_mode()))
}

async fn peers(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<MeshPeer>>, ApiError> {
    Ok(WithHeaders::counted(all_peers(&cx).await?))
}

async fn peer(cx: Cx, request: Req<()>) -> Result<MeshPeer, ApiError> {
    find(&cx, request.params.get("id")).await
}

async fn remove(cx: Cx, request: Req<()>) -> Result<RemovedPeer, ApiError> {
    let id = request.params.get("id").to_owned();
    refuse_to_members(&cx)?;
    let (mesh, ticket) = (cx.open()?.mesh.clone(), cx.own_ticket()?);
    let removed = id.clone();
    blocking(move || mesh.remove_peer(ticket, &removed)).await?.map_err(refused)?;
    Ok(RemovedPeer { id })
}

async fn approve_routes(cx: Cx, request: Req<RoutesInput>) -> Result<MeshPeer, ApiError> {
    let id = request.params.get("id").to_owned();
    refuse_to_members(&cx)?;
    let (mesh, ticket) = (cx.open()?.mesh.clone(), cx.own_ticket()?);
    let (named, routes) = (id.clone(), request.input.routes);
    blocking(move || mesh.approve_routes(ticket, &named, &routes)).await?.map_err(refused)?;
    find(&cx, &id).await
}

async fn create_key(cx: Cx, request: Req<KeyTerms>) -> Result<WithHeaders<ShownKey>, ApiError> {
    let (mesh, ticket) = (cx.open()?.mesh.clone(), cx.own_ticket()?);
    let created = blocking(move || mesh.create_key(ticket, request.input)).await?;
    let key = created.map_err(refused)?;
    let code = QrCode::of(&key.key).map_err(|error| ApiError::internal(&error))?;
    let mut answer = WithHeaders::new(ShownKey { qr_svg: code.svg(), qr_text: code.text(), key });
    answer.status = StatusCode::CREATED;
    Ok(answer)
}

async fn find(cx: &Cx, id: &str) -> Result<MeshPeer, ApiError> {
    let found = all_peers(cx).await?.into_iter().find(|peer| peer.id == id);
    found.ok_or_else(|| ApiError::not_found(PEER, id))
}

/// Refuses what a coordinator alone can do.
fn refuse_to_members(cx: &Cx) -> Result<(), ApiError> {
    if !cx.open()?.mesh_member.is_member() {
        return Ok(());
    }
    let message = "This gateway is a member of the mesh: its coordinator removes peers and approves routes.";
    Err(ApiError::new(Code::InvalidState, message))
}

fn refused(error: AdministrationError) -> ApiError {
    match error {
        AdministrationError::Invalid(problems) => ApiError::validation(&problems),
        AdministrationError::Off => ApiError::new(
            Code::InvalidState,
            "The coordinator of the mesh is off: set mesh.coordinator.enabled.",
        )
        .detail("setting", "mesh.coordinator.enabled"),
        AdministrationError::TooManyKeys => {
            let message = "The mesh has as many pre-auth keys as it can have; they end by themselves.";
            ApiError::new(Code::LimitReached, message).detail("resource_type", KEY)
        }
        AdministrationError::NoPeer(id) => ApiError::not_found(PEER, &id),
        AdministrationError::Open(error) => unreadable(error),
        AdministrationError::Store(error) => error.into(),
        AdministrationError::Ledger(error) => ApiError::internal(&error),
    }
}
