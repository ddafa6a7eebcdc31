//! A gateway without a kernel: it compiles, explains and stores, and enforces nothing.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::compile::{Compiled, Input, compile};
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_ctl::effects::bpf;
use gateway_ctl::effects::proxy::RelayStatus;
use gateway_ctl::effects::transport::Seen as TransportsSeen;
use gateway_ctl::engine::{self, StateView};
use gateway_ctl::reconcile::{Reason, Status, Stopped};
use gateway_ctl::services::proxies::Seen as ProxiesSeen;
use gateway_ctl::services::tunnels::Seen;
use gateway_ctl::store::Store;
use gateway_model::kinds::routing_policy::Hits;
use tokio::sync::watch;

use super::{Counted, Enforcement, Pending};

/// A gateway without a kernel behind it.
pub struct Detached {
    store: Arc<Store>,
    network: Network,
    status: watch::Sender<Arc<Status>>,
}

impl Detached {
    pub fn new(store: Arc<Store>, network: Network) -> Self {
        Self { store, network, status: watch::channel(Arc::default()).0 }
    }
}

impl Enforcement for Detached {
    fn attached(&self) -> Option<&'static str> {
        None
    }

    fn status(&self) -> watch::Receiver<Arc<Status>> {
        self.status.subscribe()
    }

    fn facts(&self) -> Arc<Facts> {
        Arc::default()
    }

    fn network(&self) -> &Network {
        &self.network
    }

    fn compiled(&self) -> Arc<Compiled> {
        self.view().compiled.clone()
    }

    fn view(&self) -> Arc<StateView> {
        let (state, now) = (self.store.current(), self.store.clock().now());
        let facts = Arc::<Facts>::default();
        let compiled = compile(&Input { state: &state, network: &self.network, facts: &facts, now });
        Arc::new(StateView { state, facts, compiled: Arc::new(compiled) })
    }

    fn tunnels(&self) -> Arc<Seen> {
        Arc::default()
    }

    fn proxies(&self) -> Arc<ProxiesSeen> {
        Arc::default()
    }

    fn relayed(&self) -> RelayStatus {
        RelayStatus::default()
    }

    fn transports(&self) -> Arc<TransportsSeen> {
        Arc::default()
    }

    fn hits(&self, _: u32) -> Hits {
        Hits::default()
    }

    fn generation(&self) -> Result<u32, bpf::Error> {
        Ok(0)
    }

    fn counters(&self) -> Result<Counted, bpf::Error> {
        Ok(Counted::default())
    }

    fn set_interval(&self, _: Option<Duration>) {}

    fn reconcile(&self, _: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn block(&self) -> Pending<'_, Result<(), engine::Error>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
