//! The mesh in an export: nodes, pre-auth keys and identities of the coordinator. Exports without secrets have none of it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::problem::{Problems, Warning, code};
use crate::secret::Secret;
use crate::settings::keys::{MESH_IDENTITY, MESH_RELAY, MESH_ROSTER};
use crate::state::State;

/// Nodes, pre-auth keys and identities of the coordinator of the mesh.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MeshExport {
    /// Nodes, and hashes of pre-auth keys.
    pub roster: Map<String, Value>,
    /// Secret key of the coordinator, in base64.
    pub identity: String,
    /// Secret key of its relay, in base64.
    pub relay: String,
}

/// The identities are secrets, so they are not printed.
impl fmt::Debug for MeshExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshExport").field("roster", &self.roster.len()).finish_non_exhaustive()
    }
}

impl MeshExport {
    /// Writes down the mesh of a state. `None` if it never had a coordinator.
    pub(super) fn of(state: &State) -> Option<MeshExport> {
        let secret = |key| state.settings.secret(key).expose().to_owned();
        let (identity, relay) = (secret(MESH_IDENTITY), secret(MESH_RELAY));
        if identity.is_empty() || relay.is_empty() {
            return None;
        }
        let roster = state.settings.get(MESH_ROSTER).and_then(Value::as_object).cloned().unwrap_or_default();
        Some(MeshExport { roster, identity, relay })
    }

    /// Takes the place of the mesh of a draft. Returns the warnings.
    pub(super) fn import(self, draft: &mut State) -> Result<Vec<Warning>, Problems> {
        let mut problems = Problems::new();
        for (field, key) in [("identity", &self.identity), ("relay", &self.relay)] {
            if !STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 32) {
                problems.add(code::FORMAT, format!("mesh.{field}"), "Expected 32 bytes in base64.");
            }
        }
        for (key, value) in &self.roster {
            if matches!(key.as_str(), "nodes" | "keys") && !value.is_object() {
                problems.add(code::TYPE, format!("mesh.roster.{key}"), "Expected a JSON object.");
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut warnings = Vec::new();
        let roster = (!self.roster.is_empty()).then(|| Value::Object(self.roster));
        let had = draft.settings.get(MESH_ROSTER).cloned();
        if had.is_some() && had != roster {
            let message = "The nodes and pre-auth keys of the mesh are those of the export: nodes that were removed since \
                           have access again, and later ones have none.";
            warnings.push(Warning::new("mesh.roster", message));
        }
        match roster {
            Some(roster) => draft.set(MESH_ROSTER, roster),
            None => _ = draft.unset(MESH_ROSTER),
        }
        for (key, text) in [(MESH_IDENTITY, self.identity), (MESH_RELAY, self.relay)] {
            if draft.settings.secret(key).expose() != text {
                draft.set_secret(key, Secret::new(text));
            }
        }
        Ok(warnings)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Document;
    use super::*;
    use crate::bulk_edit::Mode;
    use crate::settings::Bootstrap;

    fn draft() -> State {
        State::default().begin("2026-11-30T12:00:00Z".parse().unwrap())
    }

    fn with_mesh(node: &str) -> State {
        let mut state = draft();
        state.set(MESH_ROSTER, json!({"last_id": 1, "nodes": {"1": {"name": node}}, "keys": {}}));
        state.set_secret(MESH_IDENTITY, Secret::new(STANDARD.encode([1; 32])));
        state.set_secret(MESH_RELAY, Secret::new(STANDARD.encode([2; 32])));
        state
    }

    fn export(state: &State, secrets: bool) -> Document {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let file = Bootstrap::default();
        Document::from_bytes(&Document::of(state, &file, secrets, "1", "gw", now).to_bytes()).unwrap()
    }

    #[test]
    fn the_mesh_is_in_exports_with_secrets_alone_and_comes_back() {
        let state = with_mesh("phone");
        let plain = export(&state, false);
        assert!(plain.mesh.is_none() && !String::from_utf8(plain.to_bytes()).unwrap().contains("phone"));
        let document = export(&state, true);
        assert!(!format!("{:?}", document.mesh).contains(&STANDARD.encode([1; 32])));
        let mut restored = draft();
        let outcome = document.clone().import(&mut restored, &Bootstrap::default(), Mode::Replace).unwrap();
        assert!(outcome.warnings.iter().all(|warning| !warning.path.starts_with("mesh")), "{outcome:?}");
        for key in [MESH_IDENTITY, MESH_RELAY] {
            assert_eq!(restored.settings.secret(key).expose(), state.settings.secret(key).expose());
        }
        assert_eq!(restored.settings.get(MESH_ROSTER), state.settings.get(MESH_ROSTER));
        // An export without a mesh leaves the one that is here.
        plain.import(&mut restored, &Bootstrap::default(), Mode::Replace).unwrap();
        assert_eq!(restored.settings.get(MESH_ROSTER), state.settings.get(MESH_ROSTER));
        let mut other = with_mesh("laptop");
        let outcome = document.import(&mut other, &Bootstrap::default(), Mode::Replace).unwrap();
        assert!(outcome.warnings.iter().any(|warning| warning.path == "mesh.roster"), "{outcome:?}");
        assert_eq!(other.settings.get(MESH_ROSTER), state.settings.get(MESH_ROSTER));
    }

    #[test]
    fn a_damaged_mesh_is_refused_by_its_fields() {
        let mut document = export(&with_mesh("phone"), true);
        let mesh = document.mesh.as_mut().unwrap();
        mesh.identity = "AAAA".to_owned();
        mesh.roster.insert("nodes".to_owned(), json!([]));
        let problems = document.import(&mut draft(), &Bootstrap::default(), Mode::Replace).unwrap_err();
        let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["mesh.identity", "mesh.roster.nodes"]);
    }
}
