//! Properties of a resource of the API, and its JSON forms.
//!
//! - *input*: what users send; read-only keys are dropped, unknown ones reported.
//! - *shown*: what the API answers; plain `Serialize`, secrets as `has_<field>`, plus derived fields.
//! - *stored*: what the store keeps; the shown form with the secrets, sealed or in clear as they are.
//! - *revealed*: the same with the secrets in clear, for encrypted exports.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bulk_edit::Names;
use crate::decode;
use crate::destination::{Destination, drop_if_elsewhere};
use crate::edit::EditError;
use crate::id::{Id, Revision};
use crate::problem::{Problems, Warning};
use crate::references::{Loss, Ref};
use crate::secret::Secret;
use crate::state::State;
use crate::table::Table;

/// Metadata of every row. The store sets it; users only read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Meta {
    pub id: Id,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Revision of the store at the last change of this object.
    pub revision: Revision,
    /// Small stable number of this object among its kind; index of its counters in the kernel.
    pub slot: u32,
    /// Id of the node that the object came from by federation. It is read-only here. Null for an object of this gateway.
    pub origin_node: Option<Id>,
}

impl Meta {
    /// Of a built-in object: the same id in every installation. `kind` is the number of the kind in this scheme.
    pub fn builtin(kind: u16, slot: u32, now: Timestamp) -> Meta {
        let id = 0x67617465_7761_4000_8000_000000000000 | u128::from(kind) << 32 | u128::from(slot);
        Meta {
            id: Id::from_u128(id),
            created_at: now,
            updated_at: now,
            revision: Revision(0),
            slot,
            origin_node: None,
        }
    }
}

/// Keys of [`Meta`] in JSON.
pub const META_KEYS: &[&str] = &["id", "created_at", "updated_at", "revision", "slot", "origin_node"];

/// Table of a kind in the state. The list of kinds in [`crate::state`] implements it.
pub trait Stored: Sized {
    fn meta(&self) -> &Meta;
    fn meta_mut(&mut self) -> &mut Meta;
    fn table(state: &State) -> &Table<Self>;
    fn table_mut(state: &mut State) -> &mut Table<Self>;
}

