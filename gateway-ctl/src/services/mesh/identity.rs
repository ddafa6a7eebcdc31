//! Keys of the coordinator and its relay: among the secrets of the store.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_mesh::KeyPair;
use gateway_model::State;
use gateway_model::secret::Secret;
use gateway_model::settings::keys::{MESH_IDENTITY, MESH_RELAY};
use zeroize::Zeroizing;

use crate::store::{AuditTicket, CommitError, Error, Store};

/// Keys of the coordinator and its relay.
pub(super) struct Identity {
    pub control: KeyPair,
    pub relay: KeyPair,
}

/// Returns the identity of this gateway, which is made first if there is none and `make` is set. Blocks on the disk.
pub(super) fn of(store: &Store, make: bool) -> Result<Option<Identity>, Error> {
    let state = store.current();
    let is_set = |key| state.settings.secret(key).is_set();
    if !is_set(MESH_IDENTITY) || !is_set(MESH_RELAY) {
        if !make {
            return Ok(None);
        }
        create(store)?;
    }
    let state = store.current();
    match (pair(&state, MESH_IDENTITY), pair(&state, MESH_RELAY)) {
        (Some(control), Some(relay)) => Ok(Some(Identity { control, relay })),
        _ => Err(no_key("its secret cannot be opened")),
    }
}

fn pair(state: &State, key: &str) -> Option<KeyPair> {
    let secret = state.settings.secret(key);
    let bytes = Zeroizing::new(STANDARD.decode(secret.expose()).ok()?);
    let bytes: &[u8; 32] = bytes.as_slice().try_into().ok()?;
    Some(KeyPair::of_secret(*bytes))
}

fn create(store: &Store) -> Result<(), Error> {
    let random = || -> Result<Secret, Error> {
        let pair = KeyPair::random().map_err(|_| no_key("the system has no random numbers"))?;
        let text = Zeroizing::new(STANDARD.encode(pair.expose()));
        Ok(Secret::new(text.as_str()))
    };
    let fresh = [(MESH_IDENTITY, random()?), (MESH_RELAY, random()?)];
    let ticket = AuditTicket::system("create_mesh_identity", "mesh");
    let committed = store.commit(ticket, |draft| {
        for (key, secret) in fresh {
            // Another caller may have made one meanwhile. One that cannot be opened is not replaced.
            if !draft.settings.secret(key).is_set() {
                draft.set_secret(key, secret);
            }
        }
        Ok::<_, std::convert::Infallible>(())
    });
    match committed {
        Ok(()) => Ok(()),
        Err(CommitError::Store(error)) => Err(error),
        Err(CommitError::Refused { error, .. }) => match error {},
    }
}

fn no_key(reason: &str) -> Error {
    Error::Damaged { what: format!("there is no key for the coordinator of the mesh: {reason}") }
}
