//! Lookup, response and deletion of users and API keys.

use std::sync::Arc;

use gateway_model::{Deleted, Id, Resource, State, Stored};
use http::StatusCode;

use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::WithHeaders;

/// Deletes an object, together with the objects that depend on it.
pub(super) async fn remove<R: Resource>(cx: &Cx, given: &str) -> Result<Deleted, ApiError> {
    let id: Id = given.parse().map_err(|_| ApiError::not_found(R::NOUN, given))?;
    cx.commit(move |draft: &mut State| draft.remove::<R>(id, None, false).map(drop)).await?;
    Ok(Deleted { id: id.to_string(), deleted: true })
}

/// Builds a 201 response with the location of the created object.
pub(super) fn made<O>(data: O, location: String) -> WithHeaders<O> {
    let mut reply = WithHeaders::new(data);
    reply.status = StatusCode::CREATED;
    reply.location = Some(location);
    reply
}

/// Returns the object with this id.
pub(super) fn find<R: Resource + Stored>(state: &State, given: &str) -> Result<Arc<R>, ApiError> {
    let found = given.parse().ok().and_then(|id| R::table(state).get(id).cloned());
    found.ok_or_else(|| ApiError::not_found(R::NOUN, given))
}
