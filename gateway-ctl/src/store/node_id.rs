//! Stable ID of the installation.

use gateway_model::State;
use gateway_model::settings::keys;

/// Assigns the installation its stable ID. Returns `true` if it had none.
pub(super) fn identify(state: &mut State) -> bool {
    let missing = state.settings.get(keys::NODE_ID).is_none();
    if missing {
        state.set(keys::NODE_ID, uuid::Uuid::new_v4().to_string().into());
    }
    missing
}
