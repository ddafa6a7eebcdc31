//! Writes that change nothing: the row keeps its revision, its time and its ETag.

use std::sync::Arc;

use serde_json::Value;

use super::State;
use super::planned::{content, same_content};
use crate::id::Revision;
use crate::resource::{Resource, to_shown};

/// A row before a write, and the state of its table.
pub(super) struct Unchanged<R> {
    row: Arc<R>,
    /// The shown form without metadata. It has the fields that other rows hold, such as memberships.
    shown: Value,
    revision: Revision,
    dirty: bool,
}

impl<R: Resource> Unchanged<R> {
    pub(super) fn of(row: Arc<R>, state: &State) -> Unchanged<R> {
        let table = R::table(state);
        Unchanged {
            shown: content(to_shown(row.as_ref(), state)),
            revision: table.revision(),
            dirty: table.dirty().contains(&row.meta().id),
            row,
        }
    }

    /// Puts the row back as it was if the written one differs in its metadata at most, and its shown form not at all.
    pub(super) fn restore(self, state: &mut State) {
        let table = R::table(state);
        let (id, written_revision) = (self.row.meta().id, table.revision());
        let Some(written) = table.get(id).cloned() else { return };
        if !same_content(self.row.as_ref(), written.as_ref()) {
            return;
        }
        // The same content has the same keys, so neither write can clash.
        let _ = R::table_mut(state).restore(self.row.clone(), self.revision, self.dirty);
        // Derived fields may come from the revision, so they are compared once it is the old one.
        if self.shown != content(to_shown(self.row.as_ref(), state)) {
            let _ = R::table_mut(state).restore(written, written_revision, true);
        }
    }
}
