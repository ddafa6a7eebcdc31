//! Status and peers: those of the membership of this gateway, else those of the mesh that it coordinates.

use std::sync::Arc;

use gateway_ctl::services::mesh::{Mesh, MeshPeer, MeshStatus, OpenError};

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;

pub(super) async fn status_of(cx: &Cx) -> Result<MeshStatus, ApiError> {
    match cx.open()?.mesh_member.status() {
        Some(status) => Ok(status),
        None => read(cx, |mesh| mesh.status()).await,
    }
}

pub(super) async fn all_peers(cx: &Cx) -> Result<Vec<MeshPeer>, ApiError> {
    match cx.open()?.mesh_member.peers() {
        Some(peers) => Ok(peers),
        None => read(cx, |mesh| mesh.peers()).await,
    }
}

/// Reads the mesh, which may open its identity.
async fn read<T: Send + 'static>(
    cx: &Cx,
    run: impl FnOnce(&Arc<Mesh>) -> Result<T, OpenError> + Send + 'static,
) -> Result<T, ApiError> {
    let mesh = cx.open()?.mesh.clone();
    blocking(move || run(&mesh)).await?.map_err(unreadable)
}

pub(super) fn unreadable(error: OpenError) -> ApiError {
    match error {
        OpenError::Store(error) => error.into(),
        OpenError::Roster(_) => ApiError::internal(&error),
    }
}