/// A kind of object that is stored and served.
///
/// Declared with `#[serde(default)]` on the type and `#[serde(flatten, skip_deserializing)]` on the metadata.
pub trait Resource:
    Stored + Clone + Send + Sync + Serialize + DeserializeOwned + JsonSchema + 'static
{
    /// `routing_policy`: in audit entries and errors.
    const NOUN: &'static str;
    /// `routing_policies`: key of plans and exports, name of the store's table.
    const COLLECTION: &'static str;
    /// Numbers there are for rows of the kind: 1 up to this, exclusive.
    const SLOTS: u32 = crate::table::SLOTS;
    /// Paths of secrets: `private_key`, `peers[].preshared_key`.
    const SECRETS: &'static [&'static str] = &[];
    /// Those of [`Resource::SECRETS`] that are sent to [`Resource::destination`], directly or through what they encrypt or
    /// log in to. A change of it drops them.
    const SENT_SECRETS: &'static [&'static str] = &[];
    /// Those of [`Resource::SECRETS`] that no change of another field sends anywhere: hashes, keys of signatures. Each secret
    /// is in one of both lists.
    const LOCAL_SECRETS: &'static [&'static str] = &[];
    /// Paths that are shown and ignored in input, besides the metadata and `has_<secret>`.
    const READ_ONLY: &'static [&'static str] = &[];
    /// The store seals the secrets. Not where they are hashes: those reveal nothing, and accounts must work while the
    /// passphrase is missing.
    const SEALED: bool = true;
    /// Part of plans and plaintext exports. Accounts are not.
    const EXPORTED: bool = true;
    /// Keys that an input must have.
    const REQUIRED: &'static [&'static str] = &[];

    /// True if plans may refer to an object by its label. False where several objects may have the same label.
    const LABEL_IS_NAME: bool = true;

    /// The name for people.
    fn label(&self) -> &str;

    /// The objects of the kind that every installation has, with [`Meta::builtin`].
    fn builtin(_now: Timestamp) -> Vec<Self> {
        Vec::new()
    }

    /// Fills and normalises dependent fields. Runs before `validate`.
    fn prepare(&mut self) {}

    /// Reports every wrong field. `state` is the draft without this edit.
    fn validate(&self, state: &State, problems: &mut Problems);

    /// Refuses rows that are valid alone but not beside the others. `before` is the row to be replaced.
    fn admit(&self, _before: Option<&Self>, _state: &State) -> Result<(), EditError> {
        Ok(())
    }

    /// Takes its consequences for other rows, after the row was written. To change the row itself, put it again.
    fn apply_consequences(self, _state: &mut State) -> Result<(), EditError> {
        Ok(())
    }

    /// Reports whether the object may be deleted, without regard to references.
    fn admit_delete(&self, _state: &State) -> Result<(), EditError> {
        Ok(())
    }

    /// Returns the record that stays of a deleted row. `None` for most kinds.
    fn retired(&self, _state: &State) -> Option<Self> {
        None
    }

    /// Ends memberships of a deleted row.
    fn release(&self, _state: &mut State) -> Result<(), EditError> {
        Ok(())
    }

    /// Returns the row for a rollback to an earlier state if it differs. `current` is the state before the rollback:
    /// what has ended there stays ended.
    fn restored(&self, _current: &State) -> Option<Self> {
        None
    }

    /// References to other resources.
    fn refs(&self) -> Vec<Ref> {
        Vec::new()
    }

    /// Returns what becomes of its traffic when the target is deleted. `None` if it has no traffic, or none by the target.
    fn loss_of(&self, _noun: &str, _target: &str, _state: &State) -> Option<Loss> {
        None
    }

    /// Returns false for a row that is over: its references count no more.
    fn is_live(&self, _now: Timestamp) -> bool {
        true
    }

    /// Names by which others may refer to this row, in addition to its id.
    fn alias(&self) -> Option<&str> {
        None
    }

    /// Reports whether the object has this unique name in canonical form.
    fn is_named(&self, name: &str) -> bool {
        self.alias() == Some(name)
    }

    /// A name as the index has it, of any spelling of it.
    fn spelling(name: &str) -> String {
        name.to_owned()
    }

    /// Index entries.
    fn keys(&self, _keys: &mut Keys) {}

    /// The secrets, each with its JSON pointer, in the order of [`Resource::SECRETS`].
    fn secrets(&mut self) -> Vec<(String, &mut Secret)> {
        Vec::new()
    }

    /// The destination of [`Resource::SENT_SECRETS`].
    fn destination(&self) -> Destination {
        Destination::new()
    }

    /// Fills fields of the input for a new row that follow from others.
    fn complete(_input: &mut Map<String, Value>, _state: &State) {}

    /// Carries over fields of the replaced row: secrets that the input does not mention, and stored read-only fields.
    fn carry_over(_input: &mut Map<String, Value>, _before: &Self) {}

    /// Puts ids where an input names other objects, in fields that hold ids. Fields that hold names need nothing.
    fn resolve(_input: &mut Map<String, Value>, _names: &Names<'_>) {}

    /// Adds fields that are derived from other rows to the shown form, of which `shown` may have no more than the id.
    fn add_derived(&self, _state: &State, _shown: &mut Map<String, Value>) {}

    /// Schema of the fields that exist only when shown: live state, derived fields.
    fn shown_schema(_generator: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
}

/// Index entries of one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Field (for the error) and key: no two rows of the kind share one.
    pub(crate) unique: Vec<(String, Arc<str>)>,
    pub(crate) shared: BTreeSet<Arc<str>>,
}

impl Keys {
    pub(crate) fn of<R: Resource>(row: &R) -> Keys {
        let mut keys = Keys::default();
        row.keys(&mut keys);
        for reference in row.refs() {
            keys.shared(ref_key(reference.kind, &reference.target));
        }
        keys
    }

    pub fn unique(&mut self, field: impl Into<String>, key: impl Into<Arc<str>>) {
        self.unique.push((field.into(), key.into()));
    }

    pub fn shared(&mut self, key: impl Into<Arc<str>>) {
        self.shared.insert(key.into());
    }
}

/// Shared key under which the rows that refer to a target are found.
pub fn ref_key(kind: &str, target: &str) -> String {
    format!("ref:{kind}:{target}")
}

/// The row as the API shows it.
pub fn to_shown<R: Resource>(row: &R, state: &State) -> Value {
    let mut shown = plain(row);
    if let Value::Object(map) = &mut shown {
        row.add_derived(state, map);
    }
    shown
}

/// The row as the store keeps it: secrets as they are, sealed or in clear.
pub fn to_stored<R: Resource>(row: &R) -> Value {
    with_secrets(row, Secret::stored_text)
}

