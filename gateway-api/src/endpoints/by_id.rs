//! Lookup of objects that a path names.

use gateway_model::{EditError, Kind, Resource};

use crate::context::Cx;
use crate::error::ApiError;

/// Returns the id of the object that a path names by id or unique name. An unknown name is returned unchanged.
pub(super) fn id_of(kind: &Kind, cx: &Cx, name: &str) -> Result<String, ApiError> {
    let found = kind.find(&cx.open()?.store.current(), name);
    Ok(found.map_or_else(|| name.to_owned(), |id| id.to_string()))
}

/// Returns the error for an object that does not exist.
pub(super) fn not_found<R: Resource>(id: &str) -> EditError {
    EditError::NotFound { resource_type: R::NOUN, id: id.to_owned() }
}
