//! Lookup of objects by id or name, checks of references, and protection of names in use.

use std::sync::Arc;

use crate::edit::{Attempt, EditError};
use crate::kinds::Device;
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::Resource;
use crate::state::State;

/// Maximum number of names in the error about an unknown one.
const LISTED: usize = 50;

impl State {
    /// The object with this id or, for kinds with unique names, this name.
    pub fn find<R: Resource>(&self, id_or_name: &str) -> Option<&Arc<R>> {
        let table = R::table(self);
        if let Some(row) = id_or_name.parse().ok().and_then(|id| table.get(id)) {
            return Some(row);
        }
        table.by_key(id_or_name).filter(|row| row.alias() == Some(id_or_name))
    }

    /// Returns the device with this id or, if only one device has it, this name. The error is human-readable.
    pub fn find_device(&self, id_or_name: &str) -> Result<&Device, &'static str> {
        if let Some(device) = self.find(id_or_name) {
            return Ok(device);
        }
        let mut named = self.devices.iter().filter(|device| device.name == id_or_name);
        match (named.next(), named.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err("No device has this id or name."),
            (Some(_), Some(_)) => Err("Several devices have this name: give the id."),
        }
    }

    /// The object that a field refers to.
    pub fn referred<R: Resource>(&self, field: &Option<String>) -> Option<&Arc<R>> {
        self.find(field.as_deref()?)
    }
}

/// Reports a field that refers to nothing.
pub(crate) fn check_reference<R: Resource>(
    path: &str,
    field: &Option<String>,
    state: &State,
    problems: &mut Problems,
) {
    let Some(target) = field else { return };
    if state.find::<R>(target).is_some() {
        return;
    }
    let what = R::NOUN.replace('_', " ");
    let names = R::table(state).iter().filter_map(|row| row.alias().map(str::to_owned)).take(LISTED);
    problems.add(code::UNKNOWN_REFERENCE, path, format!("There is no {what} {target:?}.")).allowed =
        Some(names.collect());
}

/// The reference of an optional field.
pub(crate) fn reference<R: Resource>(path: &str, field: &Option<String>, hold: Hold) -> Option<Ref> {
    field.as_ref().map(|target| Ref::new(R::NOUN, target, path, hold))
}

/// Refuses a new name for a built-in object, or for one that others refer to by the old name.
pub(crate) fn keep_name<R: Resource>(
    row: &R,
    before: Option<&R>,
    builtin: bool,
    state: &State,
) -> Result<(), EditError> {
    let Some((before, name)) = before.and_then(|before| Some((before, before.alias()?))) else {
        return Ok(());
    };
    if row.alias() == Some(name) {
        return Ok(());
    }
    let id = before.meta().id;
    if builtin {
        let message = format!("The built-in {} {name} cannot be renamed.", R::NOUN.replace('_', " "));
        return Err(EditError::Protected { resource_type: R::NOUN, id, message });
    }
    if state.is_referred_as::<R>(name) {
        let references = Box::new(state.references_of(before));
        return Err(EditError::InUse { resource_type: R::NOUN, id, attempt: Attempt::Rename, references });
    }
    Ok(())
}

/// Refuses to delete a built-in object.
pub(crate) fn keep_builtin<R: Resource>(row: &R, builtin: bool) -> Result<(), EditError> {
    if !builtin {
        return Ok(());
    }
    let message = format!("The built-in {} {} cannot be deleted.", R::NOUN.replace('_', " "), row.label());
    Err(EditError::Protected { resource_type: R::NOUN, id: row.meta().id, message })
}
