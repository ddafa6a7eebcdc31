//! Content of a snapshot: a compressed JSON document.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use gateway_model::registry::KINDS;
use gateway_model::settings::{Setting, keys};
use gateway_model::{Revision, State};
use jiff::Timestamp;
use redb::{ReadableTable, WriteTransaction};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::store::error::Error;
use crate::store::migrate::SCHEMA;
use crate::store::schema::{APPLIED, META, META_TEXT, Rows, SETTINGS, meta, rows};

/// Maximum length of the content, in bytes. No configuration is larger; a larger document is damaged.
const MAX_SNAPSHOT_BYTES: u64 = 1 << 30;

/// Rows, settings and applied policies, each in its stored form.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Content {
    schema: u64,
    collections: Map<String, Value>,
    settings: Map<String, Value>,
    applied_revision: u64,
    applied_at: Option<Timestamp>,
    applied: Vec<Value>,
}

/// Reports whether a setting is part of snapshots. Settings of this installation are not.
pub(super) fn is_kept(key: &str) -> bool {
    key != keys::NODE_ID && key != keys::SECRETS_PASSPHRASE && !key.starts_with("internal.")
}

/// Summarises the user-made objects: `12 devices, 2 tunnels, 3 routing policies`.
pub(super) fn summary(state: &State) -> String {
    let counts = KINDS.iter().filter(|kind| kind.exported && kind.made(state) > 0);
    let parts: Vec<String> = counts
        .map(|kind| {
            let count = kind.made(state);
            let name = if count == 1 { kind.noun } else { kind.collection };
            format!("{count} {}", name.replace('_', " "))
        })
        .collect();
    parts.join(", ")
}

impl Content {
    /// Reads the content from the tables.
    pub(super) fn read(txn: &WriteTransaction) -> Result<Content, Error> {
        let mut collections = Map::new();
        for kind in KINDS.iter().filter(|kind| kind.exported) {
            collections.insert(kind.collection.to_owned(), read_rows(txn, rows(kind.collection))?.into());
        }
        let mut settings = Map::new();
        let table = txn.open_table(SETTINGS).map_err(Error::at("take a snapshot"))?;
        for entry in table.iter().map_err(Error::at("take a snapshot"))? {
            let (key, json) = entry.map_err(Error::at("take a snapshot"))?;
            if is_kept(key.value()) {
                settings.insert(key.value().to_owned(), parse(json.value())?);
            }
        }
        let numbers = txn.open_table(META).map_err(Error::at("take a snapshot"))?;
        let revision = numbers.get(meta::APPLIED_REVISION).map_err(Error::at("take a snapshot"))?;
        let texts = txn.open_table(META_TEXT).map_err(Error::at("take a snapshot"))?;
        let at = texts.get(meta::APPLIED_AT).map_err(Error::at("take a snapshot"))?;
        Ok(Content {
            schema: SCHEMA,
            collections,
            settings,
            applied_revision: revision.map_or(0, |revision| revision.value()),
            applied_at: at.and_then(|at| at.value().parse().ok()),
            applied: read_rows(txn, APPLIED)?,
        })
    }

    pub(super) fn pack(&self) -> Result<Vec<u8>, Error> {
        let failed = |_| Error::Damaged { what: "a snapshot cannot be compressed".into() };
        let json = serde_json::to_vec(self).expect("text keys and values that were JSON");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&json).map_err(failed)?;
        encoder.finish().map_err(failed)
    }

    pub(super) fn unpack(packed: &[u8]) -> Result<Content, Error> {
        let mut json = Vec::new();
        GzDecoder::new(packed).take(MAX_SNAPSHOT_BYTES).read_to_end(&mut json).map_err(|_| damaged())?;
        serde_json::from_slice(&json).map_err(|_| damaged())
    }

    /// Builds a state from the rows. Kinds without rows are empty.
    pub(super) fn into_state(self) -> Result<State, Error> {
        if self.schema > SCHEMA {
            return Err(Error::NewerSchema { found: self.schema, known: SCHEMA });
        }
        let mut state = State::empty();
        for kind in KINDS {
            let list = self.collections.get(kind.collection).and_then(Value::as_array);
            for row in list.into_iter().flatten() {
                kind.load(&mut state, row.to_string().as_bytes())?;
            }
        }
        for (key, stored) in &self.settings {
            let setting: Setting = read_setting(stored)?;
            state.settings.load(key, setting);
        }
        for policy in &self.applied {
            state.applied.load(policy.to_string().as_bytes())?;
        }
        state.applied.revision = Revision(self.applied_revision);
        state.applied.at = self.applied_at;
        state.seed();
        Ok(state)
    }

    /// Calls `row` for all rows. Returns `true` if `row` reports a change.
    pub(super) fn for_each(&mut self, row: &mut impl FnMut(&str, &mut Value) -> bool) -> bool {
        let mut changed = false;
        for (collection, list) in &mut self.collections {
            list.as_array_mut().into_iter().flatten().for_each(|value| changed |= row(collection, value));
        }
        self.applied.iter_mut().for_each(|value| changed |= row("routing_policies", value));
        self.settings.values_mut().for_each(|value| changed |= row("setting", value));
        changed
    }
}

fn read_setting(stored: &Value) -> Result<Setting, Error> {
    Setting::read_stored(stored.to_string().as_bytes()).map_err(|_| damaged())
}

fn read_rows(txn: &WriteTransaction, definition: Rows<'_>) -> Result<Vec<Value>, Error> {
    let table = txn.open_table(definition).map_err(Error::at("take a snapshot"))?;
    let mut list = Vec::new();
    for entry in table.iter().map_err(Error::at("take a snapshot"))? {
        let (_, json) = entry.map_err(Error::at("take a snapshot"))?;
        list.push(parse(json.value())?);
    }
    Ok(list)
}

fn parse(json: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(json).map_err(|_| Error::Damaged { what: "a stored row is not JSON".into() })
}

fn damaged() -> Error {
    Error::Damaged { what: "the content of a snapshot cannot be read".into() }
}
