//! Contract of services: start, supervision, health and end of each long-lived part of the daemon.
//!
//! A service is one value in a list, and runs under supervision. It may contribute facts to each run of the reconcile
//! loop, report the health of the component that it drives, measure it, and erase what it keeps of the LAN. At the end,
//! it may release its resources.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use gateway_core::facts::Facts;
use gateway_core::health::Check;
use gateway_model::settings::groups::WipeLevel;
use gateway_outbound::Resolver;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engines::EgressEngines;
use crate::handles::Handles;
use crate::os::observe::KernelChanges;
use crate::reconcile::{Handle, KernelDataplane};
use crate::services::active_alerts::ActiveAlerts;
use crate::store::Store;
use crate::supervise::{Supervisor, TaskName};
use crate::world::Worlds;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
type Contribution = Box<dyn Fn(&mut Facts) + Send + Sync>;
type HealthCheck = Arc<dyn Fn() -> BoxFuture<'static, Vec<Health>> + Send + Sync>;
type Measurement = Arc<dyn Fn(&mut Registry) + Send + Sync>;
type Erasure = Arc<dyn Fn(WipeLevel) -> BoxFuture<'static, io::Result<()>> + Send + Sync>;
type Release = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Shared context of services: the store with its clock, the world, the reconcile loop, the kernel, the alerts, and the
/// handles of all services.
#[derive(Clone)]
pub struct Context {
    pub store: Arc<Store>,
    pub worlds: Arc<Worlds>,
    /// Handle of the reconcile loop, to trigger runs and follow their results.
    pub wake: Handle,
    pub dataplane: KernelDataplane,
    pub engines: EgressEngines,
    /// Changes that the kernel reports.
    pub kernel_changes: watch::Receiver<KernelChanges>,
    /// Resolver of the hosts that the daemon itself connects to.
    pub endpoint_names: Resolver,
    pub active_alerts: ActiveAlerts,
    pub handles: Handles,
}

/// Long-lived part of the daemon.
pub struct Service {
    name: TaskName,
    start: Start,
    contribution: Option<Contribution>,
    health: Option<HealthCheck>,
    measurement: Option<Measurement>,
    erasure: Option<Erasure>,
    release: Option<Release>,
}

enum Start {
    /// Restarts after its task dies.
    Again(Box<dyn FnMut() -> Work + Send>),
    /// Ends the daemon when its task dies; the plan in the kernel stays in force meanwhile.
    Vital(Work),
    /// Has no task.
    Idle,
}

/// Health of a function that a service has, beyond the health of its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub check: Check,
    /// Time since which it is so, where the service knows.
    pub since: Option<Timestamp>,
    /// Number of checks so far, where the service counts them.
    pub checks: u64,
}

impl From<Check> for Health {
    fn from(check: Check) -> Health {
        Health { check, since: None, checks: 0 }
    }
}