/// Returns the row with its secrets in clear, for encrypted documents. Opens every secret.
pub fn to_revealed<R: Resource>(row: &R) -> Value {
    with_secrets(row, Secret::expose)
}

/// Text that stands for a secret in a redacted row. It is a key of 32 bytes where one is expected.
const SECRET_PLACEHOLDER: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Returns the stored form of the row with a placeholder for each secret that is set.
pub(crate) fn to_redacted<R: Resource>(row: &R) -> Value {
    with_secrets(row, |_| SECRET_PLACEHOLDER)
}

fn with_secrets<R: Resource>(row: &R, text: fn(&Secret) -> &str) -> Value {
    let mut stored = plain(row);
    if R::SECRETS.is_empty() {
        return stored;
    }
    let mut row = row.clone();
    for (pointer, secret) in row.secrets() {
        let (parent, field) = pointer.rsplit_once('/').expect("a pointer begins with a slash");
        let Some(Value::Object(map)) = stored.pointer_mut(parent) else { continue };
        map.shift_remove(&format!("has_{field}"));
        if secret.is_set() {
            map.insert(field.to_owned(), Value::String(text(secret).to_owned()));
        }
    }
    stored
}

/// The row back from its stored form. Strict: unknown keys are ignored, anything else is an error.
pub fn from_stored<R: Resource>(stored: &Value) -> Result<R, serde_json::Error> {
    let meta: Meta = decode::from_value(stored)?;
    let mut row: R = decode::from_value(stored)?;
    *row.meta_mut() = meta;
    Ok(row)
}

pub(crate) fn plain<R: Resource>(row: &R) -> Value {
    serde_json::to_value(row).expect("resources are structs with string keys")
}

/// Restores the sealed form of secrets that an input kept of the replaced row.
pub(crate) fn resume_secrets<R: Resource>(row: &mut R, before: &R) {
    if R::SECRETS.is_empty() {
        return;
    }
    let mut before = before.clone();
    let kept: Vec<Secret> = before.secrets().into_iter().map(|(_, secret)| secret.clone()).collect();
    for (_, secret) in row.secrets() {
        kept.iter().any(|kept| secret.resume(kept));
    }
}

pub(crate) fn has_path(map: &Map<String, Value>, path: &str) -> bool {
    let mut steps = path.split('.');
    let first = steps.next().and_then(|step| map.get(step));
    first.and_then(|first| steps.try_fold(first, |value, step| value.get(step))).is_some()
}

/// Drops the secrets that an input kept of the replaced row, if it changes where they go.
pub(crate) fn drop_secrets_of_elsewhere<R: Resource>(
    row: &mut R,
    before: &R,
    given: &[&str],
) -> Vec<Warning> {
    let kept: Vec<&str> = R::SENT_SECRETS.iter().copied().filter(|path| !given.contains(path)).collect();
    if kept.is_empty() {
        return Vec::new();
    }
    let (old, new) = (before.destination(), row.destination());
    let secrets = row.secrets().into_iter();
    let paths = secrets.map(|(pointer, secret)| (pointer.trim_start_matches('/').replace('/', "."), secret));
    paths
        .filter(|(path, _)| kept.contains(&path.as_str()))
        .filter_map(|(path, secret)| drop_if_elsewhere(&path, secret, &old, &new))
        .collect()
}

/// Removes fields that users cannot set from an input, so that a shown object can be sent back.
pub(crate) fn strip_read_only<R: Resource>(input: &mut Map<String, Value>) {
    for key in META_KEYS {
        input.shift_remove(*key);
    }
    for path in R::READ_ONLY {
        strip(input, path);
    }
    for path in R::SECRETS {
        match path.rsplit_once('.') {
            Some((parent, field)) => strip(input, &format!("{parent}.has_{field}")),
            None => strip(input, &format!("has_{path}")),
        }
    }
}

pub(crate) fn strip(map: &mut Map<String, Value>, path: &str) {
    let Some((head, rest)) = path.split_once('.') else {
        map.shift_remove(path);
        return;
    };
    match (head.strip_suffix("[]"), rest) {
        (Some(list), rest) => {
            for element in map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Value::Object(element) = element {
                    strip(element, rest);
                }
            }
        }
        (None, rest) => {
            if let Some(Value::Object(inner)) = map.get_mut(head) {
                strip(inner, rest);
            }
        }
    }
}
