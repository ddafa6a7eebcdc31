//! The membership as it is stored: which coordinator, by which keys, and whether it is on.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_mesh::{KeyPair, MachineKey};
use gateway_model::State;
use gateway_model::secret::Secret;
use gateway_model::settings::keys::{MESH_MACHINE_KEY, MESH_MEMBERSHIP, MESH_NODE_KEY};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use zeroize::Zeroizing;

/// Stored part without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub coordinator_url: String,
    /// Key of the coordinator at the registration. Another one is refused.
    pub coordinator_key: MachineKey,
    /// Authorities in PEM that are trusted instead of those of the system. Empty: those of the system.
    pub ca_certificate: String,
    pub hostname: String,
    pub listen_port: u16,
    /// URL at which a person has to log in. Empty: none.
    pub login_url: String,
    /// The member follows the map.
    pub up: bool,
    /// Time of the registration: each one is followed from the start, also with the same keys.
    pub registered_at: Timestamp,
}

/// A membership with its keys.
#[derive(Clone)]
pub(super) struct Membership {
    pub record: Record,
    pub machine: KeyPair,
    pub node: KeyPair,
}

impl PartialEq for Membership {
    fn eq(&self, other: &Membership) -> bool {
        self.record == other.record
            && self.machine.public() == other.machine.public()
            && self.node.public() == other.node.public()
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Membership {
    /// Reads the stored membership; none if there is none, or if its keys cannot be opened.
    pub(super) fn stored(state: &State) -> Option<Membership> {
        let record = Record::deserialize(state.settings.get(MESH_MEMBERSHIP)?).ok()?;
        let (machine, node) = (pair(state, MESH_MACHINE_KEY)?, pair(state, MESH_NODE_KEY)?);
        Some(Membership { record, machine, node })
    }

    /// Stores the membership in place of the last one.
    pub(super) fn store(&self, draft: &mut State) {
        draft.set(MESH_MEMBERSHIP, json!(self.record));
        for (key, pair) in [(MESH_MACHINE_KEY, &self.machine), (MESH_NODE_KEY, &self.node)] {
            let text = Zeroizing::new(STANDARD.encode(pair.expose()));
            if draft.settings.secret(key).expose() != text.as_str() {
                draft.set_secret(key, Secret::new(text.as_str()));
            }
        }
    }
}

fn pair(state: &State, key: &str) -> Option<KeyPair> {
    let secret = state.settings.secret(key);
    let bytes = Zeroizing::new(STANDARD.decode(secret.expose()).ok()?);
    let bytes: &[u8; 32] = bytes.as_slice().try_into().ok()?;
    Some(KeyPair::of_secret(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_membership_comes_back_and_debug_has_no_key() {
        let record = Record {
            coordinator_url: "https://gw.example.net:8443".to_owned(),
            coordinator_key: MachineKey([3; 32]),
            ca_certificate: String::new(),
            hostname: "gw".to_owned(),
            listen_port: 41641,
            login_url: String::new(),
            up: true,
            registered_at: Timestamp::UNIX_EPOCH,
        };
        let (machine, node) = (KeyPair::of_secret([1; 32]), KeyPair::of_secret([2; 32]));
        let membership = Membership { record, machine, node };
        let mut draft = State::default().begin("2026-11-30T12:00:00Z".parse().unwrap());
        membership.store(&mut draft);
        assert_eq!(Membership::stored(&draft).as_ref(), Some(&membership));
        let stored = draft.settings.get(MESH_MEMBERSHIP).expect("a record").to_string();
        for text in [stored, format!("{membership:?}")] {
            assert!(!text.contains(&STANDARD.encode([2; 32])) && !text.contains("0202"), "{text}");
        }
    }
}