impl Service {
    /// Creates a service that is restarted whenever it dies. Each start calls `run` with the context again.
    pub fn new<C, F>(name: &'static str, context: &C, mut run: impl FnMut(C) -> F + Send + 'static) -> Service
    where
        C: Clone + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let context = context.clone();
        Service::with(name, Start::Again(Box::new(move || Box::pin(run(context.clone())))))
    }

    /// Creates a vital service: the daemon cannot continue without it.
    pub fn vital(name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> Service {
        Service::with(name, Start::Vital(Box::pin(work)))
    }

    /// Creates a service that acts only on request.
    pub fn idle(name: &'static str) -> Service {
        Service::with(name, Start::Idle)
    }

    fn with(name: &'static str, start: Start) -> Service {
        Service {
            name: name.into(),
            start,
            contribution: None,
            health: None,
            measurement: None,
            erasure: None,
            release: None,
        }
    }

    /// Adds a contribution of the service to the facts of each run.
    pub fn contributes(mut self, contribution: impl Fn(&mut Facts) + Send + Sync + 'static) -> Service {
        self.contribution = Some(Box::new(contribution));
        self
    }

    /// Adds a health report: one check or several, or none while there is nothing to report.
    pub fn reports<F>(mut self, health: impl Fn() -> F + Send + Sync + 'static) -> Service
    where
        F: Future<Output: IntoIterator<Item = Health>> + Send + 'static,
    {
        self.health = Some(Arc::new(move || {
            let report = health();
            Box::pin(async move { report.await.into_iter().collect() })
        }));
        self
    }

    /// Adds what the service measures to `/metrics`.
    pub fn measures(mut self, measurement: impl Fn(&mut Registry) + Send + Sync + 'static) -> Service {
        self.measurement = Some(Arc::new(measurement));
        self
    }

    /// Adds a function that erases what the service keeps of the LAN and its hosts, in memory and on disk, at each level
    /// of a wipe. At [`WipeLevel::Hard`], the folder of the store is destroyed afterwards, and the service must write
    /// nothing more.
    pub fn erases<F>(mut self, erasure: impl Fn(WipeLevel) -> F + Send + Sync + 'static) -> Service
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        self.erasure = Some(Arc::new(move |level| Box::pin(erasure(level))));
        self
    }

    /// Adds a function that releases the service's resources after its task has ended.
    pub fn releases<F>(mut self, release: impl FnOnce() -> F + Send + 'static) -> Service
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.release = Some(Box::new(move || Box::pin(release())));
        self
    }
}

/// Running services, in the order of their start.
#[derive(Clone)]
pub struct Services(Arc<Inner>);

struct Inner {
    supervisor: Supervisor,
    running: Mutex<Vec<Running>>,
}

struct Running {
    name: TaskName,
    task: Option<JoinHandle<()>>,
    contribution: Option<Contribution>,
    health: Option<HealthCheck>,
    measurement: Option<Measurement>,
    erasure: Option<Erasure>,
    release: Option<Release>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Services {
    pub fn new(supervisor: Supervisor) -> Services {
        Services(Arc::new(Inner { supervisor, running: Mutex::default() }))
    }

    /// Returns the supervisor of the services' tasks and of the tasks that they started.
    pub fn supervisor(&self) -> &Supervisor {
        &self.0.supervisor
    }

    pub fn start(&self, service: Service) {
        let Service { name, start, contribution, health, measurement, erasure, release } = service;
        let task = match start {
            Start::Again(run) => Some(self.0.supervisor.restart(name.clone(), run)),
            Start::Vital(work) => Some(self.0.supervisor.vital(name.clone(), work)),
            Start::Idle => None,
        };
        self.0.running.lock().push(Running {
            name,
            task,
            contribution,
            health,
            measurement,
            erasure,
            release,
        });
    }

    pub fn start_all(&self, services: impl IntoIterator<Item = Service>) {
        services.into_iter().for_each(|service| self.start(service));
    }

    pub fn names(&self) -> Vec<TaskName> {
        self.0.running.lock().iter().map(|service| service.name.clone()).collect()
    }

    /// Adds the contributions of the services to the facts.
    pub fn contribute(&self, facts: &mut Facts) {
        for contribution in self.0.running.lock().iter().filter_map(|service| service.contribution.as_ref()) {
            contribution(facts);
        }
    }

    /// Returns the health reports of the services.
    pub async fn health(&self) -> Vec<Health> {
        let checks: Vec<HealthCheck> =
            self.0.running.lock().iter().filter_map(|service| service.health.clone()).collect();
        let mut all = Vec::new();
        for check in checks {
            all.extend(check().await);
        }
        all
    }

    /// Adds the measurements of the services.
    pub fn measure(&self, registry: &mut Registry) {
        let measurements: Vec<Measurement> =
            self.0.running.lock().iter().filter_map(|service| service.measurement.clone()).collect();
        measurements.iter().for_each(|measurement| measurement(registry));
    }

    /// Makes each service erase what it keeps. Continues after a failure and returns the first error.
    pub async fn erase(&self, level: WipeLevel) -> io::Result<()> {
        let owners: Vec<(TaskName, Erasure)> = self
            .0
            .running
            .lock()
            .iter()
            .filter_map(|service| Some((service.name.clone(), service.erasure.clone()?)))
            .collect();
        let mut outcome = Ok(());
        for (name, erasure) in owners {
            if let Err(error) = erasure(level).await {
                tracing::error!(service = %name, %level, %error, "failed to erase what a service keeps");
                outcome = outcome.and(Err(io::Error::other(format!("{name}: {error}"))));
            }
        }
        outcome
    }

    /// Aborts the tasks at once and keeps the resources of the services.
    pub fn abort(&self) {
        self.supervisor().stop();
        self.0.running.lock().iter().filter_map(|service| service.task.as_ref()).for_each(JoinHandle::abort);
    }

    /// Ends all services, the newest first. Returns when each has released its resources.
    pub async fn end(&self) {
        self.abort();
        let running = std::mem::take(&mut *self.0.running.lock());
        for Running { task, release, .. } in running.into_iter().rev() {
            if let Some(task) = task {
                // The task was aborted or has completed; both are fine.
                let _ = task.await;
            }
            if let Some(release) = release {
                release().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gateway_core::health::Finding;

    use super::*;

    fn noted(notes: &Arc<Mutex<Vec<&'static str>>>, name: &'static str) -> Service {
        let notes = notes.clone();
        Service::new(name, &(), |()| std::future::pending()).releases(move || async move {
            notes.lock().push(name);
        })
    }

    #[tokio::test(start_paused = true)]
    async fn services_end_in_the_opposite_order_of_their_start() {
        let (services, notes) = (Services::new(Supervisor::default()), Arc::default());
        services.start_all(["first", "second", "third"].map(|name| noted(&notes, name)));
        assert_eq!(services.names(), ["first", "second", "third"]);
        services.end().await;
        assert_eq!(*notes.lock(), ["third", "second", "first"]);
        assert_eq!((services.names().len(), services.supervisor().report().len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_ends_with_another_one_at_the_stop_has_not_failed() {
        let services = Services::new(Supervisor::default());
        let (sender, receiver) = tokio::sync::watch::channel(());
        let starts = Arc::new(Mutex::new(0));
        let counted = starts.clone();
        services.start(Service::new("publisher", &receiver, move |mut receiver| {
            *counted.lock() += 1;
            async move { while receiver.changed().await.is_ok() {} }
        }));
        tokio::task::yield_now().await;
        // At the stop, the task that owns the channel may be dropped first.
        let publisher = services.supervisor().clone();
        services.supervisor().stop();
        drop(sender);
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!((publisher.failure(), *starts.lock()), (None, 1));
        services.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_panics_is_reported_within_five_seconds_and_gets_its_context_again() {
        let services = Services::new(Supervisor::default());
        let runs = Arc::new(Mutex::new(0));
        services.start(Service::new("watcher", &runs, |runs| async move {
            let run = {
                let mut runs = runs.lock();
                *runs += 1;
                *runs
            };
            assert!(run > 1, "broken");
            std::future::pending().await
        }));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let health = &services.supervisor().report()["watcher"];
        assert_eq!((health.failure.as_deref(), health.starts), (Some("it has panicked: broken"), 2));
        assert_eq!(*runs.lock(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn facts_and_health_come_from_the_services_that_have_some() {
        let services = Services::new(Supervisor::default());
        let check = Check::of("backup", vec![Finding::backup_failed("no room")], "");
        let health = Health { check, since: None, checks: 3 };
        let reported = health.clone();
        services.start(Service::vital("loop", std::future::pending()));
        services.start(Service::idle("backups").reports(move || std::future::ready(Some(reported.clone()))));
        services.start(Service::idle("quiet").reports(|| std::future::ready(None::<Health>)));
        services.start(Service::idle("tunnels").contributes(|facts| facts.booted_at = 7));
        let mut facts = Facts::default();
        services.contribute(&mut facts);
        assert_eq!((facts.booted_at, services.health().await), (7, vec![health]));
    }
}
