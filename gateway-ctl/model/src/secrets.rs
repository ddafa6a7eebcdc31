//! All secrets of the state, wherever they are: for the store, which seals them, and for the inventory.

use jiff::Timestamp;
use serde_json::Value;

use crate::resource::Resource;
use crate::secret::Secret;
use crate::table::Table;

/// Location of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace {
    /// `tunnel`, or `setting`.
    pub noun: &'static str,
    /// Id of the object, or key of the setting.
    pub id: String,
    /// Label of the object; for a setting its key.
    pub name: String,
    /// `peers[0].preshared_key`; empty for a setting.
    pub field: String,
    /// Time of the last change of the object or the setting.
    pub updated_at: Timestamp,
}

/// Secrets to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// Secrets of the objects and settings that the draft wrote.
    Changed,
}

pub type SecretVisitor<'a> = dyn FnMut(&SecretPlace, &mut Secret) + 'a;

/// Visits the secrets that are set, of one kind. Objects whose secrets were exchanged are written again as they are.
pub(crate) fn visit_table<R: Resource>(table: &mut Table<R>, scope: Scope, visit: &mut SecretVisitor<'_>) {
    if R::SECRETS.is_empty() {
        return;
    }
    let wanted = |row: &&R| scope == Scope::All || table.dirty().contains(&row.meta().id);
    let rows: Vec<R> = table.iter().filter(wanted).cloned().collect();
    for mut row in rows {
        let (id, updated_at) = (row.meta().id.to_string(), row.meta().updated_at);
        let name = row.label().to_owned();
        let mut exchanged = false;
        for (pointer, secret) in row.secrets() {
            if !secret.is_set() {
                continue;
            }
            let field = path_of(&pointer);
            let before = secret.clone();
            let location =
                SecretPlace { noun: R::NOUN, id: id.clone(), name: name.clone(), field, updated_at };
            visit(&location, secret);
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

/// Visits the secrets in the stored form of a row: of the kind with this collection, or of a `setting`.
pub fn visit_stored(collection: &str, row: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    if collection == "setting" {
        visit_path(row, crate::settings::SECRET_KEY, visit);
        return;
    }
    let kind = crate::registry::kind(collection).filter(|kind| kind.sealed);
    for path in kind.map(|kind| kind.secrets).unwrap_or_default() {
        visit_path(row, path, visit);
    }
}

fn visit_path(value: &mut Value, path: &str, visit: &mut dyn FnMut(&mut String)) {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, each) = head.strip_suffix("[]").map_or((head, false), |key| (key, true));
    let Some(found) = value.get_mut(key) else { return };
    match (found, each, rest) {
        (Value::Array(list), true, rest) => {
            list.iter_mut().for_each(|element| visit_path(element, rest, visit));
        }
        (Value::String(text), false, "") => visit(text),
        (found, false, rest) if !rest.is_empty() => visit_path(found, rest, visit),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_secrets_equal_those_of_problems() {
        assert_eq!(path_of("/private_key"), "private_key");
        assert_eq!(path_of("/peers/12/preshared_key"), "peers[12].preshared_key");
        assert_eq!(path_of("/a/b"), "a.b");
    }

    #[test]
    fn secrets_are_found_in_stored_rows() {
        let mut row = serde_json::json!({"name": "home", "private_key": "a", "password": "b",
            "peers": [{"preshared_key": "c"}, {}, {"preshared_key": "d", "public_key": "e"}]});
        let mut found = String::new();
        visit_stored("tunnels", &mut row, &mut |text| {
            found.push_str(text);
            *text = "x".into();
        });
        assert_eq!(found.chars().collect::<std::collections::BTreeSet<_>>(), "abcd".chars().collect());
        assert_eq!(row["peers"][2], serde_json::json!({"preshared_key": "x", "public_key": "e"}));
        let mut setting = serde_json::json!({"secret": "s", "revision": 1});
        visit_stored("setting", &mut setting, &mut |text| *text = "y".into());
        assert_eq!(setting["secret"], "y");
        visit_stored("nothing", &mut setting, &mut |_| panic!("there is no such kind"));
    }
}
