//! Commands to a kernel that enforces a plan. The [`World`](crate::world::World) holds its state, the
//! [`Handles`](crate::handles::Handles) what services keep.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::leak_check;

use super::{Engine, Error, LoadingPrograms, block, exit_addresses, leak_probes};
use crate::engines::EgressEngines;
use crate::readings::DataplaneReader;
use crate::reconcile::{Reason, Status, Stopped};
use crate::service::Services;
use crate::services::tunnels::ExitAddresses;

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Kernel behind the API. The default methods are those of a gateway without a kernel.
pub trait Enforcement: Send + Sync {
    /// Reconciles the kernel with the state now. Returns `None` if this gateway enforces nothing. A run that has
    /// already enforced this state is the result of an apply.
    fn reconcile(&self, _reason: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns the time since the reconcile loop last made progress.
    fn loop_idle_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Sets the interval of periodic reconciles; `None` turns them off.
    fn set_interval(&self, _interval: Option<Duration>) {}

    /// Returns the reader of the programs.
    fn dataplane(&self) -> DataplaneReader {
        DataplaneReader::default()
    }

    /// Returns the engines of tunnels, bridges and proxies.
    fn engines(&self) -> Option<&EgressEngines> {
        None
    }

    /// Returns the services that enforce the plan.
    fn services(&self) -> Option<&Services> {
        None
    }

    /// Sends the probes of a leak check, observes what becomes of them, and asks servers for the address that they see.
    fn send_probes(&self, _plan: Arc<leak_check::Plan>) -> Pending<'_, leak_check::Run> {
        let failure = Some("this gateway is not attached to a kernel".to_owned());
        Box::pin(std::future::ready(leak_check::Run { failure, ..leak_check::Run::default() }))
    }

    /// Ends the services that enforce the plan, for good. The plan in the kernel stays.
    fn end(&self) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Blocks everything for good. Nothing is enforced or changed afterwards.
    fn block(&self) -> Pending<'_, Result<(), Error>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Absent kernel: this gateway compiles, explains and stores, but enforces nothing, and reports so.
#[derive(Clone, Copy, Debug)]
pub struct Detached;

impl Enforcement for Detached {}

impl Enforcement for Engine {
    fn reconcile(&self, reason: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
        Box::pin(async move {
            let wake = &self.context.wake;
            let status = match reason {
                Reason::Apply | Reason::Revision => {
                    wake.run_for(reason, self.context.worlds.revision()).await
                }
                _ => wake.run_now(reason).await,
            };
            status.map(Some)
        })
    }

    fn loop_idle_time(&self) -> Duration {
        self.context.wake.idle_time()
    }

    fn set_interval(&self, interval: Option<Duration>) {
        self.context.wake.set_interval(interval);
    }

    fn dataplane(&self) -> DataplaneReader {
        self.context.dataplane.clone().into()
    }

    fn engines(&self) -> Option<&EgressEngines> {
        Some(&self.context.engines)
    }

    fn services(&self) -> Option<&Services> {
        Some(&self.services)
    }

    fn send_probes(&self, plan: Arc<leak_check::Plan>) -> Pending<'_, leak_check::Run> {
        Box::pin(async move {
            // Taps of two runs would read each other's probes.
            let _one_at_a_time = self.probing.lock().await;
            let (dataplane, probed) = (self.context.dataplane.clone(), plan.clone());
            let sent = tokio::task::spawn_blocking(move || leak_probes::run(&dataplane, &probed));
            let (sent, exits) = tokio::join!(sent, exit_addresses::ask(&plan, &self.context.endpoint_names));
            self.context.handles.get::<ExitAddresses>().report(&exits);
            let failure = |error: String| leak_check::Run { failure: Some(error), ..Default::default() };
            let run = match sent {
                Ok(Ok(run)) => run,
                Ok(Err(error)) => failure(format!("{error:#}")),
                Err(error) => failure(error.to_string()),
            };
            leak_check::Run { exits, ..run }
        })
    }

    fn end(&self) -> Pending<'_, ()> {
        Box::pin(self.services.end())
    }

    fn block(&self) -> Pending<'_, Result<(), Error>> {
        Box::pin(async move {
            self.services.abort();
            self.context.engines.openvpn.stop().await;
            let config = self.context.worlds.in_force().config;
            block(&config, LoadingPrograms::begin(&config)).await
        })
    }
}
