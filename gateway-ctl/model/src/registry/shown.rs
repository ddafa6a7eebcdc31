//! Shown objects as JSON text. The fields of a row are serialised at once; only what other rows and observation add to
//! them becomes a value first.

use std::cell::RefCell;
use std::collections::BTreeMap;

use memchr::memmem::Finder;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Kind;
use crate::id::{Id, Revision};
use crate::resource::{Resource, plain};
use crate::state::State;

const ID: &str = "id";

/// Fields of shown objects in addition to those of their rows.
#[derive(Debug, Default)]
pub struct AddedFields {
    ids: Vec<Id>,
    /// An object for each row, which begins with the `id` of the row. Observation adds to these.
    pub objects: Vec<Value>,
}

/// Writer of shown objects, separated by commas.
#[derive(Debug, Default)]
pub struct ShownText {
    pub text: Vec<u8>,
    has_objects: bool,
}

impl Kind {
    /// Returns the ids of at most `limit` objects, in order of creation.
    pub fn ids(&self, state: &State, limit: usize) -> Vec<Id> {
        (self.ids)(state, limit)
    }

    /// Returns the added fields of an object, and its revision for the ETag. `None` if it does not exist.
    pub fn added_of(&self, state: &State, id: Id) -> Option<(AddedFields, Revision)> {
        let (added, revision) = (self.added)(state, id)?;
        Some((AddedFields { ids: vec![id], objects: vec![Value::Object(added)] }, revision))
    }

    /// Returns the added fields of these objects, without those that do not exist.
    pub fn added(&self, state: &State, ids: &[Id]) -> AddedFields {
        let mut found = AddedFields::default();
        for id in ids {
            if let Some((added, _)) = (self.added)(state, *id) {
                found.ids.push(*id);
                found.objects.push(Value::Object(added));
            }
        }
        found
    }
}

impl ShownText {
    /// Creates a writer that appends to a text.
    pub fn new(text: Vec<u8>) -> ShownText {
        ShownText { text, ..ShownText::default() }
    }

    /// Appends shown objects. `added` is of the same state.
    pub fn append(&mut self, kind: &Kind, state: &State, added: &AddedFields) {
        for (id, added) in added.ids.iter().zip(&added.objects) {
            let Value::Object(added) = added else { continue };
            if std::mem::replace(&mut self.has_objects, true) {
                self.text.push(b',');
            }
            (kind.write)(state, *id, added, self);
        }
    }
}

/// Searchers for keys in JSON text, by the order of the keys.
#[derive(Debug, Default)]
struct KeyFinders(Vec<(String, Finder<'static>)>);

thread_local! {
    /// Searchers for the keys that were added to the objects of a collection before. To make them takes longer than to
    /// use them for one object.
    static FINDERS: RefCell<BTreeMap<&'static str, KeyFinders>> = const { RefCell::new(BTreeMap::new()) };
}

impl KeyFinders {
    /// Reports whether a text contains a key, at any depth.
    fn find(&mut self, index: usize, key: &str, text: &[u8]) -> bool {
        if self.0.get(index).is_none_or(|(known, _)| known != key) {
            self.0.truncate(index);
            self.0.push((key.to_owned(), Finder::new(format!("\"{key}\":").as_bytes()).into_owned()));
        }
        self.0[index].1.find(text).is_some()
    }
}

pub(super) fn ids<R: Resource>(state: &State, limit: usize) -> Vec<Id> {
    R::table(state).iter().take(limit).map(|row| row.meta().id).collect()
}

pub(super) fn added<R: Resource>(state: &State, id: Id) -> Option<(Map<String, Value>, Revision)> {
    let row = R::table(state).get(id)?;
    let mut added = Map::new();
    added.insert(ID.to_owned(), id.to_string().into());
    row.add_derived(state, &mut added);
    Some((added, row.meta().revision))
}

pub(super) fn write<R: Resource>(state: &State, id: Id, added: &Map<String, Value>, shown: &mut ShownText) {
    let Some(row) = R::table(state).get(id) else { return };
    let text = &mut shown.text;
    let begin = text.len();
    append(text, row.as_ref());
    let shows_id = added.get(ID).and_then(Value::as_str).is_some_and(|shown| id.is_written_as(shown));
    let replaces = FINDERS.with_borrow_mut(|finders| {
        let finders = finders.entry(R::COLLECTION).or_default();
        let mut keys = added.keys().filter(|key| *key != ID).enumerate();
        keys.any(|(index, key)| finders.find(index, key, &text[begin..]))
    });
    if replaces || !shows_id {
        // A field of the row is replaced, or one of its values has such a field.
        text.truncate(begin);
        let mut whole = plain(row.as_ref());
        if let Value::Object(whole) = &mut whole {
            whole.extend(added.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        append(text, &whole);
        return;
    }
    // The brace that ends the fields of the row.
    text.pop();
    for (key, value) in added.iter().filter(|(key, _)| *key != ID) {
        text.push(b',');
        append(text, key);
        text.push(b':');
        append(text, value);
    }
    text.push(b'}');
}

fn append(text: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(text, value).expect("resources are structs with string keys");
}

#[cfg(test)]
mod tests;
