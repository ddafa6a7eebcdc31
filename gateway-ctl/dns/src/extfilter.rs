//! External filter backend: a filtering resolver with the API of Pi-hole 6, which the gateway queries and controls.
//!
//! With `dns.backend: extfilter`, its resolver replaces the upstreams for all names. This applies to clients whose
//! queries use the gateway's own egress. This module covers the API: status and blocking.

mod client;
mod error;
mod session;

use std::sync::Arc;

use gateway_model::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::upstream::Context;
use client::Client;
pub use error::Error;
use session::Session;

/// Status of the external filter backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// A backend address is configured.
    pub configured: bool,
    /// The backend is in use.
    pub enabled: bool,
    pub reachable: bool,
    /// Version of the backend's resolver.
    pub version: Option<String>,
    pub url: Option<String>,
    /// Blocking is enabled at the backend.
    pub blocking: Option<bool>,
    /// Queries in the last 24 hours, as the backend counts them.
    pub queries_today: Option<u64>,
    pub blocked_today: Option<u64>,
    pub error: Option<String>,
}

/// Blocking state of the backend, and the seconds until it changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Blocking {
    pub blocking: bool,
    pub timer: Option<f64>,
}

/// Client of the external filter backend. It holds at most one session; call [`Backend::log_out`] before dropping it.
pub struct Backend {
    url: String,
    session: Session,
}

#[derive(Deserialize)]
struct BlockingAnswer {
    blocking: String,
    timer: Option<f64>,
}

#[derive(Deserialize)]
struct SummaryAnswer {
    queries: Queries,
}

#[derive(Deserialize)]
struct Queries {
    total: u64,
    blocked: u64,
}

impl Backend {
    /// Creates the client from the URL of the backend's web server, such as `http://192.168.1.2`. An empty password
    /// means none.
    pub fn new(url: &str, password: Secret, context: Arc<Context>) -> Result<Backend, Error> {
        let client = Client::new(url, context)?;
        Ok(Backend { url: url.to_owned(), session: Session::new(client, password) })
    }

    /// Queries the backend for its status. `enabled`: the backend is in use.
    pub async fn status(&self, enabled: bool) -> Status {
        let mut status =
            Status { configured: true, enabled, url: Some(self.url.clone()), ..Status::default() };
        match self.session.get("info/version").await {
            Ok(answer) => {
                status.reachable = true;
                let version = answer.pointer("/version/ftl/local/version").and_then(Value::as_str);
                status.version = version.map(str::to_owned);
            }
            Err(error) => {
                status.reachable = error.was_answered();
                status.error = Some(error.to_string());
                return status;
            }
        }
        let (blocking, summary) = tokio::join!(self.blocking(), self.summary());
        match blocking {
            Ok(blocking) => status.blocking = Some(blocking.blocking),
            Err(error) => status.error = Some(error.to_string()),
        }
        match summary {
            Ok(queries) => {
                (status.queries_today, status.blocked_today) = (Some(queries.total), Some(queries.blocked));
            }
            Err(error) => status.error = Some(error.to_string()),
        }
        status
    }

    pub async fn blocking(&self) -> Result<Blocking, Error> {
        read_blocking(self.session.get("dns/blocking").await?)
    }

    async fn summary(&self) -> Result<Queries, Error> {
        let answer = self.session.get("stats/summary").await?;
        Ok(serde_json::from_value::<SummaryAnswer>(answer).map_err(|_| Error::Malformed)?.queries)
    }

    /// Ends the session at the backend.
    pub async fn log_out(&self) -> Result<(), Error> {
        self.session.log_out().await
    }
}

fn read_blocking(answer: Value) -> Result<Blocking, Error> {
    let answer: BlockingAnswer = serde_json::from_value(answer).map_err(|_| Error::Malformed)?;
    let blocking = match answer.blocking.as_str() {
        "enabled" => true,
        "disabled" => false,
        // `failed`: the resolver of the backend does not run.
        _ => return Err(Error::Malformed),
    };
    Ok(Blocking { blocking, timer: answer.timer })
}

#[cfg(test)]
mod tests;
