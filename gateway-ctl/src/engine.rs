//! Engine: store, observer, BPF programs, tunnels and the reconcile loop, wired together.
//!
//! Stopping it leaves programs, maps, routes and rules in the kernel, which keep enforcing the last plan.

mod attachments;
mod boot_time;
mod enforcement;
mod exit_addresses;
mod leak_probes;
mod observation;
mod services;
mod waking;

use std::sync::Arc;

use gateway_core::compile::attachments;
use gateway_core::facts::Facts;
use gateway_core::network::UplinkNumbers;
use gateway_model::settings::Bootstrap;
use tokio::task::{JoinError, JoinHandle};

use crate::configuration::{Configuration, endpoint_name_servers, network, reconcile_interval};
use crate::engines::EgressEngines;
use crate::handles::Handles;
use crate::os::bpf::{AttachMode, Programs};
use crate::os::observe::Observer;
use crate::os::openvpn::OpenVpn;
use crate::os::proxy::Relay;
use crate::os::transport::Transports;
use crate::os::wireguard::WireGuard;
use crate::os::{Netlink, bpf, netlink};
use crate::reconcile::{
    self, Existing, Generations, Handle, Kernel, KernelDataplane, Reason, Settings, Stopped, Subsystems,
    install_default_deny,
};
use crate::service::{Context, Services};
use crate::services::active_alerts::ActiveAlerts;
use crate::services::plan_history::PlanHistory;
use crate::store::Store;
use crate::supervise::Supervisor;
use crate::world::Worlds;

