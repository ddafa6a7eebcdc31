//! What every handler is given: the running service and the request's identity.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gateway_ctl::store::CommitError;
use gateway_model::{EditError, State};

use crate::access::{Access, Actor, check};
use crate::error::ApiError;
use crate::gateway::{Attempt, Gateway, Open, blocking};
use crate::openapi;
use crate::request::Params;
use crate::table::{Audit, Effect, Routes, Row, Table};

/// What the HTTP side needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names under which browsers may address the gateway, besides addresses and `localhost`.
    pub host_names: Vec<String>,
    /// Bytes.
    pub body_limit: usize,
    /// `network.mode` of the configuration.
    pub mode: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { host_names: Vec::new(), body_limit: 2 * 1024 * 1024, mode: "primary".to_owned() }
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
    pub openapi: Bytes,
    pub started: Instant,
}

impl Api {
    /// Fails only if the table declares one method and path twice.
    pub fn new(table: Table, gateway: Gateway, settings: Settings) -> Result<Arc<Self>, String> {
        let routes = Routes::new(table.rows())?;
        let openapi = Bytes::from(openapi::text(&table));
        let filter_names = openapi::filters(&table);
        Ok(Arc::new(Self {
            table,
            routes,
            filter_names,
            settings,
            gateway,
            openapi,
            started: Instant::now(),
        }))
    }

    /// The store and the engine; refuses while the store cannot be used.
    pub fn open(&self) -> Result<&Open, ApiError> {
        match &self.gateway {
            Gateway::Open(open) => Ok(open),
            Gateway::Blocked { reason } => {
                Err(ApiError::not_ready(format!("All traffic is blocked: {reason}"))
                    .detail("state", "blocked"))
            }
        }
    }
}

/// Where a connection comes from.
#[derive(Clone, Debug)]
pub enum Peer {
    Remote {
        address: SocketAddr,
        /// The connection is encrypted by this daemon.
        tls: bool,
    },
    /// The socket in the runtime directory, which only root can open.
    Local,
}

impl Peer {
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Peer::Remote { address, tls: _ } => Some(address.ip().to_canonical()),
            Peer::Local => None,
        }
    }

    /// Whether cookies may carry `Secure`.
    pub fn is_tls(&self) -> bool {
        matches!(self, Peer::Remote { tls: true, .. })
    }
}

/// One request's identity, and the way to everything else.
#[derive(Clone)]
pub struct Cx {
    pub api: Arc<Api>,
    pub actor: Actor,
    pub request_id: String,
    pub effect: Effect,
    /// What the path names, for the audit entry.
    subject: String,
}

impl Cx {
    pub fn new(api: Arc<Api>, row: &Row, actor: Actor, request_id: &str, params: &Params) -> Self {
        let subject = params.0.values().next().cloned().unwrap_or_default();
        Self { api, actor, request_id: request_id.to_owned(), effect: row.effect, subject }
    }

    /// The store and the engine.
    pub fn open(&self) -> Result<&Open, ApiError> {
        self.api.open()
    }

    /// Refuses a caller that has not this capability, for what a row allows only some of its callers.
    pub fn require(&self, access: Access) -> Result<(), ApiError> {
        check(&self.actor, access)
    }

    /// Changes the store, with the audit entry of this row in the same transaction. Waits for the disk.
    pub fn commit_blocking<T>(
        &self,
        edit: impl FnOnce(&mut State) -> Result<T, EditError>,
    ) -> Result<T, ApiError> {
        let Effect::Stores(audit) = self.effect else {
            // A declaration that does not fit its handler must not change anything unrecorded.
            let error = std::io::Error::other("this row is not declared as one that changes the store");
            return Err(ApiError::internal(&error));
        };
        match self.open()?.store.commit(self.ticket(audit), edit) {
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

    /// Writes an audit entry for something that was read and should be known to have been.
    pub async fn record_reading(&self, audit: Audit) -> Result<(), ApiError> {
        let attempt = Attempt { audit, subject: self.subject.clone(), denied: false, error: None };
        self.api.gateway.record(self, attempt).await
    }

    /// Writes the audit entry of a change that was refused or failed. Rows that change nothing leave none.
    pub async fn record_failure(&self, error: &ApiError) {
        if error.recorded {
            return;
        }
        let Some(audit) = self.effect.audit() else { return };
        let attempt = Attempt {
            audit,
            subject: self.subject.clone(),
            denied: error.code.status() == http::StatusCode::FORBIDDEN,
            error: Some((error.code.as_str(), error.message.clone())),
        };
        if let Err(lost) = self.api.gateway.record(self, attempt).await {
            tracing::error!(request_id = self.request_id, action = audit.action, error = %lost, "audit entry lost");
        }
    }

    /// Writes the audit entry of an action outside the store.
    pub async fn record_success(&self, subject: Option<&str>) -> Result<(), ApiError> {
        let Some(audit) = self.effect.audit() else { return Ok(()) };
        let subject = subject.unwrap_or(&self.subject).to_owned();
        self.api.gateway.record(self, Attempt { audit, subject, denied: false, error: None }).await
    }
}
