//! Creating and changing accounts: the rules that the API and the command line of the daemon share.

use std::sync::Arc;

use gateway_model::kinds::User;
use gateway_model::kinds::user::{ROLES, check_username};
use gateway_model::{EditError, Id, Problems, Role, Secret, State, problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::password;

/// User in a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct UserInput {
    /// User name: letters, digits, `.`, `_`, `-` and `@`. Case-insensitive.
    pub username: String,
    /// Password of 12 to 256 characters. An update without it keeps the password.
    pub password: Secret,
    /// Role: admin, operator or viewer.
    #[schemars(with = "Option<Role>")]
    pub role: Option<String>,
    /// If false, the user cannot sign in.
    pub enabled: bool,
}

impl Default for UserInput {
    fn default() -> Self {
        Self { username: String::new(), password: Secret::default(), role: None, enabled: true }
    }
}

impl UserInput {
    /// Checks all fields and returns the role. `new`: the password is required.
    pub(crate) fn check(&self, new: bool) -> Result<Role, EditError> {
        let mut problems = Problems::new();
        check_username("username", &self.username, &mut problems);
        if new || self.password.is_set() {
            password::check("password", &self.password, &self.username, &mut problems);
        }
        // Parsed here and not while decoding, so that all wrong fields are reported together.
        let role = self.role.as_deref().map(str::parse::<Role>);
        let role = role.map(|role| role.ok().filter(|role| ROLES.contains(role)));
        match role {
            None => problems.required("role"),
            Some(Some(_)) => {}
            Some(None) => {
                let message = "A user is admin, operator or viewer; diagnostics is for API keys.";
                problems.add(problem::code::ENUM, "role", message).allowed =
                    Some(ROLES.iter().map(|role| role.to_string()).collect());
            }
        }
        match role.flatten() {
            Some(role) if problems.is_empty() => Ok(role),
            _ => Err(EditError::Invalid(problems)),
        }
    }
}

/// User in a response, without its password hash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct UserView {
    pub id: Id,
    pub created_at: jiff::Timestamp,
    pub updated_at: jiff::Timestamp,
    pub revision: gateway_model::Revision,
    pub username: String,
    /// Role: admin, operator or viewer.
    pub role: Role,
    pub enabled: bool,
    pub last_login: Option<jiff::Timestamp>,
}

impl UserView {
    pub(crate) fn new(user: &User, last_login: Option<jiff::Timestamp>) -> Self {
        Self {
            id: user.meta.id,
            created_at: user.meta.created_at,
            updated_at: user.meta.updated_at,
            revision: user.meta.revision,
            username: user.username.clone(),
            role: user.role,
            enabled: user.enabled,
            last_login,
        }
    }
}

/// Stores a checked user.
pub(crate) fn create(
    draft: &mut State,
    input: UserInput,
    role: Role,
    hash: Secret,
) -> Result<Arc<User>, EditError> {
    let UserInput { username, password: _, role: _, enabled } = input;
    let (user, _) = draft.create(User { username, role, enabled, password_hash: hash, ..User::default() })?;
    Ok(user)
}

/// Stores the first user.
pub(crate) fn create_first(
    draft: &mut State,
    input: UserInput,
    hash: Secret,
) -> Result<Arc<User>, EditError> {
    refuse_if_configured(draft)?;
    create(draft, input, Role::Admin, hash)
}

pub(crate) fn refuse_if_configured(state: &State) -> Result<(), EditError> {
    if state.users.is_empty() {
        return Ok(());
    }
    Err(EditError::AlreadyConfigured {
        message: "there are accounts already; sign in, or use `gatewayd user` on the gateway".to_owned(),
    })
}

/// Applies the fields that differ. A new password ends the sessions of the user.
pub(crate) fn change(
    draft: &mut State,
    id: Id,
    input: UserInput,
    role: Role,
    hash: Option<Secret>,
) -> Result<Arc<User>, EditError> {
    let UserInput { username, password: _, role: _, enabled } = input;
    let (user, _) = draft.update::<User>(id, None, |user| {
        user.username = username;
        user.role = role;
        user.enabled = enabled;
        if let Some(hash) = hash {
            set_password(user, hash);
        }
    })?;
    Ok(user)
}

/// Sets a new password and ends all sessions that began with the old one.
pub(crate) fn set_password(user: &mut User, hash: Secret) {
    user.password_hash = hash;
    user.session_epoch = user.session_epoch.wrapping_add(1);
}
