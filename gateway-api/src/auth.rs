//! Authentication: from a request to an [`Actor`].
//!
//! Sources in order of precedence: the local socket (the system itself); sign-in is off (every caller is admin); an API
//! key; a session cookie; the local network (read-only). An invalid credential is rejected: it never falls back to the
//! read access of the local network. Endpoints that need no credential answer all the same.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use gateway_ctl::clock::{SharedClock, SystemClock};
use gateway_ctl::store::Store;
use gateway_model::Role;
use gateway_model::settings::bootstrap;
use http::header::{self, HeaderName};
use http::request::Parts;
use ipnet::IpNet;

use crate::authorization::{Actor, Proof};
use crate::error::{ApiError, Code};
use crate::gateway::Gateway;
use crate::peer::Peer;

pub(crate) mod accounts;
pub mod api_key;
pub(crate) mod login_throttle;
pub(crate) mod password;
pub(crate) mod rate_limit;
pub(crate) mod setup;
pub(crate) mod token;

use login_throttle::LoginThrottle;
use password::Passwords;
use rate_limit::{Limits, Quota, QuotaOwner, QuotaUse};
use setup::SetupCode;
use token::Signer;

/// Maximum number of session cookies that are checked per request.
const COOKIES: usize = 4;

/// Authentication settings from the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    pub enabled: bool,
    pub local_net: IpNet,
    pub api_keys: Vec<bootstrap::ApiKey>,
    /// Directory of the setup code. `None`: no setup code.
    pub setup_folder: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        let bootstrap::Auth { enabled, local_net, api_keys } = bootstrap::Auth::default();
        Self { enabled, local_net: local_net.net(), api_keys, setup_folder: None }
    }
}

/// State of authentication: API keys, sessions, limits and locks.
#[derive(Debug)]
pub struct Auth {
    pub enabled: bool,
    local_net: IpNet,
    keys: Vec<api_key::ConfiguredKey>,
    clock: SharedClock,
    pub limits: Limits,
    pub lock: LoginThrottle,
    pub passwords: Passwords,
    pub signer: Signer,
    pub setup: SetupCode,
}

/// The caller, and the error if its credential was rejected.
pub struct Identity {
    pub actor: Actor,
    pub refusal: Option<ApiError>,
}

impl Auth {
    pub fn new(settings: &Settings, gateway: &Gateway) -> Self {
        let store = store(gateway);
        let empty = store.is_some_and(|store| store.current().users.is_empty());
        // Without a store there are no sessions, so the signing key does not matter.
        let signer = Signer::new(store.map_or(&[0; 32], Store::session_key));
        Self {
            enabled: settings.enabled,
            local_net: settings.local_net,
            keys: api_key::ConfiguredKey::all(&settings.api_keys),
            clock: store.map_or_else(SystemClock::shared, |store| store.clock().clone()),
            limits: Limits::default(),
            lock: LoginThrottle::default(),
            passwords: Passwords::default(),
            signer,
            setup: SetupCode::prepare(settings.setup_folder.as_deref(), empty),
        }
    }

    /// Returns the time since boot, for limits and locks.
    pub fn instant(&self) -> Duration {
        self.clock.boot()
    }

    pub fn identify(&self, gateway: &Gateway, parts: &Parts, peer: Option<&Peer>) -> Identity {
        let ip = peer.and_then(Peer::ip);
        let known = |actor| Identity { actor, refusal: None };
        if matches!(peer, Some(Peer::Local)) {
            return known(Actor::system());
        }
        if !self.enabled {
            return known(Actor::open(ip));
        }
        if let Some(key) = api_key::from_headers(&parts.headers) {
            return match self.by_key(gateway, key, ip) {
                Ok(actor) => known(actor),
                Err(refusal) => Identity { actor: Actor::anonymous(ip), refusal: Some(refusal) },
            };
        }
        let mut cookie = false;
        for token in token::from_cookies(&parts.headers).take(COOKIES) {
            cookie = true;
            if let Some(actor) = self.by_token(gateway, token, ip) {
                return known(actor);
            }
        }
        if is_safe(&parts.method) && !cookie && self.is_local(ip) && !is_forwarded(parts) {
            return known(Actor::local(ip));
        }
        let refusal =
            cookie.then(|| ApiError::new(Code::SessionExpired, "The session has expired; sign in again."));
        Identity { actor: Actor::anonymous(ip), refusal }
    }

    /// Reports whether the address is in the local network.
    pub fn is_local(&self, ip: Option<IpAddr>) -> bool {
        ip.is_some_and(|ip| self.local_net.contains(&ip.to_canonical()))
    }

    fn by_key(&self, gateway: &Gateway, text: &str, ip: Option<IpAddr>) -> Result<Actor, ApiError> {
        let invalid = |message| Err(ApiError::new(Code::InvalidCredentials, message));
        if let Some(position) = api_key::ConfiguredKey::find(&self.keys, text) {
            let key = &self.keys[position];
            return Ok(Actor {
                name: key.name.clone(),
                role: key.role,
                proof: Proof::ConfiguredKey(position),
                ip,
                user: None,
            });
        }
        let Some(store) = store(gateway) else { return invalid("The API key is not valid.") };
        let state = store.current();
        let found = api_key::prefix(text).and_then(|prefix| state.api_key_by_prefix(prefix));
        let Some(key) = found.filter(|key| api_key::fits(text, &key.key_hash)) else {
            return invalid("The API key is not valid.");
        };
        // The caller has the key, so the error may say why it is not accepted.
        if key.is_expired(store.clock().now()) {
            return invalid("The API key has expired.");
        }
        if !key.admits(ip) {
            return invalid("The API key may not be used from this address.");
        }
        Ok(Actor { name: key.name.clone(), role: key.role, proof: Proof::Key(key.meta.id), ip, user: None })
    }

