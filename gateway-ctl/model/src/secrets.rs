//! All secrets of the state, wherever they are: for the store, which seals them, and for the inventory.

use jiff::Timestamp;

use crate::resource::Resource;
use crate::secret::Secret;
use crate::table::Table;

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace {
    /// `tunnel`, or `setting`.
    pub noun: &'static str,
    /// Id of the object, or key of the setting.
    pub id: String,
    /// `peers[0].preshared_key`; empty for a setting.
    pub field: String,
    /// When the object or the setting was last changed.
    pub updated_at: Timestamp,
}

/// Which secrets to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// Of the objects and settings that the draft wrote.
    Changed,
}

pub type SecretVisitor<'a> = dyn FnMut(&SecretPlace, &mut Secret) + 'a;

/// Visits the secrets that are set, of one kind. Objects whose secrets were exchanged are written anew as they are.
pub(crate) fn visit_table<R: Resource>(table: &mut Table<R>, scope: Scope, visit: &mut SecretVisitor<'_>) {
    if R::SECRETS.is_empty() {
        return;
    }
    let wanted = |row: &&R| scope == Scope::All || table.dirty().contains(&row.meta().id);
    let rows: Vec<R> = table.iter().filter(wanted).cloned().collect();
    for mut row in rows {
        let (id, updated_at) = (row.meta().id.to_string(), row.meta().updated_at);
        let mut exchanged = false;
        for (pointer, secret) in row.secrets() {
            if !secret.is_set() {
                continue;
            }
            let field = path_of(&pointer);
            let before = secret.clone();
            visit(&SecretPlace { noun: R::NOUN, id: id.clone(), field, updated_at }, secret);
            exchanged |= !secret.is_same(&before);
        }
        if exchanged {
            // Keys do not come from secrets, so a row cannot clash with another by this.
            let put = table.put(row);
            debug_assert!(put.is_ok());
        }
    }
}

/// `/peers/0/preshared_key` as `peers[0].preshared_key`.
fn path_of(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{step}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(step);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_as_in_problems() {
        assert_eq!(path_of("/private_key"), "private_key");
        assert_eq!(path_of("/peers/12/preshared_key"), "peers[12].preshared_key");
        assert_eq!(path_of("/a/b"), "a.b");
    }
}
