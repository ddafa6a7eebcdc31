//! All kinds, and the operations on all of them: lists, edits, references, rows of the store, schemas.

mod shown;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bulk_edit::{FieldDiff, Names, Ops};
use crate::decode::{self, Decoded};
use crate::edit::{Deleted, EditError, Written};
use crate::filter::Filter;
use crate::id::{Id, Revision};
use crate::problem::{Problems, Warning, code};
use crate::references::References;
use crate::resource::{self, Resource};
use crate::secrets::{self, Scope, SecretVisitor};
pub use crate::state::KINDS;
use crate::state::State;
use crate::table::Table;
pub use shown::{AddedFields, ShownText};

/// The kind with this noun or collection name; `-` counts as `_`.
pub fn kind(name: &str) -> Option<&'static Kind> {
    let name = name.replace('-', "_");
    KINDS.iter().find(|kind| kind.noun == name || kind.collection == name)
}

/// A row as the store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    pub id: Id,
    /// The stored JSON; `None` when the row was removed.
    pub json: Option<Vec<u8>>,
}

/// Change of a row by an edit, for the audit trail. Never has values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub noun: &'static str,
    pub id: Id,
    pub label: String,
    pub op: ChangeOp,
    /// Top-level fields that differ, for replaced rows.
    pub fields: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOp {
    Create,
    Replace,
    Delete,
}

impl ChangeOp {
    pub const fn as_str(self) -> &'static str {
        match self {
            ChangeOp::Create => "create",
            ChangeOp::Replace => "replace",
            ChangeOp::Delete => "delete",
        }
    }
}

/// Added fields of an object, and its revision.
type Added = (Map<String, Value>, Revision);

/// A kind of resource as a table of functions.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// `routing_policy`
    pub noun: &'static str,
    /// `routing_policies`
    pub collection: &'static str,
    pub secrets: &'static [&'static str],
    /// Secrets that a change of the destination drops, and those that go nowhere.
    pub sent_secrets: &'static [&'static str],
    pub local_secrets: &'static [&'static str],
    pub read_only: &'static [&'static str],
    pub required: &'static [&'static str],
    pub exported: bool,
    /// True if the store seals the secrets.
    pub sealed: bool,
    seed: fn(&mut State) -> bool,
    list: fn(&State, &Filter) -> Vec<Value>,
    get: fn(&State, Id) -> Option<(Value, Revision)>,
    ids: fn(&State, usize) -> Vec<Id>,
    added: fn(&State, Id) -> Option<Added>,
    write: fn(&State, Id, &Map<String, Value>, &mut ShownText),
    find: fn(&State, &str) -> Option<Id>,
    create: fn(&mut State, Value) -> Result<Written, EditError>,
    replace: fn(&mut State, Id, Option<Revision>, Value) -> Result<Written, EditError>,
    delete: fn(&mut State, Id, Option<Revision>, bool) -> Result<(), EditError>,
    references: fn(&State, Id) -> Option<References>,
    begin: fn(&mut State),
    changed_rows: fn(&State) -> Vec<StoredRow>,
    changed_count: fn(&State) -> usize,
    redacted_since: fn(&State, &State, &mut dyn FnMut(StoredRow)),
    changes: fn(&State, &State, usize) -> Vec<Change>,
    load: fn(&mut State, &[u8]) -> Result<(), LoadError>,
    resume: fn(&mut State, u32, Revision),
    marks: fn(&State) -> (u32, Revision, usize),
    made: fn(&State) -> usize,
    visit_secrets: fn(&mut State, Scope, &mut SecretVisitor<'_>),
    #[cfg(test)]
    pub(crate) schemas: tests::Schemas,
    pub(crate) ops: Ops,
}

/// A stored row that cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("a stored {noun} cannot be read")]
    Json {
        noun: &'static str,
        #[source]
        source: serde_json::Error,
    },
    #[error("two stored objects of type {noun} have the same {field}")]
    Clash { noun: &'static str, field: String },
}

