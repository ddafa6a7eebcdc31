//! Supervision of the daemon's long-lived tasks: detects at once when a task panics or ends.
//!
//! A restartable task starts again with growing pauses. The others are vital: when one of them dies, the daemon exits
//! with an error and the service manager restarts it. The plan in the kernel stays in force meanwhile. A panic of a
//! short-lived task ends only that task; [`crate::panics`] logs and counts it.
//!
//! Decision 0075 says why.

mod faults;

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use gateway_outbound::backoff::Backoff;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::clock::{SharedClock, SystemClock};
use crate::panics;

const RESTART_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// Running time since the last start after which a task counts as healthy again.
const STABLE: Duration = Duration::from_secs(60);

/// Time that a task which ended without a panic gives other tasks to report theirs. Such a task mostly ends because
/// another one died, so the panic of the other one is reported.
const PANIC_PRECEDENCE: Duration = Duration::from_millis(100);

/// Health of a supervised task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskHealth {
    /// Reason of the last failure; `None` while the task is healthy.
    pub failure: Option<String>,
    pub since: Timestamp,
    pub starts: u64,
}

/// Name of a task: unique, and the same after each start.
pub type TaskName = Cow<'static, str>;

/// Registry of the supervised tasks, by name.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: SharedClock,
    tasks: Mutex<BTreeMap<TaskName, Entry>>,
    registrations: AtomicU64,
    /// The tasks are being stopped: one that ends has not failed.
    stopping: AtomicBool,
    /// Name of the vital task that died; `None` while all vital tasks run.
    dead: watch::Sender<Option<TaskName>>,
}

#[derive(Debug)]
struct Entry {
    health: TaskHealth,
    /// ID of the registration that the entry belongs to. A new task may take a name before the previous task of that
    /// name is dropped.
    registration: u64,
}

/// Registration of a restartable task. It is dropped together with the task.
struct Registration {
    supervisor: Supervisor,
    name: TaskName,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut tasks = self.supervisor.0.tasks.lock();
        if tasks.get(&self.name).is_some_and(|entry| entry.registration == self.number) {
            tasks.remove(&self.name);
        }
    }
}

type StartedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Action when a task ends without a panic.
#[derive(Clone, Copy)]
enum OnEnd {
    Restart,
    Return,
}

