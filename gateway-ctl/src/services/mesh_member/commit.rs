//! Writes of the membership to the store.

use std::convert::Infallible;

use gateway_model::State;

use crate::store::{AuditTicket, CommitError, Error, Store};

/// Commits a change that nothing refuses.
pub(super) fn commit(
    store: &Store,
    ticket: AuditTicket,
    change: impl FnOnce(&mut State),
) -> Result<(), Error> {
    let committed = store.commit(ticket, |draft| {
        change(draft);
        Ok::<_, Infallible>(())
    });
    match committed {
        Ok(()) => Ok(()),
        Err(CommitError::Store(error)) => Err(error),
        Err(CommitError::Refused { error, .. }) => match error {},
    }
}
