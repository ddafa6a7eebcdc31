//! This gateway as a node of a mesh of another coordinator.

use gateway_ctl::services::mesh::MeshStatus;
use gateway_ctl::services::mesh_member::{MemberError, MeshConfig, RegisterMember};

use super::views::status_of;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

/// The membership in audit entries.
const MESH: &str = "mesh";

pub(super) fn rows(t: &mut Table) {
    let stores = |action| Effect::Stores(Audit { action, resource_type: MESH });
    t.view("/mesh/config", "get_mesh_config", config)
        .summary("Membership of this gateway in a mesh of another coordinator")
        .doc("A registration sets it. The settings of the own coordinator are below mesh.coordinator.");
    t.action("/mesh/register", "register_mesh_member", stores("join_mesh"), register)
        .summary("Register this gateway at a coordinator, and join its mesh")
        .doc("The key of the coordinator is pinned. A pre-auth key is used once and not stored. A refusal of the coordinator stores nothing. Peers have addresses of 100.64.0.0/10 and fd7a:115c:a1e0::/48 only.")
        .answers(&[Code::InvalidState, Code::UpstreamFailed])
        .requires_input();
    t.command("/mesh/up", "bring_up_mesh", stores("bring_up_mesh"), up)
        .summary("Follow the map of the mesh again")
        .answers(&[Code::InvalidState]);
    t.command("/mesh/down", "bring_down_mesh", stores("bring_down_mesh"), down)
        .summary("Leave the mesh until it is switched on again")
        .doc("The interface and all connections by it end. The registration and the keys stay.")
        .answers(&[Code::InvalidState]);
}

async fn config(cx: Cx, _: Req<()>) -> Result<MeshConfig, ApiError> {
    Ok(cx.open()?.mesh_member.config())
}

async fn register(cx: Cx, request: Req<RegisterMember>) -> Result<MeshStatus, ApiError> {
    let (member, ticket) = (cx.open()?.mesh_member.clone(), cx.own_ticket()?);
    member.register(ticket, request.input).await.map_err(refused)?;
    status_of(&cx).await
}

async fn up(cx: Cx, _: Req<()>) -> Result<MeshStatus, ApiError> {
    switch(cx, true).await
}

async fn down(cx: Cx, _: Req<()>) -> Result<MeshStatus, ApiError> {
    switch(cx, false).await
}

async fn switch(cx: Cx, up: bool) -> Result<MeshStatus, ApiError> {
    let (member, ticket) = (cx.open()?.mesh_member.clone(), cx.own_ticket()?);
    member.switch(ticket, up).await.map_err(refused)?;
    status_of(&cx).await
}

fn refused(error: MemberError) -> ApiError {
    match error {
        MemberError::Invalid(problems) => ApiError::validation(&problems),
        MemberError::Coordinates => {
            let message =
                "This gateway coordinates a mesh itself: switch mesh.coordinator.enabled off first.";
            ApiError::new(Code::InvalidState, message).detail("setting", "mesh.coordinator.enabled")
        }
        MemberError::NotRegistered => {
            let message = "This gateway is registered at no coordinator: POST /mesh/register does that.";
            ApiError::new(Code::InvalidState, message)
        }
        MemberError::Unreachable(reason) => {
            ApiError::new(Code::UpstreamFailed, format!("The coordinator gives no answer of use: {reason}."))
        }
        MemberError::Store(error) => error.into(),
    }
}
