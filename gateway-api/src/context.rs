//! Context of every handler: the running service and the caller.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use gateway_core::paths::Paths;
use gateway_ctl::store::{AuditResult, AuditTicket, CommitError};
use gateway_model::settings::Bootstrap;
use gateway_model::{EditError, State};

use crate::auth::{self, Auth};
use crate::authorization::{Access, Actor, Proof, check};
use crate::blocking::blocking;
use crate::effect::{Audit, Effect};
use crate::endpoints::health::SavedChanges;
use crate::error::ApiError;
use crate::gateway::{Gateway, Open};
use crate::heavy::Heavy;
use crate::openapi;
use crate::pages::Pages;
use crate::peer::ConnectionInfo;
use crate::request::Params;
use crate::table::{Endpoint, Routes, Table};
use crate::view_cache::{ValueCache, ViewCache};

/// Configuration of the HTTP server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum size of a request body, in bytes.
    pub body_limit: usize,
    pub auth: auth::Settings,
    /// Files of the dashboard.
    pub pages: Pages,
}

impl Default for Settings {
    fn default() -> Self {
        Self { body_limit: 2 * 1024 * 1024, auth: auth::Settings::default(), pages: Pages::default() }
    }
}

/// The running API.
pub struct Api {
    pub table: Table,
    pub routes: Routes,
    /// Query parameters that filter the list of an operation, by operation.
    filter_names: OnceLock<BTreeMap<String, Vec<String>>>,
    pub settings: Settings,
    pub gateway: Gateway,
    pub auth: Auth,
    /// OpenAPI document. Generated on first use, because that takes longer than the rest of the start.
    openapi: OnceLock<Bytes>,
    pub heavy: Heavy,
    pub view_cache: ViewCache,
    /// Paths of devices and policies.
    pub paths: ValueCache<Paths>,
    pub last_saved: SavedChanges,
    pub started: Instant,
}

/// The endpoints, and what follows from them alone.
pub struct EndpointTable {
    table: Table,
    routes: Routes,
}

impl EndpointTable {
    /// Builds the routes. Fails only if the table declares a method and path twice.
    pub fn new(table: Table) -> Result<Self, String> {
        Ok(Self { routes: Routes::new(table.endpoints())?, table })
    }
}

impl Api {
    /// Builds the API. Fails only if the table declares a method and path twice.
    pub fn new(table: Table, gateway: Gateway, settings: Settings) -> Result<Arc<Self>, String> {
        Ok(Self::over(EndpointTable::new(table)?, gateway, settings))
    }

    /// Builds the API over a gateway.
    pub fn over(endpoints: EndpointTable, gateway: Gateway, settings: Settings) -> Arc<Self> {
        let EndpointTable { table, routes } = endpoints;
        let auth = Auth::new(&settings.auth, &gateway);
        Arc::new(Self {
            table,
            routes,
            filter_names: OnceLock::new(),
            settings,
            gateway,
            auth,
            openapi: OnceLock::new(),
            heavy: Heavy::default(),
            view_cache: ViewCache::default(),
            paths: ValueCache::default(),
            last_saved: SavedChanges::default(),
            started: Instant::now(),
        })
    }

    /// Returns the OpenAPI document.
    pub fn openapi(&self) -> Bytes {
        self.openapi.get_or_init(|| Bytes::from(openapi::embedded())).clone()
    }