impl Kind {
    pub const fn of<R: Resource>() -> Kind {
        Kind {
            noun: R::NOUN,
            collection: R::COLLECTION,
            secrets: R::SECRETS,
            sent_secrets: R::SENT_SECRETS,
            local_secrets: R::LOCAL_SECRETS,
            read_only: R::READ_ONLY,
            required: R::REQUIRED,
            exported: R::EXPORTED,
            seed: seed::<R>,
            sealed: R::SEALED,
            list: list::<R>,
            get: |state, id| {
                R::table(state)
                    .get(id)
                    .map(|row| (resource::to_shown(row.as_ref(), state), row.meta().revision))
            },
            ids: shown::ids::<R>,
            added: shown::added::<R>,
            write: shown::write::<R>,
            find: find::<R>,
            create: create::<R>,
            replace: replace::<R>,
            delete: |state, id, expected, force| state.remove::<R>(id, expected, force).map(drop),
            references: |state, id| R::table(state).get(id).map(|row| state.references_of(row.as_ref())),
            begin: |state| R::table_mut(state).begin(),
            changed_rows: |state| changed_rows(R::table(state)),
            changed_count: |state| R::table(state).dirty().len(),
            redacted_since: redacted_since::<R>,
            changes: changes::<R>,
            load: load::<R>,
            resume: |state, next_slot, revision| R::table_mut(state).resume(next_slot, revision),
            marks: |state| {
                let table = R::table(state);
                (table.next_slot(), table.revision(), table.len())
            },
            made: |state| R::table(state).iter().filter(|row| !row.meta().id.is_builtin()).count(),
            visit_secrets: |state, scope, visit| secrets::visit_table(R::table_mut(state), scope, visit),
            #[cfg(test)]
            schemas: tests::Schemas::of::<R>(),
            ops: Ops::of::<R>(),
        }
    }

    /// Returns the objects in their shown form, in order of creation.
    pub fn list(&self, state: &State, filter: &Filter) -> Vec<Value> {
        (self.list)(state, filter)
    }

    /// Returns an object in its shown form, with the revision for the ETag.
    pub fn get(&self, state: &State, id: &str) -> Result<(Value, Revision), EditError> {
        let found = id.parse().ok().and_then(|id| (self.get)(state, id));
        found.ok_or_else(|| self.not_found(id))
    }

    /// The id of the row with this id or, for kinds with unique names, this name.
    pub fn find(&self, state: &State, id_or_name: &str) -> Option<Id> {
        (self.find)(state, id_or_name)
    }

    pub fn create(&self, draft: &mut State, input: Value) -> Result<Written, EditError> {
        (self.create)(draft, input)
    }

    /// Replaces the whole object. Omitted secrets stay.
    pub fn replace(
        &self,
        draft: &mut State,
        id: &str,
        expected: Option<Revision>,
        input: Value,
    ) -> Result<Written, EditError> {
        let parsed = id.parse().map_err(|_| self.not_found(id))?;
        (self.replace)(draft, parsed, expected, input)
    }

    pub fn delete(
        &self,
        draft: &mut State,
        id: &str,
        expected: Option<Revision>,
        force: bool,
    ) -> Result<Deleted, EditError> {
        let parsed = id.parse().map_err(|_| self.not_found(id))?;
        (self.delete)(draft, parsed, expected, force)?;
        Ok(Deleted { id: id.to_owned(), deleted: true })
    }

    /// Returns the objects that refer to the object with this id or name.
    pub fn references(&self, state: &State, id_or_name: &str) -> Result<References, EditError> {
        let found = self.find(state, id_or_name).and_then(|id| (self.references)(state, id));
        found.ok_or_else(|| self.not_found(id_or_name))
    }

    /// Returns the revision of the last change to any object of the kind.
    pub fn revision(&self, state: &State) -> Revision {
        (self.marks)(state).1
    }

