//! Objects that a path names.

use gateway_model::{EditError, Kind, Resource};

use crate::context::Cx;
use crate::error::ApiError;

/// The id of the object that a path names by its id or its unique name. What names nothing stays as it is.
pub(super) fn id_of(kind: &Kind, cx: &Cx, name: &str) -> Result<String, ApiError> {
    let found = kind.find(&cx.open()?.store.current(), name);
    Ok(found.map_or_else(|| name.to_owned(), |id| id.to_string()))
}

/// There is no such object.
pub(super) fn not_found<R: Resource>(id: &str) -> EditError {
    EditError::NotFound { resource_type: R::NOUN, id: id.to_owned() }
}
