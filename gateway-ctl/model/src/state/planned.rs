//! Edits of many rows at once. Rows are detached from the draft together and then written again, restored or dropped,
//! so that exchanged names and priorities do not conflict with those that they replace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Applied, State};
use crate::edit::{Attempt, EditError};
use crate::id::Id;
use crate::problem::Warning;
use crate::registry::decode_input;
use crate::resource::{META_KEYS, Resource};
use crate::table::{KeyClash, Table};

impl State {
    /// An id for a row to be.
    pub(crate) fn mint(&mut self) -> Id {
        let id = Id::mint(self.now, self.minted);
        self.minted += 1;
        id
    }

    pub(crate) fn detach<R: Resource>(&mut self, id: Id) {
        R::table_mut(self).detach(id);
    }

    /// Restores a detached row as it was in `before`. If something else has taken its keys it stays out.
    pub(crate) fn reattach<R: Resource>(&mut self, before: &State, id: Id) {
        if let Some(row) = R::table(before).get(id).cloned() {
            let revision = R::table(self).revision();
            // A clash was reported where the other row was written.
            let _ = R::table_mut(self).reattach(row, revision);
        }
    }

    /// Writes the input over a detached row, or as a new row with this id. An unchanged row counts as not written.
    pub(crate) fn write_detached<R: Resource>(
        &mut self,
        before: &State,
        id: Id,
        input: Value,
    ) -> Result<Vec<Warning>, EditError> {
        let had = R::table(before).get(id).cloned();
        let (mut row, mut warnings) =
            decode_input::<R>(input, had.as_deref(), self).map_err(EditError::Invalid)?;
        match &had {
            Some(had) => *row.meta_mut() = had.meta().clone(),
            None => {
                let slot = R::table(self).free_slot();
                let slot =
                    slot.ok_or(EditError::LimitReached { resource_type: R::NOUN, limit: R::SLOTS - 1 })?;
                let (now, receiving) = (self.now, self.receiving);
                let meta = row.meta_mut();
                (meta.id, meta.created_at, meta.slot) = (id, now, slot);
                meta.origin_node = receiving;
            }
        }
        let (_, more) = match self.write(row, had) {
            Ok(written) => written,
            Err(error) => {
                self.detach::<R>(id);
                return Err(error);
            }
        };
        warnings.extend(more);
        Ok(warnings)
    }

    /// Deletes a detached row, unless something holds it.
    pub(crate) fn drop_detached<R: Resource>(
        &mut self,
        before: &State,
        id: Id,
        force: bool,
    ) -> Result<(), EditError> {
        let Some(row) = R::table(before).get(id).cloned() else { return Ok(()) };
        self.admit_origin(row.as_ref())?;
        row.admit_delete(self)?;
        let references = self.references_of(row.as_ref());
        if references.firm > 0 || (references.loose > 0 && !force) {
            let (attempt, references) = (Attempt::Delete, Box::new(references));
            return Err(EditError::InUse { resource_type: R::NOUN, id, attempt, references });
        }
        row.release(self)?;
        let (slot, revision) = (row.meta().slot, self.revision);
        R::table_mut(self).discard(id, slot, revision);
        Ok(())
    }

    /// Replaces the rows of the kind by those of another valid state. Rows keep their ids, slots and times of creation;
    /// changed rows get the revision of this draft.
    pub(crate) fn take_over<R: Resource>(&mut self, target: &State) -> Result<(), KeyClash> {
        let restored = |row: &Arc<R>| row.restored(self).map_or_else(|| row.clone(), Arc::new);
        let rows: Vec<Arc<R>> = R::table(target).arcs().map(restored).collect();
        let by_id: BTreeMap<Id, &Arc<R>> = rows.iter().map(|row| (row.meta().id, row)).collect();
        let table = R::table(self);
        let stays = |had: &Arc<R>| {
            let new = by_id.get(&had.meta().id);
            new.is_some_and(|new| {
                had.meta().slot == new.meta().slot && same_content(had.as_ref(), new.as_ref())
            })
        };
        let leaving: Vec<Arc<R>> = table.arcs().filter(|had| !stays(had)).cloned().collect();
        let (now, revision) = (self.now, self.revision);
        for had in &leaving {
            let (id, slot) = (had.meta().id, had.meta().slot);
            R::table_mut(self).detach(id);
            R::table_mut(self).discard(id, slot, revision);
        }
        for new in &rows {
            if R::table(self).contains(new.meta().id) {
                continue;
            }
            let mut row = new.as_ref().clone();
            (row.meta_mut().updated_at, row.meta_mut().revision) = (now, revision);
            R::table_mut(self).put(row)?;
        }
        Ok(())
    }