    pub fn len(&self, state: &State) -> usize {
        (self.marks)(state).2
    }

    /// Returns the number of objects that are not built in.
    pub fn made(&self, state: &State) -> usize {
        (self.made)(state)
    }

    /// Reports whether the draft wrote or removed a row of the kind.
    pub fn is_changed(&self, draft: &State) -> bool {
        self.changed_count(draft) > 0
    }

    pub fn changed_count(&self, draft: &State) -> usize {
        (self.changed_count)(draft)
    }

    /// For the store: the rows that the draft changed.
    pub fn changed_rows(&self, draft: &State) -> Vec<StoredRow> {
        (self.changed_rows)(draft)
    }

    /// Hands out the rows that differ from those of an earlier state, in their stored form. A secret that is set is replaced
    /// by a placeholder.
    pub fn redacted_rows_since(&self, before: &State, after: &State, take: &mut dyn FnMut(StoredRow)) {
        (self.redacted_since)(before, after, take);
    }

    /// Returns the changes of the draft against `before` for the audit trail, at most `limit` entries.
    pub fn changes(&self, before: &State, draft: &State, limit: usize) -> Vec<Change> {
        (self.changes)(before, draft, limit)
    }

    /// Returns the field differences of a changed row for the audit trail, with values of limited length.
    pub fn audited_fields(&self, before: &State, draft: &State, id: Id) -> BTreeMap<String, FieldDiff> {
        (self.ops.audited)(before, draft, id)
    }

    /// For the store: takes over a stored row.
    pub fn load(&self, state: &mut State, json: &[u8]) -> Result<(), LoadError> {
        (self.load)(state, json)
    }

    /// Returns the next slot and the revision of the collection, which the store keeps beside the rows.
    pub fn marks(&self, state: &State) -> (u32, Revision) {
        let (next_slot, revision, _) = (self.marks)(state);
        (next_slot, revision)
    }

    pub fn resume(&self, state: &mut State, next_slot: u32, revision: Revision) {
        (self.resume)(state, next_slot, revision);
    }

    pub(crate) fn seed(&self, state: &mut State) -> bool {
        (self.seed)(state)
    }

    pub(crate) fn visit_secrets(&self, state: &mut State, scope: Scope, visit: &mut SecretVisitor<'_>) {
        (self.visit_secrets)(state, scope, visit);
    }

    pub(crate) fn begin(&self, state: &mut State) {
        (self.begin)(state);
    }

    fn not_found(&self, id: &str) -> EditError {
        EditError::NotFound { resource_type: self.noun, id: id.to_owned() }
    }
}

/// Decodes a body of POST or PUT. On success there may be warnings; the value is not validated yet.
pub fn decode_input<R: Resource>(
    input: Value,
    before: Option<&R>,
    state: &State,
) -> Result<(R, Vec<Warning>), Problems> {
    let mut problems = Problems::new();
    let mut map = match input {
        Value::Object(map) => map,
        _ => {
            problems.add(code::TYPE, "", "Expected a JSON object.");
            return Err(problems);
        }
    };
    resource::strip_read_only::<R>(&mut map);
    let given: Vec<&str> =
        R::SENT_SECRETS.iter().copied().filter(|path| resource::has_path(&map, path)).collect();
    match before {
        Some(before) => R::carry_over(&mut map, before),
        None => R::complete(&mut map, state),
    }
    require::<R>(&mut map, &mut problems);
    let Some(mut decoded) = decode::decode::<R>(Value::Object(map), R::SECRETS, &mut problems) else {
        return Err(problems);
    };
    let mut dropped = Vec::new();
    if let Some(before) = before {
        resource::resume_secrets(&mut decoded.value, before);
        dropped = resource::drop_secrets_of_elsewhere(&mut decoded.value, before, &given);
    }
    if problems.is_empty() {
        let warnings =
            decoded.unknown.iter().map(|path| Warning::new(path.as_str(), "Unknown field, ignored."));
        return Ok((decoded.value, warnings.chain(dropped).collect()));
    }
    // Collects the other problems, so that all can be corrected at once.
    if let Some(before) = before {
        *decoded.value.meta_mut() = before.meta().clone();
    }
    decoded.value.prepare();
    let mut found = Problems::new();
    decoded.value.validate(state, &mut found);
    Decoded::merge(&decoded, &mut problems, found);
    Err(problems)
}

