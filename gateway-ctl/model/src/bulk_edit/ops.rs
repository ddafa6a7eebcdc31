//! Functions that each kind provides for a change of many objects.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value};

use super::diff::{FieldDiff, RowDiff, diff_row};
use super::names::Names;
use super::undo;
use crate::decode;
use crate::edit::EditError;
use crate::field_diff;
use crate::id::{Id, Revision};
use crate::problem::{Problems, Warning};
use crate::resource::{Keys, META_KEYS, Resource, strip, strip_read_only, to_revealed};
use crate::state::State;
use crate::table::KeyClash;

/// Writes an input into a draft under this id. Returns the warnings.
type Write = fn(&mut State, &State, Id, Value) -> Result<Vec<Warning>, EditError>;

/// Puts a row back as it was in an earlier state; see [`undo`].
type PutBack = fn(&mut State, &State, &State, Id, Option<&[String]>) -> Result<(), String>;

type ExportEach = fn(&State, bool, &mut dyn FnMut(Value) -> io::Result<()>) -> io::Result<()>;

/// The functions of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ops {
    pub identify: fn(&State, &Map<String, Value>) -> Identified,
    pub labels: fn(&State) -> Vec<(String, Id)>,
    pub ids: fn(&State) -> Vec<Id>,
    /// Returns the ids of the objects that a node owns; those of this gateway for `None`.
    pub owned: fn(&State, Option<Id>) -> Vec<Id>,
    /// Returns the owner of an object; `None` inside for this gateway.
    pub owner: fn(&State, Id) -> Option<Option<Id>>,
    pub adopt: fn(&mut State, Id),
    pub resolve: fn(&mut Map<String, Value>, &Names<'_>),
    pub mint: fn(&mut State) -> Id,
    pub detach: fn(&mut State, Id),
    pub reattach: fn(&mut State, &State, Id),
    pub write: Write,
    pub remove: fn(&mut State, &State, Id, bool) -> Result<(), EditError>,
    pub take_over: fn(&mut State, &State) -> Result<(), KeyClash>,
    pub diff: fn(&State, &State, Id) -> Option<RowDiff>,
    /// Returns the field differences of a row for the audit trail.
    pub audited: fn(&State, &State, Id) -> BTreeMap<String, FieldDiff>,
    pub dirty: fn(&State) -> Vec<Id>,
    pub export: fn(&State, bool) -> Vec<Value>,
    /// Passes each exported object to the visitor until it fails.
    pub export_each: ExportEach,
    /// Returns an object without its secrets.
    pub form: fn(&State, Id) -> Option<Value>,
    pub label: fn(&State, Id) -> Option<String>,
    pub revision: fn(&State, Id) -> Option<Revision>,
    pub put_back: PutBack,
    pub obstacle: fn(&State, &State, Id) -> Option<String>,
}

/// Stored object that an item refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identified {
    /// Objects that the item's unique keys refer to, with the field of each key.
    pub by_key: Vec<(String, Id)>,
    /// Label of the object, if the item has one.
    pub label: Option<String>,
    /// Unique keys and name of the item, stored or not, by which other items of a plan may refer to it.
    pub aliases: Vec<String>,
}

impl Ops {
    pub(crate) const fn of<R: Resource>() -> Ops {
        Ops {
            identify: identify::<R>,
            labels: |state| {
                let rows = R::table(state).iter().filter(|row| !row.label().is_empty());
                rows.map(|row| (row.label().to_owned(), row.meta().id)).collect()
            },
            ids: |state| R::table(state).iter().map(|row| row.meta().id).collect(),
            owned: owned::<R>,
            owner: |state, id| R::table(state).get(id).map(|row| row.meta().origin_node),
            adopt: State::adopt::<R>,
            resolve: R::resolve,
            mint: State::mint,
            detach: State::detach::<R>,
            reattach: State::reattach::<R>,
            write: State::write_detached::<R>,
            remove: State::drop_detached::<R>,
            take_over: State::take_over::<R>,
            diff: diff_row::<R>,
            audited: field_diff::row::<R>,
            dirty: |state| R::table(state).dirty().iter().copied().collect(),
            export_each: |state, secrets, visit| {
                R::table(state).iter().try_for_each(|row| visit(form(row, secrets)))
            },
            export: |state, secrets| R::table(state).iter().map(|row| form(row, secrets)).collect(),
            form: |state, id| R::table(state).get(id).map(|row| form(row.as_ref(), false)),
            label: |state, id| R::table(state).get(id).map(|row| row.label().to_owned()),
            revision: |state, id| R::table(state).get(id).map(|row| row.meta().revision),
            put_back: undo::put_back::<R>,
            obstacle: undo::undo_blocker::<R>,
        }
    }
}

fn owned<R: Resource>(state: &State, node: Option<Id>) -> Vec<Id> {
    R::table(state).iter().filter(|row| row.meta().origin_node == node).map(|row| row.meta().id).collect()
}

/// Decodes the item as far as possible. Problems are reported when it is written.
fn identify<R: Resource>(state: &State, item: &Map<String, Value>) -> Identified {
    let mut item = item.clone();
    strip_read_only::<R>(&mut item);
    let Some(decoded) = decode::decode::<R>(Value::Object(item), R::SECRETS, &mut Problems::new()) else {
        return Identified::default();
    };
    let mut row = decoded.value;
    let label = Some(row.label().to_owned()).filter(|label| R::LABEL_IS_NAME && !label.is_empty());
    row.prepare();
    let mut keys = Keys::default();
    row.keys(&mut keys);
    let mut found = Identified { label, ..Identified::default() };
    for (field, key) in keys.unique {
        if let Some(existing) = R::table(state).by_key(&key) {
            found.by_key.push((field, existing.meta().id));
        }
        found.aliases.push(key.to_string());
    }
    found.aliases.extend(row.alias().map(str::to_owned).filter(|alias| !alias.is_empty()));
    found
}

/// Returns a row for an export: its id and its set fields, secrets only on request.
pub(crate) fn form<R: Resource>(row: &R, secrets: bool) -> Value {
    let form = if secrets {
        to_revealed(row)
    } else {
        serde_json::to_value(row).expect("resources are structs with string keys")
    };
    let Value::Object(mut map) = form else { return form };
    let id = map.get("id").cloned();
    META_KEYS.iter().for_each(|key| drop(map.shift_remove(*key)));
    R::READ_ONLY.iter().for_each(|path| strip(&mut map, path));
    let mut whole: Map<String, Value> = id.map(|id| ("id".to_owned(), id)).into_iter().collect();
    whole.extend(map);
    Value::Object(whole)
}
