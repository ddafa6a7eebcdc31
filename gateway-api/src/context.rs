//! Context of every handler: the running service and the caller.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use gateway_ctl::store::{AuditResult, AuditTicket, CommitError};
use gateway_model::settings::Bootstrap;
use gateway_model::{EditError, State};

use crate::auth::{self, Auth};
use crate::authorization::{Access, Actor, Proof, check};
use crate::blocking::blocking;
use crate::effect::{Audit, Effect};
use crate::error::ApiError;
use crate::gateway::{Gateway, Open};
use crate::heavy::Heavy;
use crate::openapi;
use crate::peer::ConnectionInfo;
use crate::request::Params;
use crate::table::{Endpoint, Routes, Table};
use crate::view_cache::ViewCache;

/// Configuration of the HTTP server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes.
    pub body_limit: usize,
    pub auth: auth::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self { body_limit: 2 * 1024 * 1024, auth: auth::Settings::default() }
    }
}

/// The running API.
pub struct Api {
    pub table: Table,
    pub routes: Routes,
    /// Operation to the query parameters that filter its list.
    pub filter_names: BTreeMap<String, Vec<String>>,
    pub settings: Settings,
    pub gateway: Gateway,
    pub auth: Auth,
    /// Made when somebody asks for it: that takes longer than the rest of the start.
    openapi: OnceLock<Bytes>,
    pub heavy: Heavy,
    pub view_cache: ViewCache,
    pub started: Instant,
}

impl Api {
    /// Fails only if the table declares one method and path twice.
    pub fn new(table: Table, gateway: Gateway, settings: Settings) -> Result<Arc<Self>, String> {
        let routes = Routes::new(table.endpoints())?;
        let filter_names = openapi::filters(&table);
        let auth = Auth::new(&settings.auth, &gateway);
        Ok(Arc::new(Self {
            table,
            routes,
            filter_names,
            settings,
            gateway,
            auth,
            openapi: OnceLock::new(),
            heavy: Heavy::default(),
            view_cache: ViewCache::default(),
            started: Instant::now(),
        }))
    }

    /// Returns the OpenAPI document.
    pub fn openapi(&self) -> Bytes {
        self.openapi.get_or_init(|| Bytes::from(openapi::text(&self.table))).clone()
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> Arc<Bootstrap> {
        self.gateway.config()
    }

    /// The store and the engine; refuses while the store cannot be used.
    pub fn open(&self) -> Result<&Open, ApiError> {
        match &self.gateway {
            Gateway::Open(open) => Ok(open),
            Gateway::Blocked { reason, cause, .. } => {
                Err(ApiError::not_ready(format!("All traffic is blocked: {reason}"))
                    .detail("state", "blocked")
                    .detail("cause", *cause))
            }
        }
    }
}

/// An attempt that the store's write path does not record by itself.
struct Attempt {
    audit: Audit,
    subject: String,
    /// Name of the user that was tried to sign in as.
    username: Option<String>,
    denied: bool,
    /// Code and message, if it failed.
    error: Option<(&'static str, String)>,
    /// Refusals before this one that have no entry.
    unrecorded: u64,
}

/// One request's identity, and the way to everything else.
#[derive(Clone)]
pub struct Cx {
    pub api: Arc<Api>,
    pub actor: Actor,
    pub way: ConnectionInfo,
    pub request_id: String,
    pub effect: Effect,
    /// Object in the path, for the audit entry.
    subject: String,
}

impl Cx {
    pub fn new(
        api: Arc<Api>,
        row: &Endpoint,
        actor: Actor,
        way: ConnectionInfo,
        request_id: &str,
        params: &Params,
    ) -> Self {
        let subject = params.0.values().next().cloned().unwrap_or_default();
        Self { api, actor, way, request_id: request_id.to_owned(), effect: row.effect, subject }
    }

    /// The store and the engine.
    pub fn open(&self) -> Result<&Open, ApiError> {
        self.api.open()
    }

    /// Refuses a caller that has not this capability, for what a row allows only some of its callers.
    pub fn require(&self, access: Access) -> Result<(), ApiError> {
        check(&self.actor, access)
    }

    /// The entry that a change of this request will leave.
    pub fn ticket(&self, audit: Audit) -> AuditTicket {
        AuditTicket {
            actor: self.actor.name.clone(),
            auth: self.actor.proof.audit(),
            ip: self.actor.ip,
            request_id: self.request_id.clone(),
            action: audit.action.to_owned(),
            resource_type: audit.resource_type.to_owned(),
            resource_id: None,
            named: None,
            details: serde_json::Value::Null,
        }
    }

