//! Managed users: people who sign in. The password is here as its hash only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::edit::EditError;
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::role::Role;
use crate::secret::Secret;
use crate::state::State;

/// Roles that people can have; `diagnostics` is for keys.
pub const ROLES: [Role; 3] = [Role::Admin, Role::Operator, Role::Viewer];

/// A user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct User {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Letters, digits, `.`, `_`, `-` and `@`; upper and lower case are the same user.
    pub username: String,
    /// admin, operator or viewer
    pub role: Role,
    /// A disabled user cannot sign in, and its sessions are over.
    pub enabled: bool,
    /// Argon2id, as a PHC string. Without one, sign-in as this user fails.
    #[serde(rename(serialize = "has_password_hash", deserialize = "password_hash"))]
    pub password_hash: Secret,
    /// Sessions of an earlier number are over.
    pub session_epoch: u32,
}

impl Default for User {
    fn default() -> User {
        User {
            meta: Meta::default(),
            username: String::new(),
            role: Role::Viewer,
            enabled: true,
            password_hash: Secret::default(),
            session_epoch: 0,
        }
    }
}

impl User {
    /// Reports whether this user can administer the gateway.
    pub fn is_acting_admin(&self) -> bool {
        self.role == Role::Admin && self.enabled && self.password_hash.is_set()
    }
}

impl Resource for User {
    const NOUN: &'static str = "user";
    const COLLECTION: &'static str = "users";
    const SECRETS: &'static [&'static str] = &["password_hash"];
    const LOCAL_SECRETS: &'static [&'static str] = Self::SECRETS;
    const READ_ONLY: &'static [&'static str] = &["session_epoch"];
    const REQUIRED: &'static [&'static str] = &["username", "role"];
    const SEALED: bool = false;
    const EXPORTED: bool = false;

    fn label(&self) -> &str {
        &self.username
    }

    fn validate(&self, _state: &State, problems: &mut Problems) {
        check_username("username", &self.username, problems);
        if !ROLES.contains(&self.role) {
            let message = "A user is admin, operator or viewer; diagnostics is for API keys.";
            problems.add(code::ENUM, "role", message).allowed =
                Some(ROLES.iter().map(|role| role.to_string()).collect());
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        match before {
            Some(before) if before.is_acting_admin() && !self.is_acting_admin() => before.admit_delete(state),
            _ => Ok(()),
        }
    }

    /// At least one user must be able to administer the gateway.
    fn admit_delete(&self, state: &State) -> Result<(), EditError> {
        let others = || state.users.iter().any(|user| user.meta.id != self.meta.id && user.is_acting_admin());
        if self.is_acting_admin() && !others() {
            return Err(EditError::LastAdmin { id: self.meta.id, username: self.username.clone() });
        }
        Ok(())
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("username", self.username.to_lowercase());
    }

    fn secrets(&mut self) -> Vec<(String, &mut Secret)> {
        vec![("/password_hash".to_owned(), &mut self.password_hash)]
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        if before.password_hash.is_set() && !input.contains_key("password_hash") {
            input.insert("password_hash".into(), before.password_hash.kept().into());
        }
        input.insert("session_epoch".into(), before.session_epoch.into());
    }
}

/// Checks the syntax of a user name.
pub fn check_username(path: &str, name: &str, problems: &mut Problems) {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'@');
    if name.is_empty() {
        problems.required(path);
    } else if name.len() > 64 {
        problems.add(code::RANGE, path, "At most 64 characters.");
    } else if !name.bytes().all(allowed) || !name.as_bytes()[0].is_ascii_alphanumeric() {
        problems.add(
            code::FORMAT,
            path,
            "Only letters, digits, ., _, - and @ are allowed, and a letter or digit at the beginning.",
        );
    }
}

impl State {
    /// The user with this name, in any case.
    pub fn user_by_name(&self, name: &str) -> Option<&std::sync::Arc<User>> {
        self.users.by_key(&name.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> State {
        State::new("2026-11-20T12:00:00Z".parse().unwrap()).begin("2026-11-20T12:00:01Z".parse().unwrap())
    }

    fn user(name: &str, role: Role) -> User {
        User { username: name.into(), role, password_hash: Secret::new("$argon2id$x"), ..User::default() }
    }

    #[test]
    fn the_last_admin_stays_one() {
        let mut state = draft();
        let (anna, _) = state.create(user("anna", Role::Admin)).unwrap();
        let id = anna.meta.id;
        let refused = |result: Result<(), EditError>| matches!(result, Err(EditError::LastAdmin { .. }));
        // Neither of these could take over.
        state.create(user("bert", Role::Operator)).unwrap();
        state.create(User { enabled: false, ..user("cleo", Role::Admin) }).unwrap();
        state.create(User { password_hash: Secret::default(), ..user("dora", Role::Admin) }).unwrap();
        assert!(refused(state.remove::<User>(id, None, true).map(drop)));
        assert!(refused(state.update::<User>(id, None, |user| user.role = Role::Viewer).map(drop)));
        assert!(refused(state.update::<User>(id, None, |user| user.enabled = false).map(drop)));
        state.create(user("emil", Role::Admin)).unwrap();
        assert!(state.remove::<User>(id, None, false).is_ok());
    }

    #[test]
    fn names_are_one_in_any_case_and_users_have_no_key_roles() {
        let mut state = draft();
        state.create(user("Anna", Role::Viewer)).unwrap();
        let clash = state.create(user("anna", Role::Viewer));
        assert!(
            matches!(clash, Err(EditError::Conflict { ref field, .. }) if field == "username"),
            "{clash:?}"
        );
        assert!(state.user_by_name("ANNA").is_some());
        assert!(matches!(state.create(user("bert", Role::Diagnostics)), Err(EditError::Invalid(_))));
        for bad in ["", " anna", "an na", "änne", "-anna", "a/b", "a\nb", &"x".repeat(65)] {
            assert!(state.create(user(bad, Role::Viewer)).is_err(), "{bad:?}");
        }
        assert!(state.create(user("anna.b-c_d@example.net", Role::Viewer)).is_ok());
    }

    #[test]
    fn neither_debug_nor_json_shows_the_hash() {
        let user = user("anna", Role::Admin);
        let shown = format!("{user:?} {}", serde_json::to_string(&user).unwrap());
        assert!(!shown.contains("argon2id"), "{shown}");
    }
}
