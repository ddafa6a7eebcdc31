//! Sign-in, sessions, API keys, users.

use std::sync::Arc;

use gateway_ctl::store::{SESSION_LENGTH, Session};
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::kinds::user::User;
use gateway_model::{Deleted, EditError, Id, Problems, Resource, Role, Secret, problem};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::auth::accounts::{self, UserInput, UserView};
use crate::auth::login_throttle::LoginKey;
use crate::auth::{password, token};
use crate::authorization::{Access, Proof};
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

mod keys;
mod objects;
mod users;

pub(super) fn rows(t: &mut Table) {
    let stores = |action, resource_type| Effect::Stores(Audit { action, resource_type });
    t.view("/auth/status", "get_auth_status", status)
        .summary("State of sign-in, and the caller's identity")
        .access(Access::Open);
    t.action("/auth/setup", "setup_admin", stores("setup_admin", User::NOUN), setup)
        .summary("Create the first account, an administrator")
        .doc(
            "Works only while there is no account. setup_code is required unless the request comes from the gateway itself, also while sign-in is off: the owner of the first account governs the gateway as soon as sign-in is on. The code is in the file setup-code in the state directory.",
        )
        .access(Access::Open)
        .answers(&[Code::SetupCodeRequired, Code::LoginThrottled, Code::AlreadyConfigured])
        .status(201);
    t.action("/auth/login", "login", stores("login", "session"), login)
        .summary("Sign in with a password; sets the cookie gw_session")
        .doc(
            "Changes that come with the cookie need the csrf_token of the answer in the header X-CSRF-Token. A session \
             ends after 30 minutes without a request, and after 12 hours. Five wrong passwords from one address for \
             one name close that pair for 15 minutes.",
        )
        .access(Access::Open)
        .answers(&[Code::InvalidCredentials, Code::LoginThrottled]);
    t.action(
        "/auth/change-password",
        "change_password",
        stores("change_password", User::NOUN),
        change_password,
    )
    .summary("Change a password; ends all other sessions of that user")
    .doc("Without a session, username is required unless there is only one user.")
    .access(Access::Own)
    .answers(&[Code::InvalidCredentials, Code::LoginThrottled, Code::NotFound, Code::PreconditionFailed]);
    t.view("/auth/tokens", "list_sessions", sessions)
        .summary("Sessions: all for administrators, else the caller's own")
        .access(Access::Own);
    t.erase("/auth/tokens/{id}", "revoke_session", stores("revoke_session", "session"), end_session)
        .summary("End a session; `current` is the caller's own (sign out)")
        .access(Access::Own);
    keys::rows(t);
    users::rows(t);
}