    /// The audit entry of a row that changes the store.
    pub fn own_ticket(&self) -> Result<AuditTicket, ApiError> {
        let Effect::Stores(audit) = self.effect else {
            // A declaration that does not fit its handler must not change anything unrecorded.
            let error = std::io::Error::other("this row is not declared as one that changes the store");
            return Err(ApiError::internal(&error));
        };
        Ok(AuditTicket {
            named: Some(self.subject.clone()).filter(|subject| !subject.is_empty()),
            ..self.ticket(audit)
        })
    }

    /// Changes the store, with the audit entry of this row in the same transaction. Waits for the disk.
    pub fn commit_blocking<T>(
        &self,
        edit: impl FnOnce(&mut State) -> Result<T, EditError>,
    ) -> Result<T, ApiError> {
        match self.open()?.store.commit(self.own_ticket()?, edit) {
            Ok(value) => Ok(value),
            // The dispatcher records all failures of handlers, this one too.
            Err(CommitError::Refused { error, ticket: _ }) => Err(error.into()),
            Err(CommitError::Store(error)) => Err(error.into()),
        }
    }

    /// The same for async handlers.
    pub async fn commit<T: Send + 'static>(
        &self,
        edit: impl FnOnce(&mut State) -> Result<T, EditError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let cx = self.clone();
        blocking(move || cx.commit_blocking(edit)).await?
    }

    /// Returns when the resolver answers by the stored filters, lists and rewrites.
    pub async fn follow_dns(&self) -> Result<(), ApiError> {
        let names = match (&self.api.gateway, self.effect) {
            (Gateway::Open(open), Effect::Stores(_)) => open.names.clone(),
            _ => None,
        };
        match names {
            Some(names) => blocking(move || names.catch_up()).await,
            None => Ok(()),
        }
    }

    /// Writes an audit entry for something that was read and should be known to have been.
    pub async fn record_reading(&self, audit: Audit) -> Result<(), ApiError> {
        let subject = self.subject.clone();
        let attempt = Attempt { audit, subject, username: None, denied: false, error: None, unrecorded: 0 };
        self.record(attempt).await
    }

    /// Writes the audit entry of a change that was refused or failed. Endpoints that change nothing leave none.
    pub async fn record_failure(&self, error: &ApiError) {
        self.record_failure_of(error, None, None).await;
    }

    /// The same, about an object that the path does not name.
    ///
    /// Refusals, and whatever callers without a credential try, are written down in measure: past it they are counted,
    /// and the next entry says how many there were. So nobody can fill the disk by being refused.
    pub async fn record_failure_of(&self, error: &ApiError, subject: Option<&str>, username: Option<&str>) {
        if error.recorded {
            return;
        }
        let Some(audit) = self.effect.audit() else { return };
        let status = error.code.status();
        let denied = matches!(status, http::StatusCode::UNAUTHORIZED | http::StatusCode::FORBIDDEN);
        let mut unrecorded = 0;
        if denied || self.actor.proof == Proof::None {
            let auth = &self.api.auth;
            match auth.limits.may_record_denial(self.actor.payer(), auth.instant()) {
                Some(before) => unrecorded = before,
                None => return,
            }
        }
        let attempt = Attempt {
            audit,
            subject: subject.unwrap_or(&self.subject).to_owned(),
            username: username.map(str::to_owned),
            denied,
            error: Some((error.code.as_str(), error.message.clone())),
            unrecorded,
        };
        if let Err(lost) = self.record(attempt).await {
            tracing::error!(request_id = self.request_id, action = audit.action, error = %lost, "audit entry lost");
        }
    }

    /// Writes the audit entry of an action outside the store.
    pub async fn record_success(&self, subject: Option<&str>) -> Result<(), ApiError> {
        let Some(audit) = self.effect.audit() else { return Ok(()) };
        let subject = subject.unwrap_or(&self.subject).to_owned();
        let attempt = Attempt { audit, subject, username: None, denied: false, error: None, unrecorded: 0 };
        self.record(attempt).await
    }

    /// Writes an audit entry for an attempt.
    async fn record(&self, attempt: Attempt) -> Result<(), ApiError> {
        let Gateway::Open(open) = &self.api.gateway else { return Ok(()) };
        let Attempt { audit, subject, username, denied, error, unrecorded } = attempt;
        let mut ticket = self.ticket(audit);
        ticket.resource_id = Some(subject).filter(|subject| !subject.is_empty());
        let result = match (&error, denied) {
            (None, _) => AuditResult::Success,
            (Some(_), true) => AuditResult::Denied,
            (Some(_), false) => AuditResult::Failed,
        };
        if let Some((code, message)) = error {
            ticket.details = serde_json::json!({"error": code, "message": message});
            if unrecorded > 0 {
                ticket.details["unrecorded_refusals_before"] = unrecorded.into();
            }
            username.into_iter().for_each(|username| ticket.details["username"] = username.into());
        }
        let store = open.store.clone();
        blocking(move || store.record(ticket, result)).await?.map_err(ApiError::from)
    }
}