    fn by_token(&self, gateway: &Gateway, token: &str, ip: Option<IpAddr>) -> Option<Actor> {
        let Gateway::Open(open) = gateway else { return None };
        let session = open.store.session(self.signer.read(token)?)?;
        let state = open.store.current();
        let user = state.users.get(session.user)?;
        if open.store.note_use(session.id) {
            let (store, id) = (open.store.clone(), session.id);
            tokio::task::spawn_blocking(move || {
                if let Err(error) = store.save_session(id) {
                    tracing::warn!(%error, "failed to store the last use of a session");
                }
            });
        }
        Some(Actor {
            name: user.username.clone(),
            role: user.role,
            proof: Proof::Session(session.id),
            ip,
            user: Some(user.meta.id),
        })
    }

    /// Reports whether the credential of the caller is still valid. For streamed responses.
    pub fn holds(&self, gateway: &Gateway, actor: &Actor) -> bool {
        let Some(store) = store(gateway) else { return true };
        let state = store.current();
        match actor.proof {
            Proof::None | Proof::Open | Proof::Localnet | Proof::System | Proof::ConfiguredKey(_) => true,
            Proof::Key(id) => {
                let key = state.api_keys.get(id);
                key.is_some_and(|key| !key.is_expired(store.clock().now()) && key.role == actor.role)
            }
            Proof::Session(id) => {
                let user = store.session(id).and_then(|session| state.users.get(session.user).cloned());
                user.is_some_and(|user| user.role == actor.role)
            }
        }
    }

    /// Charges the request to the quota of the caller. `None`: the caller has no limit.
    pub fn charge(&self, actor: &Actor, method: &http::Method) -> (Option<Quota>, Result<(), ApiError>) {
        let Some(payer) = actor.payer() else { return (None, Ok(())) };
        match self.limits.take(payer, actor.quota_use(method), self.instant()) {
            Ok(quota) => (Some(quota), Ok(())),
            Err(exceeded) => {
                let mut error = ApiError::new(
                    Code::RateLimited,
                    format!("Too many requests; retry in {} s.", exceeded.retry_after),
                )
                .detail("limit", exceeded.quota.limit);
                error.retry_after = Some(exceeded.retry_after);
                (Some(exceeded.quota), Err(error))
            }
        }
    }
}

impl Actor {
    /// Returns the caller on the local socket. Only root can open it.
    pub fn system() -> Self {
        Self { name: "system".to_owned(), role: Role::Admin, proof: Proof::System, ip: None, user: None }
    }

    /// Returns the caller while sign-in is off.
    pub fn open(ip: Option<IpAddr>) -> Self {
        Self { name: "admin".to_owned(), role: Role::Admin, proof: Proof::Open, ip, user: None }
    }

    /// Returns a reader in the local network.
    fn local(ip: Option<IpAddr>) -> Self {
        Self { name: "localnet".to_owned(), role: Role::Admin, proof: Proof::Localnet, ip, user: None }
    }

    /// Returns a caller without identity. Its role has no effect: without a proof only open endpoints are allowed.
    fn anonymous(ip: Option<IpAddr>) -> Self {
        Self { name: "anonymous".to_owned(), role: Role::Viewer, proof: Proof::None, ip, user: None }
    }

    /// Returns the owner of the quota that a request uses.
    pub fn payer(&self) -> Option<QuotaOwner> {
        match self.proof {
            Proof::System => None,
            Proof::Session(id) => Some(QuotaOwner::Session(id)),
            Proof::Key(id) => Some(QuotaOwner::Key(id)),
            Proof::ConfiguredKey(position) => Some(QuotaOwner::ConfiguredKey(position)),
            Proof::Open => self.ip.filter(|ip| !ip.is_loopback()).map(QuotaOwner::address),
            Proof::None | Proof::Localnet => self.ip.map(QuotaOwner::address),
        }
    }

    /// Returns the quota of the owner that a request uses. A caller without a proof, and a program with a key, have no
    /// quota for the reads of a dashboard.
    fn quota_use(&self, method: &http::Method) -> QuotaUse {
        match self.proof {
            Proof::Session(_) | Proof::Open | Proof::Localnet if is_safe(method) => QuotaUse::Read,
            _ => QuotaUse::Other,
        }
    }
}

fn is_safe(method: &http::Method) -> bool {
    matches!(*method, http::Method::GET | http::Method::HEAD | http::Method::OPTIONS)
}

fn store(gateway: &Gateway) -> Option<&Store> {
    match gateway {
        Gateway::Open(open) => Some(&open.store),
        Gateway::Blocked { .. } => None,
    }
}

/// Reports whether a proxy forwarded the request. The client address is then that of the proxy.
pub fn is_forwarded(parts: &Parts) -> bool {
    const NAMES: [HeaderName; 3] =
        [header::FORWARDED, HeaderName::from_static("x-forwarded-for"), HeaderName::from_static("x-real-ip")];
    NAMES.iter().any(|name| parts.headers.contains_key(name))
}

#[cfg(test)]
mod tests;
