//! What every handler is given: the running service and the request's identity.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use bytes::Bytes;
use tokio::net::{TcpListener, UnixListener};

use crate::access::Actor;
use crate::error::ApiError;
use crate::gateway::{Attempt, Gateway};
use crate::openapi;
use crate::request::Params;
use crate::table::{Effect, Routes, Row, Table};

/// What the HTTP side needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names under which browsers may address the gateway, besides addresses and `localhost`.
    pub host_names: Vec<String>,
    /// Bytes.
    pub body_limit: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { host_names: Vec::new(), body_limit: 2 * 1024 * 1024 }
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
        Ok(Arc::new(Self { table, routes, filter_names, settings, gateway, openapi, started: Instant::now() }))
    }

    /// Refuses while the store cannot be used.
    pub fn ready(&self) -> Result<(), ApiError> {
        match &self.gateway {
            Gateway::Open(_) => Ok(()),
            Gateway::Blocked { reason } => {
                Err(ApiError::not_ready(format!("All traffic is blocked: {reason}")).detail("state", "blocked"))
            }
        }
    }
}

/// Where a connection comes from.
#[derive(Clone, Debug)]
pub enum Peer {
    Remote(SocketAddr),
    /// The socket in the runtime directory, which only root can open.
    Local,
}

impl Peer {
    /// Empty for the local socket.
    pub fn ip(&self) -> String {
        match self {
            Peer::Remote(address) => address.ip().to_canonical().to_string(),
            Peer::Local => String::new(),
        }
    }
}

impl Connected<IncomingStream<'_, TcpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Peer::Remote(*stream.remote_addr())
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(_: IncomingStream<'_, UnixListener>) -> Self {
        Peer::Local
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

    /// Writes the audit entry of a change that was refused or failed. Rows that change nothing leave none.
    pub async fn record_failure(&self, error: &ApiError) {
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
