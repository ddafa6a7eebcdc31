//! The objects that this gateway owns, as it offers them to its peers.

use std::collections::BTreeMap;

use gateway_model::State;
use gateway_model::bulk_edit::{offered, revision};
use gateway_model::kinds::SyncKind;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::message::{KindOffer, Purpose, SCHEMA, signed_bytes};
use crate::hexadecimal::hex;

/// Returns the SHA-256 of the objects of a kind, in hexadecimal.
pub fn hash_of(objects: &Map<String, Value>) -> String {
    let text = serde_json::to_vec(objects).expect("a value with string keys");
    hex(&Sha256::digest(text))
}

/// Returns the number of objects in all collections.
pub fn count_of(objects: &Map<String, Value>) -> usize {
    objects.values().filter_map(Value::as_array).map(Vec::len).sum()
}

/// Returns the kind as this gateway offers it. Without objects if the peer holds this hash already.
pub fn offer(state: &State, kind: SyncKind, held_hash: &str) -> KindOffer {
    let objects = offered(state, kind);
    let hash = hash_of(&objects);
    let objects = (hash != held_hash).then_some(objects);
    KindOffer { revision: revision(state, kind), hash, objects }
}

/// Objects of one kind that this gateway owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ManifestKind {
    /// Number of objects.
    pub count: usize,
    /// SHA-256 of the objects, in hexadecimal.
    pub hash: String,
    /// Revision of the store at the last change of the kind.
    pub revision: u64,
}

/// Kinds that this gateway owns, with the signature of its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Manifest {
    /// Stable id of this installation.
    pub node_id: String,
    /// Version of the daemon.
    pub version: String,
    /// Form of the manifest.
    pub schema: u32,
    pub generated_at: Timestamp,
    pub kinds: BTreeMap<SyncKind, ManifestKind>,
    /// Ed25519 signature, base64. Null until this gateway has a key, which the first exchange makes.
    pub signature: Option<String>,
}

impl Manifest {
    /// Returns the manifest of a state, without a signature. Kinds that are not synced are not in it.
    pub fn of(state: &State, node_id: String, version: String, now: Timestamp) -> Manifest {
        let kinds = SyncKind::ALL.iter().filter(|kind| !kind.collections().is_empty());
        let kinds = kinds.map(|kind| {
            let objects = offered(state, *kind);
            let (count, hash) = (count_of(&objects), hash_of(&objects));
            (*kind, ManifestKind { count, hash, revision: revision(state, *kind) })
        });
        let kinds = kinds.collect();
        Manifest { node_id, version, schema: SCHEMA, generated_at: now, kinds, signature: None }
    }

    /// Returns the bytes that are signed: all fields but the signature.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let unsigned = Manifest { signature: None, ..self.clone() };
        let text = serde_json::to_string(&unsigned).expect("a struct with string keys");
        signed_bytes(Purpose::Manifest, &[&text])
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::Device;

    use super::*;

    #[test]
    fn a_manifest_changes_with_the_objects_and_not_with_the_time() {
        let now = "2026-11-20T12:00:00Z".parse().unwrap();
        let state = State::new(now);
        let of = |state: &State| {
            Manifest::of(state, "n".into(), "v".into(), now).kinds[&SyncKind::Devices].clone()
        };
        let mut draft = state.begin(now);
        let device = Device { name: "printer".into(), ..Device::default() };
        let id = draft.create(device).unwrap().0.meta.id;
        assert_eq!((of(&state).count, of(&draft).count), (0, 1));
        assert_ne!(of(&state).hash, of(&draft).hash);
        let mut later = draft.begin("2027-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(of(&later).hash, of(&draft).hash);
        later.update::<Device>(id, None, |device| device.name = "scanner".into()).unwrap();
        assert_ne!(of(&later).hash, of(&draft).hash);
        assert!(of(&later).revision > of(&draft).revision);
        let held = of(&later).hash;
        assert_eq!(offer(&later, SyncKind::Devices, &held).objects, None);
        assert!(offer(&later, SyncKind::Devices, "").objects.is_some());
    }
}