#[derive(Debug, Serialize, JsonSchema)]
struct Status {
    /// Sign-in is on. If false, every caller is an administrator.
    enabled: bool,
    /// At least one account exists.
    configured: bool,
    /// No account exists yet; `POST /auth/setup` creates the first one.
    setup_required: bool,
    /// This caller needs the setup code for the setup.
    setup_code_required: bool,
    /// Accepted credentials: `session`, `api_key`, `local_net`. Empty while sign-in is off.
    methods: Vec<&'static str>,
    /// Name of this caller; null if it is not authenticated.
    user: Option<String>,
    role: Option<Role>,
    /// Authentication of this caller: `session`, `key`, `localnet`, `open`, `system`; null if it is not authenticated.
    auth: Option<gateway_ctl::store::AuditAuth>,
    /// Value for the header X-CSRF-Token. Only with a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf_token: Option<String>,
    /// End of the session. A session without requests ends earlier. Only with a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

async fn status(cx: Cx, _: Req<()>) -> Result<Status, ApiError> {
    let enabled = cx.api.auth.enabled;
    let configured = !cx.open()?.store.current().users.is_empty();
    let known = cx.actor.proof != Proof::None;
    let session = current_session(&cx);
    Ok(Status {
        enabled,
        configured,
        setup_required: !configured,
        setup_code_required: !configured && needs_setup_code(&cx),
        methods: if enabled { vec!["session", "api_key", "local_net"] } else { Vec::new() },
        user: known.then(|| cx.actor.name.clone()),
        role: known.then_some(cx.actor.role),
        auth: known.then(|| cx.actor.proof.audit()),
        csrf_token: session.as_ref().map(|session| session.csrf.clone()),
        expires_at: session.map(|session| session.expires_at),
    })
}

fn current_session(cx: &Cx) -> Option<Session> {
    match cx.actor.proof {
        Proof::Session(id) => cx.open().ok()?.store.session(id),
        _ => None,
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct Setup {
    username: String,
    /// Password of 12 to 256 characters.
    password: Secret,
    /// Content of the file `setup-code` in the state directory of the gateway. Only needed if `setup_code_required` is
    /// true.
    setup_code: Secret,
}

impl Default for Setup {
    fn default() -> Self {
        Self { username: "admin".to_owned(), password: Secret::default(), setup_code: Secret::default() }
    }
}

/// Reports whether this caller must present the setup code.
fn needs_setup_code(cx: &Cx) -> bool {
    match cx.actor.proof {
        Proof::System => false,
        Proof::Key(_) | Proof::ConfiguredKey(_) if cx.actor.role == Role::Admin => false,
        // A proxied request has the address of the proxy.
        _ if cx.connection.forwarded => true,
        // Without an address the caller is in this process.
        Proof::Open if cx.actor.ip.is_none() => false,
        _ => !cx.actor.ip.is_some_and(|ip| ip.is_loopback()),
    }
}

async fn setup(cx: Cx, request: Req<Setup>) -> Result<WithHeaders<UserView>, ApiError> {
    let Setup { username, password, setup_code } = request.input;
    accounts::refuse_if_configured(&cx.open()?.store.current())?;
    let mut cx = cx;
    if needs_setup_code(&cx) {
        let pair = LoginKey::new(cx.actor.payer(), "setup code");
        cx.api.auth.lock.begin(pair, cx.api.auth.instant()).map_err(locked)?;
        if !cx.api.auth.setup.fits(&setup_code) {
            return Err(ApiError::new(
                Code::SetupCodeRequired,
                "From here the first account needs setup_code, which stands in the file setup-code in the state folder \
                 of the gateway.",
            ));
        }
        cx.api.auth.lock.succeed(pair);
    } else if cx.actor.proof == Proof::None {
        cx.actor_mut().proof = Proof::Localnet;
    }
    let input = UserInput { username, password, role: Some(Role::Admin.to_string()), enabled: true };
    input.check(true)?;
    let hash = cx.api.auth.passwords.hash(input.password.clone()).await?;
    cx.actor_mut().name = input.username.clone();
    let user = cx.commit(move |draft| accounts::create_first(draft, input, hash)).await?;
    cx.api.auth.setup.discard();
    Ok(users::created(&user))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Login {
    username: String,
    password: Secret,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LoginResult {
    user: CallerView,
    expires_at: Timestamp,
    /// Value for the header X-CSRF-Token.
    csrf_token: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CallerView {
    id: Id,
    username: String,
    role: Role,
}

async fn login(mut cx: Cx, request: Req<Login>) -> Result<WithHeaders<LoginResult>, ApiError> {
    let Login { username, password } = request.input;
    let mut problems = Problems::new();
    for (path, missing) in [("username", username.is_empty()), ("password", !password.is_set())] {
        if missing {
            problems.required(path);
        }
    }
    if !problems.is_empty() {
        return Err(ApiError::validation(&problems));
    }
    let user = authenticate(&cx, &username, password).await?;
    let open = cx.open()?;
    let session = Session::new(
        user.meta.id,
        user.session_epoch,
        open.now(),
        cx.actor.ip,
        cx.connection.user_agent.as_deref(),
    );
    let cookie =
        token::set_cookie(&cx.api.auth.signer.sign(&session)?, SESSION_LENGTH.as_secs(), cx.connection.tls)?;
    let answer = LoginResult {
        user: CallerView { id: user.meta.id, username: user.username.clone(), role: user.role },
        expires_at: session.expires_at,
        csrf_token: session.csrf.clone(),
    };
    cx.actor_mut().name = user.username.clone();
    cx.actor_mut().proof = Proof::Session(session.id);
    let mut ticket = cx.own_ticket()?;
    ticket.resource_id = Some(session.id.to_string());
    let store = cx.open()?.store.clone();
    blocking(move || store.open_session(ticket, session)).await??;
    let mut reply = WithHeaders::new(answer);
    reply.cookie = Some(cookie);
    Ok(reply)
}

fn locked(seconds: u32) -> ApiError {
    let minutes = seconds.div_ceil(60);
    let mut error =
        ApiError::new(Code::LoginThrottled, format!("Too many failed attempts; try again in {minutes} min."));
    error.retry_after = Some(seconds);
    error
}

/// Returns the user with this name and password. Takes the same time and returns the same error if there is no such
/// user.
async fn authenticate(cx: &Cx, username: &str, given: Secret) -> Result<Arc<User>, ApiError> {
    let auth = &cx.api.auth;
    let address = cx.actor.ip.map(crate::auth::rate_limit::QuotaOwner::address);
    let pair = LoginKey::new(address, username);
    auth.lock.begin(pair, auth.instant()).map_err(locked)?;
    let user = cx.open()?.store.current().user_by_name(username.trim()).cloned();
    let hash = user.as_ref().map(|user| user.password_hash.clone());
    let right = match auth.passwords.verify(given, hash).await {
        Ok(right) => right,
        Err(error) => {
            auth.lock.take_back(pair);
            return Err(error);
        }
    };
    match user {
        Some(user) if right && user.enabled => {
            auth.lock.succeed(pair);
            Ok(user)
        }
        user => {
            let mut error =
                ApiError::new(Code::InvalidCredentials, "The user name or the password is wrong.");
            // An unknown user name may be a password typed into the wrong field, so it is not recorded.
            let subject = user.as_ref().map(|user| user.meta.id.to_string());
            let username = user.as_ref().map(|user| user.username.as_str());
            cx.record_failure_of(&error, subject.as_deref(), username).await;
            if auth.lock.is_locked(pair, auth.instant()) {
                report_lockout(cx, username)?;
            }
            error.recorded = true;
            Err(error)
        }
    }
}

/// Reports an alert of the lockout of an address. The name is that of a user who exists.
fn report_lockout(cx: &Cx, username: Option<&str>) -> Result<(), ApiError> {
    let address = cx.actor.ip.map_or_else(|| "this host".to_owned(), |ip| ip.to_string());
    let user =
        username.map_or_else(|| "a user who does not exist".to_owned(), |name| format!("the user {name}"));
    let message = format!("too many wrong passwords from {address} for {user}");
    cx.open()?.active_alerts.note_event(AlertKind::LoginLockout, &address, message);
    Ok(())
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ChangePassword {
    current_password: Secret,
    /// Password of 12 to 256 characters.
    new_password: Secret,
    /// User name; required without a session if there are several users.
    username: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PasswordResult {
    changed: bool,
}

async fn change_password(cx: Cx, request: Req<ChangePassword>) -> Result<PasswordResult, ApiError> {
    let ChangePassword { current_password, new_password, username } = request.input;
    let name = whose_password(&cx, username)?;
    let mut problems = Problems::new();
    if !current_password.is_set() {
        problems.required("current_password");
    }
    password::check("new_password", &new_password, &name, &mut problems);
    if current_password.is_set() && current_password == new_password {
        let message = "This is the present password.";
        problems.add(problem::code::CONFLICT, "new_password", message);
    }
    if !problems.is_empty() {
        return Err(ApiError::validation(&problems));
    }
    let user = authenticate(&cx, &name, current_password).await?;
    let hash = cx.api.auth.passwords.hash(new_password).await?;
    let (id, seen) = (user.meta.id, user.session_epoch);
    let changed = cx
        .commit(move |draft| {
            let present = draft.expect::<User>(id, None)?;
            if present.session_epoch != seen {
                // The password was changed in the meantime, so the one in the request is not the current one.
                let (expected, current) = (user.meta.revision, present.meta.revision);
                return Err(EditError::Stale { resource_type: User::NOUN, expected, current });
            }
            let (user, _) = draft.update::<User>(id, None, |user| accounts::set_password(user, hash))?;
            Ok(user)
        })
        .await?;
    if let (Proof::Session(session), true) = (cx.actor.proof, cx.actor.user == Some(id)) {
        let store = cx.open()?.store.clone();
        blocking(move || store.keep_session(session, changed.session_epoch)).await??;
    }
    Ok(PasswordResult { changed: true })
}

/// Returns the user whose password changes: with a session its own user, else the named one, else the only one.
fn whose_password(cx: &Cx, username: Option<String>) -> Result<String, ApiError> {
    if cx.actor.user.is_some() {
        let own = cx.actor.name.clone();
        return match username {
            Some(name) if !name.eq_ignore_ascii_case(&own) => Err(ApiError::new(
                Code::Forbidden,
                "This endpoint changes the caller's own password; PUT /auth/users/{id} sets that of another user.",
            )
            .detail("required_role", Role::Admin.as_str())
            .detail("role", cx.actor.role.as_str())),
            _ => Ok(own),
        };
    }
    cx.require(Access::Administer)?;
    if let Some(name) = username {
        return Ok(name);
    }
    let state = cx.open()?.store.current();
    let mut users = state.users.iter();
    match (users.next(), users.next()) {
        (Some(only), None) => Ok(only.username.clone()),
        _ => {
            let mut problems = Problems::new();
            problems.required("username");
            Err(ApiError::validation(&problems))
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionView {
    id: Uuid,
    user: String,
    user_id: Id,
    role: Role,
    created_at: Timestamp,
    last_seen: Timestamp,
    /// Latest end of the session. A session without requests ends earlier.
    expires_at: Timestamp,
    ip: Option<std::net::IpAddr>,
    user_agent: Option<String>,
    /// This request uses the session.
    current: bool,
}

async fn sessions(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<SessionView>>, ApiError> {
    let store = &cx.open()?.store;
    let state = store.current();
    let all = cx.require(Access::Administer).is_ok();
    let show = |session: Session| {
        let user = state.users.get(session.user)?;
        Some(SessionView {
            id: session.id,
            user: user.username.clone(),
            user_id: session.user,
            role: user.role,
            created_at: session.created_at,
            last_seen: session.last_seen,
            expires_at: session.expires_at,
            ip: session.ip,
            user_agent: session.user_agent,
            current: cx.actor.proof == Proof::Session(session.id),
        })
    };
    let visible = |session: &Session| all || cx.actor.user == Some(session.user);
    Ok(WithHeaders::counted(store.sessions().into_iter().filter(visible).filter_map(show).collect()))
}

async fn end_session(cx: Cx, request: Req<()>) -> Result<WithHeaders<Deleted>, ApiError> {
    let given = request.params.get("id");
    let own = match cx.actor.proof {
        Proof::Session(id) => Some(id),
        _ => None,
    };
    let id = if given == "current" { own } else { given.parse().ok() };
    let store = cx.open()?.store.clone();
    let session = id.and_then(|id| store.session(id));
    let is_own = session.as_ref().is_some_and(|session| cx.actor.user == Some(session.user));
    if !is_own {
        // Checked before the response reveals whether the session exists.
        cx.require(Access::Administer)?;
    }
    let Some(session) = session else { return Err(ApiError::not_found("session", given)) };
    let mut ticket = cx.own_ticket()?;
    ticket.resource_id = Some(session.id.to_string());
    let id = session.id;
    blocking(move || store.close_sessions(ticket, &[id])).await??;
    let mut reply = WithHeaders::new(Deleted { id: id.to_string(), deleted: true });
    if own == Some(id) {
        reply.cookie = Some(token::clear_cookie(cx.connection.tls)?);
    }
    Ok(reply)
}