    /// Makes the settings whose keys are picked those of another state.
    pub(crate) fn take_over_settings(&mut self, target: &State, is_ours: impl Fn(&str) -> bool) {
        let here = self.settings.iter().map(|(key, _)| key);
        let keys: BTreeSet<&str> = here.chain(target.settings.iter().map(|(key, _)| key)).collect();
        let keys: Vec<String> = keys.into_iter().filter(|key| is_ours(key)).map(str::to_owned).collect();
        for key in keys {
            let Some(want) = target.settings.setting(&key) else {
                self.unset(&key);
                continue;
            };
            let mut want = want.as_ref().clone();
            if let Some(have) = self.settings.setting(&key) {
                (want.revision, want.updated_at) = (have.revision, have.updated_at);
                if want == **have {
                    continue;
                }
            }
            (want.revision, want.updated_at) = (self.revision, self.now);
            self.settings.put(&key, want);
        }
    }

    /// Applies all policies but these, whose applied forms stay. Changes nothing if no other policy is pending.
    pub(crate) fn freeze_except(&mut self, waiting: &[Id]) {
        let pending = self.pending_policy_ids();
        if self.applied.at.is_some() && pending.iter().all(|id| waiting.contains(id)) {
            return;
        }
        if waiting.is_empty() {
            self.freeze_applied();
            return;
        }
        let mut applied = self.frozen();
        for id in waiting {
            match self.applied.policies.get(*id) {
                Some(policy) => {
                    applied.put(policy.as_ref().clone(), self.applied.merged_from(*id).cloned());
                }
                None => applied.remove(*id, self.revision),
            }
        }
        self.set_applied(applied);
    }

    /// Makes one setting that of another state.
    pub(crate) fn restore_setting(&mut self, target: &State, key: &str) {
        self.take_over_settings(target, |other| other == key);
    }

    /// Makes the applied policies those of another state. Nothing changes if they are the same.
    pub(crate) fn take_over_applied(&mut self, target: &State) {
        let mut wanted = target.applied.policies.clone();
        for restored in target.applied.policies.iter().filter_map(|policy| policy.restored(self)) {
            wanted.put(restored).expect("policies have no unique keys");
        }
        if same_rows(&self.applied.policies, &wanted) {
            return;
        }
        let frozen = self.frozen();
        // Those that are like the stored ones are the stored ones, so that they do not count as edited since.
        let mut applied = Applied::default();
        for policy in wanted.arcs() {
            let id = policy.meta.id;
            let stored = frozen.policies.get(id);
            let stored = stored.filter(|stored| same_content(stored.as_ref(), policy.as_ref()));
            let merged_from =
                if stored.is_some() { &frozen } else { &target.applied }.merged_from(id).cloned();
            applied.put(stored.unwrap_or(policy).as_ref().clone(), merged_from);
        }
        self.set_applied(applied);
    }
}

fn same_rows<R: Resource>(one: &Table<R>, other: &Table<R>) -> bool {
    let same = |(one, other): (&R, &R)| one.meta().id == other.meta().id && same_content(one, other);
    one.len() == other.len() && one.iter().zip(other.iter()).all(same)
}

/// Reports whether two rows differ at most in their metadata.
pub(crate) fn same_content<R: Resource>(one: &R, other: &R) -> bool {
    let plain = |row: &R| content(serde_json::to_value(row).expect("resources are structs with string keys"));
    if plain(one) != plain(other) {
        return false;
    }
    let (mut one, mut other) = (one.clone(), other.clone());
    let (one, other) = (one.secrets(), other.secrets());
    // Comparing secrets may mean to open them, so it comes last.
    one.len() == other.len()
        && one.iter().zip(&other).all(|(one, other)| one.0 == other.0 && *one.1 == *other.1)
}

/// A form of a row without its metadata.
pub(crate) fn content(mut form: Value) -> Value {
    if let Value::Object(map) = &mut form {
        META_KEYS.iter().for_each(|key| drop(map.shift_remove(*key)));
    }
    form
}