fn require<R: Resource>(map: &mut Map<String, Value>, problems: &mut Problems) {
    for key in R::REQUIRED {
        if map.get(*key).is_none_or(Value::is_null) {
            map.shift_remove(*key);
            problems.required(*key);
        }
    }
}

/// A name that a user gave to another object stays the user's: that built-in one is left out.
fn seed<R: Resource>(state: &mut State) -> bool {
    let missing = R::builtin(state.now()).into_iter().filter(|row| !R::table(state).contains(row.meta().id));
    let missing: Vec<R> = missing.collect();
    missing.into_iter().fold(false, |seeded, row| R::table_mut(state).put(row).is_ok() | seeded)
}

fn list<R: Resource>(state: &State, filter: &Filter) -> Vec<Value> {
    let shown = R::table(state).iter().map(|row| resource::to_shown(row, state));
    if filter.is_empty() { shown.collect() } else { shown.filter(|value| filter.matches(value)).collect() }
}

fn find<R: Resource>(state: &State, id_or_name: &str) -> Option<Id> {
    let table = R::table(state);
    if let Some(id) = id_or_name.parse().ok().filter(|id| table.contains(*id)) {
        return Some(id);
    }
    let name = R::spelling(id_or_name);
    let row = table.by_key(&name)?;
    row.is_named(&name).then(|| row.meta().id)
}

/// Puts ids where an input names other objects.
fn with_ids<R: Resource>(mut input: Value, state: &State) -> Value {
    if let Value::Object(map) = &mut input {
        R::resolve(map, &Names::new(state));
    }
    input
}

fn create<R: Resource>(state: &mut State, input: Value) -> Result<Written, EditError> {
    let input = with_ids::<R>(input, state);
    let (row, mut warnings) = decode_input::<R>(input, None, state).map_err(EditError::Invalid)?;
    let (row, more) = state.create(row)?;
    warnings.extend(more);
    Ok(written(&row, state, warnings))
}

fn replace<R: Resource>(
    state: &mut State,
    id: Id,
    expected: Option<Revision>,
    input: Value,
) -> Result<Written, EditError> {
    let before = state.expect::<R>(id, expected)?;
    let input = with_ids::<R>(input, state);
    let (row, mut warnings) =
        decode_input(input, Some(before.as_ref()), state).map_err(EditError::Invalid)?;
    let (row, more) = state.replace(id, expected, row)?;
    warnings.extend(more);
    Ok(written(&row, state, warnings))
}

fn written<R: Resource>(row: &Arc<R>, state: &State, warnings: Vec<Warning>) -> Written {
    let meta = row.meta();
    Written { id: meta.id, revision: meta.revision, value: resource::to_shown(row.as_ref(), state), warnings }
}

fn changed_rows<R: Resource>(table: &Table<R>) -> Vec<StoredRow> {
    table
        .dirty()
        .iter()
        .map(|id| StoredRow { id: *id, json: table.get(*id).map(|row| stored_json(row.as_ref())) })
        .collect()
}

fn redacted_since<R: Resource>(before: &State, after: &State, take: &mut dyn FnMut(StoredRow)) {
    let (old, new) = (R::table(before), R::table(after));
    let changed = new.not_in(old).filter_map(|id| new.get(id)).map(|row| {
        let redacted = serde_json::to_vec(&resource::to_redacted(row.as_ref()));
        let json = redacted.expect("resources are structs with string keys");
        StoredRow { id: row.meta().id, json: Some(json) }
    });
    let gone = old.not_in(new).filter(|id| !new.contains(*id)).map(|id| StoredRow { id, json: None });
    changed.chain(gone).for_each(take);
}

