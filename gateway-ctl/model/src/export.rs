//! Export of the configuration as a document, and its import.
//!
//! Accounts are not in it, nor keys that only the configuration file sets, which belong to the machine.

mod mesh;
pub mod read;
mod settings;

use std::io::{self, Write};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bulk_edit::{self, Mode, Order, Outcome, PendingPolicy};
use crate::decode;
use crate::field_diff;
use crate::kinds::Exception;
use crate::problem::{Problems, Warning, code};
use crate::resource::Resource;
use crate::settings::Bootstrap;
use crate::settings::group::GROUPS;
use crate::state::State;
pub use mesh::MeshExport;
pub use settings::{NOT_EXPORTED, PQ_CRYPTO_MODES};

/// The name of the form of the document, before its number.
const FORM: &str = "gateway-config/";
/// The newest form this version reads, and the one it writes.
const NUMBER: u32 = 1;

/// An export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Document {
    /// `gateway-config/1`
    pub schema: String,
    /// Version of the daemon that wrote the export.
    pub version: String,
    pub created_at: Option<Timestamp>,
    /// The gateway that wrote it.
    pub node: String,
    /// Revision of the exported store.
    pub revision: u64,
    /// Secrets are in it, in clear.
    pub secrets: bool,
    /// Collection to list of objects.
    pub resources: Map<String, Value>,
    /// Policies that differ from the form in which they steer traffic.
    pub pending: Vec<PendingPolicy>,
    /// Settings that were set at run time, by key.
    pub settings: Map<String, Value>,
    /// Values of the gateway's configuration file for keys that were not set at run time. An import does not set them; it
    /// warns of those that differ.
    pub file: Map<String, Value>,
    /// Nodes, pre-auth keys and identities of the coordinator of the mesh. Only in exports with secrets; an import without
    /// leaves those that are here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshExport>,
    /// The document names every setting, so that an import in place of the configuration takes others back.
    pub complete: bool,
    /// The document itself, where it comes in the envelope of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Document>>,
}

impl Document {
    /// Writes down a state. `file` is the configuration file of the gateway.
    pub fn of(
        state: &State,
        file: &Bootstrap,
        secrets: bool,
        version: &str,
        node: &str,
        now: Timestamp,
    ) -> Document {
        let document = Document::without_objects(state, file, secrets, version, node, now);
        Document { resources: bulk_edit::export(state, secrets), ..document }
    }

    /// Writes the document of a state object by object, so that it is never in memory as a whole.
    pub fn write(
        state: &State,
        file: &Bootstrap,
        secrets: bool,
        version: &str,
        node: &str,
        now: Timestamp,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let head = Document::without_objects(state, file, secrets, version, node, now);
        let Value::Object(head) = serde_json::to_value(&head)? else {
            return Err(io::Error::other("a document is an object"));
        };
        for (index, (key, value)) in head.iter().enumerate() {
            out.write_all(if index == 0 { b"{" } else { b"," })?;
            serde_json::to_writer(&mut *out, key)?;
            out.write_all(b":")?;
            if key == "resources" {
                bulk_edit::write_export(state, secrets, out)?;
            } else {
                serde_json::to_writer(&mut *out, value)?;
            }
        }
        out.write_all(b"}")
    }

    fn without_objects(
        state: &State,
        file: &Bootstrap,
        secrets: bool,
        version: &str,
        node: &str,
        now: Timestamp,
    ) -> Document {
        Document {
            schema: format!("{FORM}{NUMBER}"),
            version: version.to_owned(),
            created_at: Some(now),
            node: node.to_owned(),
            revision: state.revision.0,
            secrets,
            resources: Map::new(),
            pending: PendingPolicy::all(state, secrets),
            settings: settings::set_at_run_time(state, secrets),
            file: settings::of_file(state, file),
            mesh: if secrets { MeshExport::of(state) } else { None },
            complete: true,
            data: None,
        }
    }

