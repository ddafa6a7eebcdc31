//! Paths of the current world.

use std::sync::Arc;

use gateway_core::paths::{Paths, paths};
use gateway_ctl::world::World;

use crate::context::Cx;
use crate::error::ApiError;

/// Returns the paths of the current world, and that world.
pub(super) async fn paths_now(cx: &Cx) -> Result<(World, Arc<Paths>), ApiError> {
    let world = cx.open()?.world();
    let paths = cx
        .api
        .paths
        .get(world.clone(), |now| paths(&now.input(), now.compiled(), &now.reports.hosts))
        .await?;
    Ok((world, paths))
}