/// The bytes the store keeps for a row.
pub fn stored_json<R: Resource>(row: &R) -> Vec<u8> {
    let json = if R::SECRETS.is_empty() {
        serde_json::to_vec(row)
    } else {
        serde_json::to_vec(&resource::to_stored(row))
    };
    json.expect("resources are structs with string keys")
}

/// Reads a row from the bytes the store keeps.
pub fn read_stored<R: Resource>(json: &[u8]) -> Result<R, LoadError> {
    let value: Value =
        serde_json::from_slice(json).map_err(|source| LoadError::Json { noun: R::NOUN, source })?;
    resource::from_stored(&value).map_err(|source| LoadError::Json { noun: R::NOUN, source })
}

fn load<R: Resource>(state: &mut State, json: &[u8]) -> Result<(), LoadError> {
    let row = read_stored::<R>(json)?;
    R::table_mut(state).put(row).map_err(|clash| LoadError::Clash { noun: R::NOUN, field: clash.field })
}

fn changes<R: Resource>(before: &State, draft: &State, limit: usize) -> Vec<Change> {
    let (old, new) = (R::table(before), R::table(draft));
    let change = |id: &Id| {
        let (had, has) = (old.get(*id), new.get(*id));
        let (op, label) = match (had, has) {
            (None, None) => return None,
            (None, Some(has)) => (ChangeOp::Create, has.label()),
            (Some(_), Some(has)) => (ChangeOp::Replace, has.label()),
            (Some(had), None) => (ChangeOp::Delete, had.label()),
        };
        let fields = match (had, has) {
            (Some(had), Some(has)) => changed_fields(had.as_ref(), has.as_ref()),
            _ => Vec::new(),
        };
        Some(Change { noun: R::NOUN, id: *id, label: label.to_owned(), op, fields })
    };
    new.dirty().iter().filter_map(change).take(limit).collect()
}

/// Names of the fields that differ, secrets included, the metadata apart.
fn changed_fields<R: Resource>(had: &R, has: &R) -> Vec<String> {
    let (had, has) = (resource::to_stored(had), resource::to_stored(has));
    let (Value::Object(had), Value::Object(has)) = (had, has) else { return Vec::new() };
    let mut fields: Vec<String> = has
        .iter()
        .filter(|(key, value)| !resource::META_KEYS.contains(&key.as_str()) && had.get(*key) != Some(value))
        .map(|(key, _)| key.clone())
        .collect();
    fields.extend(had.keys().filter(|key| !has.contains_key(*key)).cloned());
    fields
}

/// Returns the schema of bodies of POST and PUT.
pub fn input_schema<R: Resource>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = R::json_schema(generator);
    if let Some(map) = schema.as_object_mut() {
        if let Some(Value::Object(properties)) = map.get_mut("properties") {
            for key in resource::META_KEYS {
                properties.shift_remove(*key);
            }
        }
        let required: Vec<Value> = R::REQUIRED.iter().map(|key| Value::from(*key)).collect();
        map.shift_remove("required");
        if !required.is_empty() {
            map.insert("required".into(), required.into());
        }
    }
    schema
}

/// Returns the schema of replies.
pub fn output_schema<R: Resource>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = R::json_schema(generator);
    let shown = R::shown_schema(generator);
    let more = shown.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object).cloned();
    if let (Some(map), Some(more)) = (schema.as_object_mut(), more)
        && let Some(Value::Object(properties)) = map.get_mut("properties")
    {
        // What is shown in another form than it is stored replaces it.
        properties.extend(more);
    }
    schema
}

#[cfg(test)]
mod tests;
