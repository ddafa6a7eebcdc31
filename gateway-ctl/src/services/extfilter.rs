//! External filter: one API session shared by all callers, closed when it is no longer needed.

use std::sync::Arc;
use std::time::Duration;

use gateway_dns::extfilter::{Backend, Error, Status};
use gateway_dns::upstream::Context;
use gateway_model::State;
use gateway_model::settings::bootstrap::DnsBackend;
use gateway_model::settings::groups::ExtFilterConfig;
use gateway_outbound::Resolver;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::store::Store;
use crate::tls::Factory;
use crate::world::Worlds;

/// Idle time after which the session is closed, because the filter has few session slots.
const IDLE: Duration = Duration::from_secs(120);
/// Timeout for closing a session with a filter that does not respond.
const SIGN_OUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Holder of the session.
pub struct Service {
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    context: Arc<Context>,
    held: Mutex<Option<FilterSession>>,
}

struct FilterSession {
    config: ExtFilterConfig,
    backend: Arc<Backend>,
    used: tokio::time::Instant,
}

impl Service {
    pub fn new(
        store: Arc<Store>,
        worlds: Arc<Worlds>,
        tls: &Arc<Factory>,
        endpoint_names: Resolver,
    ) -> Arc<Service> {
        let client = tls.client("dns extfilter");
        let context = Context::new(endpoint_names, client, |_| {});
        Arc::new(Service { store, worlds, context: Arc::new(context), held: Mutex::default() })
    }

    /// Reports whether the external filter resolves the clients' queries.
    pub fn is_enabled(&self, state: &State) -> bool {
        self.worlds.configuration().with(&state).config.dns.backend == DnsBackend::Extfilter
    }

    /// Returns the current status of the filter.
    pub async fn status(&self) -> Status {
        let state = self.store.current();
        let (config, enabled) = (state.group::<ExtFilterConfig>(), self.is_enabled(&state));
        if !config.is_configured() {
            let error = enabled.then(|| "nothing is resolved: it is not set where the filter is".to_owned());
            return Status { enabled, error, ..Status::default() };
        }
        match self.backend(config.clone()).await {
            Ok(backend) => backend.status(enabled).await,
            Err(error) => Status {
                configured: true,
                enabled,
                url: Some(config.url),
                error: Some(error.to_string()),
                ..Status::default()
            },
        }
    }

    async fn backend(&self, config: ExtFilterConfig) -> Result<Arc<Backend>, Error> {
        let mut held = self.held.lock().await;
        let used = tokio::time::Instant::now();
        if let Some(same) = held.as_mut().filter(|held| held.config == config) {
            same.used = used;
            return Ok(same.backend.clone());
        }
        let backend = Arc::new(Backend::new(&config.url, config.password.clone(), self.context.clone())?);
        if let Some(other) = held.replace(FilterSession { config, backend: backend.clone(), used }) {
            leave(&other.backend).await;
        }
        Ok(backend)
    }

    /// Closes the session, if there is one.
    pub async fn release(&self) {
        if let Some(held) = self.held.lock().await.take() {
            leave(&held.backend).await;
        }
    }

    /// Closes sessions that are idle or belong to a filter that is no longer configured. Runs until it is aborted.
    pub async fn follow(self: Arc<Self>) {
        let mut revisions = self.store.watch();
        loop {
            tokio::select! {
                changed = revisions.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(IDLE) => {}
            }
            let config = self.store.current().group::<ExtFilterConfig>();
            let mut held = self.held.lock().await;
            if let Some(old) = held.take_if(|held| held.config != config || held.used.elapsed() >= IDLE) {
                leave(&old.backend).await;
            }
        }
    }
}

async fn leave(backend: &Backend) {
    match timeout(SIGN_OUT_TIMEOUT, backend.log_out()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "failed to sign out from the external filter"),
        Err(_) => tracing::debug!("failed to sign out from the external filter in time"),
    }
}