    /// Decodes a document, with the warnings about its fields. The objects are moved, not copied.
    pub fn decode(value: Value) -> Result<(Document, Vec<Warning>), Problems> {
        let mut value = value;
        if value.get("schema").is_none()
            && let Some(data @ Value::Object(_)) = value.get_mut("data")
        {
            value = data.take();
        }
        let resources = match value.get_mut("resources") {
            Some(Value::Object(resources)) => std::mem::take(resources),
            _ => Map::new(),
        };
        let mut problems = Problems::new();
        let Some(decoded) = decode::decode::<Document>(value, &[], &mut problems) else {
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let unknown = decoded.unknown.iter();
        let warnings = unknown.map(|path| Warning::new(path.as_str(), "Unknown field, ignored.")).collect();
        Ok((Document { resources, ..decoded.value }.accept()?, warnings))
    }

    /// Parses the output of [`Document::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Document, Problems> {
        let read: Result<Document, _> = serde_json::from_slice(bytes);
        let document = read.map_err(|error| {
            let mut problems = Problems::new();
            problems.add(code::FORMAT, "", format!("This is no export of a gateway: {error}."));
            problems
        })?;
        document.accept()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a struct with string keys")
    }

    /// The document, if it is one and of a form that this version knows.
    pub fn accept(mut self) -> Result<Document, Problems> {
        if let Some(inner) = self.data.take() {
            self = *inner;
        }
        let mut problems = Problems::new();
        match self.schema.strip_prefix(FORM).map(str::parse::<u32>) {
            Some(Ok(1..=NUMBER)) => return Ok(self),
            Some(Ok(newer)) if newer > NUMBER => {
                let message = format!(
                    "This export has the form {FORM}{newer} and was written by a newer version ({}); this one reads up to {FORM}{NUMBER}.",
                    self.version
                );
                problems.add(code::NOT_SUPPORTED, "schema", message);
            }
            _ if self.schema.is_empty() => problems.required("schema"),
            _ => {
                let message = format!(
                    "This is no export of a gateway: expected {FORM}{NUMBER}, got {:?}.",
                    self.schema
                );
                problems.add(code::FORMAT, "schema", message);
            }
        }
        Err(problems)
    }

    /// Takes the objects out, as the plan that imports them.
    fn take_order(&mut self, mode: Mode) -> Order {
        Order {
            mode,
            resources: std::mem::take(&mut self.resources),
            force: true,
            redacted: !self.secrets,
            freeze: true,
            pending: std::mem::take(&mut self.pending),
            origin: None,
        }
    }

    /// Imports objects and settings, and applies the policies that were not pending. No exception begins by it. `file` is
    /// the configuration file of this gateway.
    pub fn import(mut self, draft: &mut State, file: &Bootstrap, mode: Mode) -> Result<Outcome, Problems> {
        let before = draft.clone();
        let mut order = self.take_order(mode);
        let left_out = leave_out_exceptions(&mut order, draft);
        if self.complete && mode == Mode::Replace {
            // The objects are checked as on a new gateway: the settings here go, and those of the document come after
            // them, because they may name objects.
            GROUPS.iter().for_each(|group| _ = draft.unset(group.key));
        }
        let changed = bulk_edit::change(draft, &order);
        draft.settings = before.settings.clone();
        let mut outcome = changed?;
        outcome.warnings.extend(left_out);
        outcome.warnings.extend(settings::import(&self, draft, file, mode)?);
        if let Some(mesh) = self.mesh.take() {
            outcome.warnings.extend(mesh.import(draft)?);
        }
        outcome.settings = field_diff::settings(&before, draft);
        Ok(outcome)
    }
}

/// Leaves out the exceptions that are not here: taken in, they would begin again with all their time.
fn leave_out_exceptions(order: &mut Order, draft: &State) -> Vec<Warning> {
    let Some(Value::Array(list)) = order.resources.get_mut(Exception::COLLECTION) else { return Vec::new() };
    let is_here = |item: &Value| {
        let id = item.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
        id.is_some_and(|id| draft.exceptions.contains(id))
    };
    let mut warnings = Vec::new();
    for (index, _) in list.iter().enumerate().filter(|(_, item)| item.is_object() && !is_here(item)) {
        let path = format!("resources.{}[{index}]", Exception::COLLECTION);
        warnings
            .push(Warning::new(path, "Left out: an import starts no exception. Make a new one if needed."));
    }
    list.retain(|item| !item.is_object() || is_here(item));
    warnings
}

fn join(path: &str, field: &str) -> String {
    if field.is_empty() { path.to_owned() } else { format!("{path}.{field}") }
}

#[cfg(test)]
mod tests;