/// Handle that cancels its task when dropped.
struct Cancelled(JoinHandle<()>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Supervisor {
    pub fn new(clock: SharedClock) -> Supervisor {
        Supervisor(Arc::new(Inner {
            clock,
            tasks: Mutex::default(),
            registrations: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            dead: watch::channel(None).0,
        }))
    }

    /// Runs a task and restarts it whenever it panics or ends. Aborting the handle stops the task and the restarts.
    pub fn restart<F>(
        &self,
        name: impl Into<TaskName>,
        start: impl FnMut() -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn(name.into(), OnEnd::Restart, start)
    }

    /// Runs a task until it ends, and restarts it whenever it panics. Aborting the handle stops the task and the
    /// restarts.
    pub fn restart_until_done<F>(
        &self,
        name: impl Into<TaskName>,
        start: impl FnMut() -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn(name.into(), OnEnd::Return, start)
    }

    fn spawn<F>(
        &self,
        name: TaskName,
        on_end: OnEnd,
        mut start: impl FnMut() -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let start = move || -> StartedTask { Box::pin(start()) };
        tokio::spawn(self.clone().keep(name, on_end, start))
    }

    async fn keep(self, name: TaskName, on_end: OnEnd, mut start: impl FnMut() -> StartedTask) {
        let number = self.0.registrations.fetch_add(1, Ordering::Relaxed) + 1;
        let _registration = Registration { supervisor: self.clone(), name: name.clone(), number };
        let mut deaths = 0;
        loop {
            self.started(&name, number);
            let began = Instant::now();
            // The task runs inside the supervising task, so that an abort releases its resources before it completes.
            let task = async {
                tokio::select! {
                    () = start() => {}
                    () = faults::injected(&name) => {}
                }
            };
            let task = AssertUnwindSafe(task).catch_unwind();
            let died = tokio::select! {
                died = task => died,
                () = self.recover(&name) => unreachable!("it waits for ever"),
            };
            let is_over = matches!(on_end, OnEnd::Return) || self.0.stopping.load(Ordering::Acquire);
            if died.is_ok() && is_over {
                return;
            }
            let failure = match died {
                Ok(()) => ENDED.to_owned(),
                Err(panic) => panicked(&*panic),
            };
            if began.elapsed() >= STABLE {
                deaths = 0;
            }
            self.died(&name, failure);
            deaths += 1;
            tokio::time::sleep(RESTART_BACKOFF.after(deaths)).await;
        }
    }

    /// Runs a vital task: the daemon cannot continue without it. Aborting the handle ends it.
    pub fn vital(
        &self,
        name: impl Into<TaskName>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let name = name.into();
        let faulty = name.clone();
        let task = async move {
            tokio::select! {
                () = task => {}
                () = faults::injected(&faulty) => {}
            }
        };
        self.watch(name, tokio::spawn(task))
    }

    /// Watches a vital task that already runs.
    pub fn watch(&self, name: impl Into<TaskName>, task: JoinHandle<()>) -> JoinHandle<()> {
        let (supervisor, name) = (self.clone(), name.into());
        supervisor.started(&name, 0);
        let mut task = Cancelled(task);
        tokio::spawn(async move {
            let failure = match (&mut task.0).await.map_err(JoinError::try_into_panic) {
                Ok(()) => ENDED.to_owned(),
                Err(Ok(panic)) => panicked(&*panic),
                Err(Err(_)) => "it was cancelled".to_owned(),
            };
            let is_consequence = failure == ENDED;
            if is_consequence && supervisor.0.stopping.load(Ordering::Acquire) {
                return;
            }
            supervisor.died(&name, failure);
            if is_consequence {
                tokio::time::sleep(PANIC_PRECEDENCE).await;
            }
            supervisor.0.dead.send_if_modified(|dead| match dead {
                Some(_) => false,
                None => dead.replace(name).is_none(),
            });
        })
    }

    /// Announces that the tasks are stopped from now on. One task then ends because another one is gone, which is no
    /// failure; a panic remains one.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::Release);
    }

    /// Waits until a vital task dies, and returns its name.
    pub async fn dead(&self) -> TaskName {
        let mut dead = self.0.dead.subscribe();
        match dead.wait_for(Option::is_some).await.map(|name| name.clone()) {
            Ok(Some(name)) => name,
            // Unreachable: `self` holds the sender.
            _ => std::future::pending().await,
        }
    }

    /// Records the health of a component that has no task. `failure` is the reason why it does not work.
    pub fn note(&self, name: &str, failure: Option<String>) {
        let now = self.0.clock.now();
        let mut tasks = self.0.tasks.lock();
        if !tasks.contains_key(name) {
            let health = TaskHealth { failure: None, since: now, starts: 1 };
            tasks.insert(name.to_owned().into(), Entry { health, registration: 0 });
        }
        let Some(Entry { health, .. }) = tasks.get_mut(name) else { return };
        if health.failure != failure {
            (health.failure, health.since) = (failure, now);
        }
    }

    pub fn report(&self) -> BTreeMap<TaskName, TaskHealth> {
        self.0.tasks.lock().iter().map(|(name, entry)| (name.clone(), entry.health.clone())).collect()
    }

    /// Returns the name and the failure of the first unhealthy task.
    pub fn failure(&self) -> Option<String> {
        let tasks = self.0.tasks.lock();
        tasks.iter().find_map(|(name, task)| Some(format!("{name}: {}", task.health.failure.as_ref()?)))
    }

    fn started(&self, name: &TaskName, registration: u64) {
        let now = self.0.clock.now();
        let mut tasks = self.0.tasks.lock();
        let health = TaskHealth { failure: None, since: now, starts: 0 };
        let task = tasks.entry(name.clone()).or_insert(Entry { health: health.clone(), registration });
        if task.registration != registration {
            *task = Entry { health, registration };
        }
        task.health.starts += 1;
    }

    /// Marks a task as healthy once it is stable, then waits forever.
    async fn recover(&self, name: &str) {
        tokio::time::sleep(STABLE).await;
        self.note(name, None);
        std::future::pending().await
    }

    fn died(&self, name: &str, failure: String) {
        tracing::error!(task = name, %failure, "task of the daemon died");
        self.note(name, Some(failure));
    }
}

/// Waits for a task that already runs, and cancels it when the wait is dropped. A panic of the task propagates.
pub async fn joined(task: JoinHandle<()>) {
    let mut task = Cancelled(task);
    if let Err(Ok(panic)) = (&mut task.0).await.map_err(JoinError::try_into_panic) {
        std::panic::resume_unwind(panic);
    }
}

/// Runs blocking work for a long-lived task. A panic of the work propagates to the task, so that it is not lost.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match try_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(value) => value,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is shutting down, and the task with it.
        Err(Err(_)) => std::future::pending().await,
    }
}

/// Runs blocking work. Fails if the work panics or the runtime is shutting down.
pub async fn try_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    // One type of task for all work: each type is kilobytes of code in the runtime.
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(work()));
    let result = tokio::task::spawn_blocking(work).await?;
    Ok(*result.downcast().expect("the work returns this type"))
}

/// Supervision of the resolver's tasks.
impl gateway_dns::hooks::Supervise for Supervisor {
    fn restart_until_done(&self, name: String, start: gateway_dns::hooks::StartTask) -> JoinHandle<()> {
        Supervisor::restart_until_done(self, name, start)
    }
}

impl Default for Supervisor {
    fn default() -> Supervisor {
        Supervisor::new(SystemClock::shared())
    }
}

const ENDED: &str = "it has ended";

fn panicked(payload: &(dyn Any + Send)) -> String {
    format!("it has panicked: {}", panics::text(payload))
}

#[cfg(test)]
mod tests;
