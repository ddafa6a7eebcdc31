//! References between objects, and the backups and snapshots that this version does not have.

use gateway_model::references::References;
use gateway_model::registry;

use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;
use crate::table::Method::{Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.view("/references/{type}/{id}", "get_references", references)
        .summary("How many objects refer to this one, by id or name")
        .doc("type is a noun such as tunnel or trust_class; - and _ are alike.");
    t.unsupported(
        "backups by schedule, which this version does not have",
        &[(Get, "/backup/status"), (Post, "/backup/run"), (Put, "/backup/config")],
    );
}

async fn references(cx: Cx, request: Req<()>) -> Result<References, ApiError> {
    let (kind, id) = (request.params.get("type"), request.params.get("id"));
    let state = cx.open()?.store.current();
    let Some(found) = registry::kind(kind) else {
        let allowed: Vec<&str> = registry::KINDS.iter().map(|kind| kind.noun).collect();
        return Err(ApiError::invalid_parameter("type", format!("There are no objects of type {kind:?}."))
            .detail("allowed", allowed));
    };
    Ok(found.references(&state, id)?)
}