use boot_time::BootTime;
pub use enforcement::{Detached, Enforcement, Pending};
use observation::Observation;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open the connection to the kernel's network configuration")]
    Netlink(#[from] netlink::Error),
    #[error("cannot prepare the dataplane")]
    Dataplane(#[from] bpf::Error),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error("the loading of the kernel programs ended early")]
    Panicked(#[source] JoinError),
}

/// Programs on their way into the kernel. Their verification takes most of the time of a start. It changes nothing that
/// is in force, so it may begin before the store is open.
pub struct LoadingPrograms(JoinHandle<Result<Programs, bpf::Error>>);

impl LoadingPrograms {
    /// Begins to load the programs in a thread of its own.
    pub fn begin(config: &Bootstrap) -> LoadingPrograms {
        let pins = config.bpf.pin_dir.clone();
        LoadingPrograms(tokio::task::spawn_blocking(move || Programs::load(&pins)))
    }

    async fn finish(self) -> Result<Programs, Error> {
        Ok(self.0.await.map_err(Error::Panicked)??)
    }
}

/// Running engine.
pub struct Engine {
    context: Context,
    services: Services,
    /// Held while the probes of a leak check are in transit.
    probing: tokio::sync::Mutex<()>,
}

impl Engine {
    /// Starts the engine. Returns when the first plan is in the kernel, or when it is known why it is not.
    pub async fn start(
        configuration: Configuration,
        store: Arc<Store>,
        active_alerts: ActiveAlerts,
        programs: LoadingPrograms,
    ) -> Result<Engine, Error> {
        let in_force = configuration.with(&store.current());
        let config = in_force.config.clone();
        let blocked = install_default_deny(&lans(&config), Existing::Keep).await;
        if !blocked.is_ok() {
            tracing::error!(failed = ?blocked.failed, "failed to install the default-deny rules");
        }
        // Before the first plan: an unconfirmed change must not come into force again.
        if let Err(error) = store.revert_overdue() {
            tracing::error!(%error, "failed to roll back an unconfirmed change");
        }
        store.renew_reserve();
        if let Err(error) = store.end_overdue() {
            tracing::error!(%error, "failed to record ended objects");
        }
        let opening = store.clone();
        drop(tokio::task::spawn_blocking(move || opening.open_tunnel_secrets()));
        let supervisor = Supervisor::new(store.clock().clone());
        let netlink = Netlink::open()?;
        let programs = programs.finish().await?;
        configuration.recall_uplinks(&programs.uplinks()?);
        let dataplane = KernelDataplane::new(programs);
        dataplane.number_by(Generations::open(store.clone()));
        let endpoint_names = gateway_outbound::Resolver::new(&endpoint_name_servers(&in_force));
        let openvpn = OpenVpn::new(config.runtime_dir.join("openvpn"), endpoint_names.clone());
        let engines = EgressEngines {
            wireguard: Arc::new(WireGuard::new().await),
            openvpn: Arc::new(openvpn.with_supervisor(supervisor.clone())),
            transports: Arc::new(Transports::new(supervisor.clone())),
            relay: Arc::new(Relay::new(supervisor.clone())),
        };
        let observer = Observer::supervised(netlink.clone(), &supervisor)?;
        let kernel_changes = observer.changes();
        let services = Services::new(supervisor);
        let attached = Some(AttachMode::of_this_kernel());
        let worlds = Arc::new(Worlds::new(store.clone(), configuration, attached));
        let observation = Observation {
            boot_time: BootTime::new(store.clock().clone()),
            observer,
            worlds: worlds.clone(),
            services: services.clone(),
        };
        let clock = store.clock().clone();
        let handles = Handles::new(&config.state_dir, clock.clone());
        handles.get::<PlanHistory>().follow(&dataplane, &worlds);
        let (wake, looping) = reconcile::start(
            Subsystems::new(Kernel::new(netlink.clone(), engines.backends(netlink)), dataplane.clone()),
            observation,
            worlds.clone(),
            move || clock.now(),
            Settings { interval: reconcile_interval(&config) },
        );
        let context = Context {
            store,
            worlds,
            wake,
            dataplane,
            engines,
            kernel_changes,
            endpoint_names,
            active_alerts,
            handles,
        };
        services.start_all(services::list(&context, looping));
        context.wake.run_now(Reason::Start).await?;
        Ok(Engine { context, services, probing: tokio::sync::Mutex::default() })
    }

    /// Returns the handles of the services that enforce the plan.
    pub fn handles(&self) -> &Handles {
        &self.context.handles
    }

    /// Returns the services that enforce the plan.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Returns the resolver of the hosts that the daemon itself connects to.
    pub fn endpoint_names(&self) -> &gateway_outbound::Resolver {
        &self.context.endpoint_names
    }

    /// Returns the handle of the reconcile loop.
    pub fn wake(&self) -> &Handle {
        &self.context.wake
    }

    /// Returns the publisher of the gateway's state.
    pub fn worlds(&self) -> &Arc<Worlds> {
        &self.context.worlds
    }

    pub fn dataplane(&self) -> KernelDataplane {
        self.context.dataplane.clone()
    }
}

/// Installs default deny for early boot: everything from the LAN is blocked until a daemon has a plan. A plan that is
/// already live continues.
pub async fn guard(config: &Bootstrap) -> Result<(), Error> {
    install_guard(config, Existing::Keep, LoadingPrograms::begin(config)).await.map(drop)
}

/// Blocks everything now, whatever plan is live. Used if the store cannot be read.
///
/// It takes the programs that are already on their way into the kernel: another load at the same time would meet maps
/// that are half pinned.
pub async fn block(config: &Bootstrap, programs: LoadingPrograms) -> Result<(), Error> {
    Ok(install_guard(config, Existing::Replace, programs).await?.deny_all()?)
}

/// Installs the default-deny rules and attaches the programs.
async fn install_guard(
    config: &Bootstrap,
    existing: Existing,
    programs: LoadingPrograms,
) -> Result<Programs, Error> {
    let network = network(config, &mut UplinkNumbers::default());
    let blocked = install_default_deny(&network.lan, existing).await;
    for failure in &blocked.failed {
        tracing::error!(resource = %failure.resource, error = %failure.error, "failed to install the default-deny rules");
    }
    let facts = match Netlink::open().and_then(Observer::new) {
        Ok(observer) => observer.facts(|_| false).await,
        Err(error) => Err(error),
    };
    let facts = facts.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to list the interfaces: only configured ones are guarded");
        Facts::default()
    });
    let uplinks = network.uplinks.iter().map(|uplink| uplink.interface.as_str()).collect();
    let attach = attachments(&network, &facts, &uplinks);
    let mut programs = programs.finish().await?;
    let attached = programs.attach(&attach);
    for (interface, error) in &attached.failed {
        tracing::error!(%interface, %error, "failed to attach");
    }
    Ok(programs)
}

fn lans(config: &Bootstrap) -> Vec<String> {
    config.all_lans().iter().map(ToString::to_string).collect()
}