    /// Returns the fields of the objects that an endpoint lists, if its query may name them.
    pub fn filter_names(&self, endpoint: &Endpoint) -> &[String] {
        if !endpoint.output.is_filtered() {
            return &[];
        }
        let read = || openapi::query_names(&self.openapi()).expect("a test reads the committed document");
        self.filter_names.get_or_init(read).get(&endpoint.operation).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> Arc<Bootstrap> {
        self.gateway.config()
    }

    /// Returns the store and the engine. Fails while the store cannot be used.
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

/// Attempt that the write path of the store does not audit by itself.
struct Attempt {
    audit: Audit,
    subject: String,
    /// User name that the caller tried to sign in as.
    username: Option<String>,
    denied: bool,
    /// Error code and message, if the attempt failed.
    error: Option<(&'static str, String)>,
    /// Number of earlier refusals without an audit entry.
    unrecorded: u64,
}

/// Context of one request: its identity, and access to the service. A clone shares it.
#[derive(Clone)]
pub struct Cx(Arc<RequestContext>);

/// Content of a [`Cx`].
#[derive(Clone)]
pub struct RequestContext {
    pub api: Arc<Api>,
    pub actor: Actor,
    pub connection: ConnectionInfo,
    pub request_id: String,
    pub effect: Effect,
    /// Object in the path, for the audit entry.
    subject: String,
}

impl Deref for Cx {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        &self.0
    }
}

impl Cx {
    pub fn new(
        api: Arc<Api>,
        row: &Endpoint,
        actor: Actor,
        connection: ConnectionInfo,
        request_id: &str,
        params: &Params,
    ) -> Self {
        let subject = params.0.values().next().cloned().unwrap_or_default();
        let request_id = request_id.to_owned();
        Self(Arc::new(RequestContext { api, actor, connection, request_id, effect: row.effect, subject }))
    }

    /// Returns the store and the engine. Fails while the store cannot be used.
    pub fn open(&self) -> Result<&Open, ApiError> {
        self.api.open()
    }

    /// Returns the caller, to set what an endpoint found out about it.
    pub fn actor_mut(&mut self) -> &mut Actor {
        &mut Arc::make_mut(&mut self.0).actor
    }

    /// Checks that the caller has this access class. For endpoints that allow part of their function to some callers
    /// only.
    pub fn require(&self, access: Access) -> Result<(), ApiError> {
        check(&self.actor, access)
    }

    /// Returns the audit entry for a change by this request.
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

    /// Returns the audit entry of an endpoint that changes the store.
    pub fn own_ticket(&self) -> Result<AuditTicket, ApiError> {
        let Effect::Stores(audit) = self.effect else {
            // An endpoint whose declaration does not match its handler must not change anything without an audit entry.
            let error = std::io::Error::other("this row is not declared as one that changes the store");
            return Err(ApiError::internal(&error));
        };
        Ok(AuditTicket {
            named: Some(self.subject.clone()).filter(|subject| !subject.is_empty()),
            ..self.ticket(audit)
        })
    }

    /// Changes the store, with the audit entry of this endpoint in the same transaction. Blocks on disk I/O.
    pub fn commit_blocking<T>(
        &self,
        edit: impl FnOnce(&mut State) -> Result<T, EditError>,
    ) -> Result<T, ApiError> {
        match self.open()?.store.commit(self.own_ticket()?, edit) {
            Ok(value) => Ok(value),
            // The dispatcher records all failures of handlers, including this one.
            Err(CommitError::Refused { error, ticket: _ }) => Err(error.into()),
            Err(CommitError::Store(error)) => Err(error.into()),
        }
    }

    /// Changes the store like [`Cx::commit_blocking`], for async handlers.
    pub async fn commit<T: Send + 'static>(
        &self,
        edit: impl FnOnce(&mut State) -> Result<T, EditError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let cx = self.clone();
        blocking(move || cx.commit_blocking(edit)).await?
    }

    /// Waits until the resolver uses the stored filters, lists and rewrites.
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

    /// Writes an audit entry for read access to sensitive data.
    pub async fn record_reading(&self, audit: Audit) -> Result<(), ApiError> {
        let subject = self.subject.clone();
        let attempt = Attempt { audit, subject, username: None, denied: false, error: None, unrecorded: 0 };
        self.record(attempt).await
    }

    /// Writes the audit entry of a change that was refused or failed. Endpoints that change nothing write none.
    pub async fn record_failure(&self, error: &ApiError) {
        self.record_failure_of(error, None, None).await;
    }

    /// Writes the audit entry of a failure about an object that the path does not name.
    ///
    /// Entries for refusals, and for failed attempts of callers without a credential, are rate-limited. Beyond the
    /// limit they are only counted, and the next entry contains the count. Refused requests therefore cannot fill the
    /// disk.
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
            tracing::error!(request_id = self.request_id, action = audit.action, error = %lost, "failed to write an audit entry");
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
