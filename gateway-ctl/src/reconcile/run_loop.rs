//! Main loop: waits for triggers, reads the facts, compiles, runs the subsystems and publishes the result.
//!
//! Triggers that arrive during a run cause one further run. A caller that requests a run gets the result of one that
//! began after the request, or of one that compiled the revision of the state that the caller names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::facts::Facts;
use gateway_outbound::backoff::Backoff;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::apply_order::Subsystems;
use super::backends::Host;
use super::status::Status;
use super::trigger::{Check, Pending, Reason};
use super::{Compile, Compiled, Dataplane, Observe};
use crate::os::Outcome;
use crate::os::observe::KernelChanges;

/// Backoff before a run that follows a failed one.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// Minimum validity of a plan, which prevents a busy loop.
const DEADLINE_LEAST: Duration = Duration::from_millis(100);
/// Maximum time between two signs of progress.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Time after which the maps of a plan that went live are compared with it.
const CHECK_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of rounds in one run. A new tunnel is a new fact, which results in a new plan.
const ROUNDS: usize = 3;

/// Settings of the loop.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Interval of periodic runs; `None`: only the other triggers cause runs.
    pub interval: Option<Duration>,
}

/// Error: the loop has ended.
#[derive(Debug, thiserror::Error)]
#[error("the reconcile loop has stopped")]
pub struct Stopped;

/// Handle of the loop. When the last one is dropped, the loop ends after its current run.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    status: watch::Receiver<Arc<Status>>,
    compiled: watch::Receiver<Arc<Compiled>>,
    facts: watch::Receiver<Arc<Facts>>,
    progress: watch::Receiver<Instant>,
}

#[derive(Debug)]
enum Command {
    Wake(Reason),
    Run(Reason, oneshot::Sender<Arc<Status>>),
    /// A revision of the state.
    WakeFor(u64),
    RunFor(Reason, u64, oneshot::Sender<Arc<Status>>),
    Interval(Option<Duration>),
}

impl Handle {
    /// Triggers a run without waiting for it.
    pub fn wake(&self, reason: Reason) {
        // Only callers that wait for a run are informed if the loop has ended.
        let _ = self.commands.send(Command::Wake(reason));
    }

    /// Triggers a run and returns its result.
    pub async fn run_now(&self, reason: Reason) -> Result<Arc<Status>, Stopped> {
        let (reply, status) = oneshot::channel();
        self.commands.send(Command::Run(reason, reply)).map_err(|_| Stopped)?;
        status.await.map_err(|_| Stopped)
    }

    /// Triggers a run for a revision of the state without waiting for it, unless a run has compiled the revision.
    pub fn wake_for(&self, revision: u64) {
        let _ = self.commands.send(Command::WakeFor(revision));
    }

    /// Returns the result of a run that compiled this revision of the state or a later one. Triggers one, unless the
    /// last run did that and succeeded.
    pub async fn run_for(&self, reason: Reason, revision: u64) -> Result<Arc<Status>, Stopped> {
        let (reply, status) = oneshot::channel();
        self.commands.send(Command::RunFor(reason, revision, reply)).map_err(|_| Stopped)?;
        status.await.map_err(|_| Stopped)
    }

    pub fn set_interval(&self, interval: Option<Duration>) {
        let _ = self.commands.send(Command::Interval(interval));
    }

    pub fn status(&self) -> watch::Receiver<Arc<Status>> {
        self.status.clone()
    }

    /// Returns the time since the loop last made progress. It grows while a run hangs, and forever once the loop is
    /// dead.
    pub fn idle_time(&self) -> Duration {
        self.progress.borrow().elapsed()
    }

    /// Returns the plan of the last run.
    pub fn compiled(&self) -> watch::Receiver<Arc<Compiled>> {
        self.compiled.clone()
    }

    /// Returns the facts of the last run.
    pub fn facts(&self) -> watch::Receiver<Arc<Facts>> {
        self.facts.clone()
    }
}

/// Starts the loop; its first run begins at once. The task ends when the last handle is dropped.
pub fn start<H: Host, D: Dataplane, O: Observe, C: Compile>(
    subsystems: Subsystems<H, D>,
    observe: O,
    compile: Arc<C>,
    clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    settings: Settings,
) -> (Handle, JoinHandle<()>) {
    let (commands_sender, commands) = mpsc::unbounded_channel();
    let (status_sender, status) = watch::channel(Arc::new(Status::default()));
    let (compiled_sender, compiled) = watch::channel(Arc::default());
    let (facts_sender, facts) = watch::channel(Arc::default());
    let (progress_sender, progress) = watch::channel(Instant::now());
    let handle = Handle { commands: commands_sender, status, compiled, facts, progress };
    let changes = observe.changes();
    let seen = *changes.borrow();
    let looping = Loop {
        subsystems,
        observe,
        compile,
        clock: Box::new(clock),
        interval: settings.interval,
        commands,
        seen,
        changes,
        status: status_sender,
        compiled: compiled_sender,
        facts: facts_sender,
        progress: progress_sender,
        has_facts: false,
        pending: Pending::default(),
        waiting: Vec::new(),
        last_run: Instant::now(),
        deadline: None,
        retry: None,
        check: None,
        failures: 0,
    };
    (handle, tokio::spawn(looping.run()))
}

struct Loop<H, D, O, C> {
    subsystems: Subsystems<H, D>,
    observe: O,
    compile: Arc<C>,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    interval: Option<Duration>,
    commands: mpsc::UnboundedReceiver<Command>,
    changes: watch::Receiver<KernelChanges>,
    seen: KernelChanges,
    status: watch::Sender<Arc<Status>>,
    compiled: watch::Sender<Arc<Compiled>>,
    facts: watch::Sender<Arc<Facts>>,
    progress: watch::Sender<Instant>,
    has_facts: bool,
    pending: Pending,
    waiting: Vec<oneshot::Sender<Arc<Status>>>,
    last_run: Instant,
    deadline: Option<Instant>,
    retry: Option<Instant>,
    /// Time of the next comparison of the maps, after a plan was written by its differences.
    check: Option<Instant>,
    /// Number of consecutive failed runs.
    failures: u32,
}

impl<H: Host, D: Dataplane, O: Observe, C: Compile> Loop<H, D, O, C> {
    async fn run(mut self) {
        self.run_once(Reason::Start).await;
        while self.wait().await {
            while let Ok(command) = self.commands.try_recv() {
                self.take(command);
            }
            if let Some(reason) = self.pending.take() {
                self.run_once(reason).await;
            }
            let status = self.status.borrow().clone();
            for waiting in self.waiting.drain(..) {
                // The caller may have stopped waiting, which is fine.
                let _ = waiting.send(Arc::clone(&status));
            }
        }
    }

    /// Waits for a trigger. Returns `false` if no handle is left.
    async fn wait(&mut self) -> bool {
        let interval = self.interval.map(|interval| self.last_run + interval);
        self.progress.send_replace(Instant::now());
        tokio::select! {
            command = self.commands.recv() => match command {
                Some(command) => self.take(command),
                None => return false,
            },
            Ok(()) = self.changes.changed() => self.notice().await,
            () = at(self.deadline) => self.pending.add(Reason::Deadline),
            () = at(self.retry) => self.pending.add(Reason::Retry),
            () = at(interval) => self.pending.add(Reason::Interval),
            () = at(self.check) => self.pending.add(Reason::Check),
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
        true
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Wake(reason) => self.pending.add(reason),
            Command::Run(reason, reply) => {
                self.pending.add(reason);
                self.waiting.push(reply);
            }
            // After a failure of that run, another one is due anyway.
            Command::WakeFor(revision) if self.compiled.borrow().revision >= revision => {}
            Command::WakeFor(_) => self.pending.add(Reason::Revision),
            Command::RunFor(reason, revision, reply) => {
                let last = self.status.borrow().clone();
                if last.is_ok() && last.revision >= revision {
                    // The caller may have stopped waiting, which is fine.
                    let _ = reply.send(last);
                } else {
                    self.take(Command::Run(reason, reply));
                }
            }
            Command::Interval(interval) => self.interval = interval,
        }
    }

    /// Records an observed change. Neighbours often come and go without effect, so they are a trigger only if the
    /// facts differ.
    async fn notice(&mut self) {
        let before = std::mem::replace(&mut self.seen, *self.changes.borrow_and_update());
        if before.structure == self.seen.structure
            && let Ok(facts) = self.observe.facts().await
            && facts == **self.facts.borrow()
        {
            return;
        }
        self.pending.add(Reason::Facts);
    }

    async fn run_once(&mut self, reason: Reason) {
        let (started, clock) = ((self.clock)(), Instant::now());
        let mut outcomes = BTreeMap::new();
        for round in 0..ROUNDS {
            let compiled = match self.prepare(reason, round).await {
                Ok(Some(compiled)) => compiled,
                Ok(None) => break,
                Err((name, outcome)) => {
                    outcomes.insert(name, outcome);
                    break;
                }
            };
            let results = self.subsystems.run(&compiled.plan, reason.check()).await;
            let again = self.subsystems.makers_of_facts().iter().any(|name| results[name].changed());
            for (name, outcome) in results {
                merge(outcomes.entry(name).or_default(), outcome);
            }
            if !again {
                break;
            }
        }
        // After a failure, these must succeed once before they count as healthy again.
        for name in ["facts", "compile"] {
            outcomes.entry(name).or_default();
        }
        self.finish(reason, started, clock, outcomes);
    }

    /// Prepares facts and plan for a round. Returns `None` if the last round changed no fact, because another one
    /// would do the same.
    async fn prepare(
        &mut self,
        reason: Reason,
        round: usize,
    ) -> Result<Option<Arc<Compiled>>, (&'static str, Outcome)> {
        let facts = Arc::new(self.observe.facts().await.map_err(|error| {
            tracing::warn!(%error, "failed to read the facts");
            ("facts", Outcome::failure("facts", &error))
        })?);
        let same = self.has_facts && *facts == **self.facts.borrow();
        if same && round > 0 {
            return Ok(None);
        }
        let now = (self.clock)();
        let last = self.compiled.borrow().clone();
        let valid = last.plan.valid_until.is_none_or(|until| now < until);
        if same && valid && matches!(reason, Reason::Facts | Reason::Retry) {
            return Ok(Some(last));
        }
        let compile = Arc::clone(&self.compile);
        let given = Arc::clone(&facts);
        let compiled = tokio::task::spawn_blocking(move || compile.compile(&given, now))
            .await
            .map_err(|error| ("compile", Outcome::failure("plan", &error)))?;
        self.has_facts = true;
        self.facts.send_replace(facts);
        let compiled = Arc::new(compiled);
        self.compiled.send_replace(Arc::clone(&compiled));
        Ok(Some(compiled))
    }

    fn finish(
        &mut self,
        reason: Reason,
        started: Timestamp,
        clock: Instant,
        outcomes: BTreeMap<&'static str, Outcome>,
    ) {
        let compiled = self.compiled.borrow().clone();
        let is_written = outcomes.get("dataplane").is_some_and(Outcome::changed);
        let mut status = Status::clone(&self.status.borrow());
        status.run += 1;
        status.revision = compiled.revision;
        status.reason = reason;
        status.started = started;
        status.duration_ms = u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX);
        status.valid_until = compiled.plan.valid_until;
        status.record(started, outcomes);

        self.last_run = Instant::now();
        self.check = match reason.check() {
            // Another program that writes the same maps gets an answer at the periodic runs.
            Check::Maps if reason == Reason::Check || !is_written => None,
            _ if is_written => Some(self.last_run + CHECK_AFTER),
            _ => self.check,
        };
        self.deadline = status.valid_until.map(|until| {
            let left = until.duration_since((self.clock)());
            self.last_run + Duration::try_from(left).unwrap_or_default().max(DEADLINE_LEAST)
        });
        if status.is_ok() {
            self.retry = None;
            self.failures = 0;
        } else {
            self.failures = self.failures.saturating_add(1);
            self.retry = Some(self.last_run + RETRY.after(self.failures));
        }
        tracing::debug!(
            run = status.run,
            revision = status.revision,
            ?reason,
            duration_ms = status.duration_ms,
            ok = status.is_ok(),
            "reconciled"
        );
        let status = Arc::new(status);
        self.compile.finished(&status);
        self.status.send_replace(status);
    }
}

/// Merges the outcome of a later round. It repairs earlier failures, so only its own failures count.
fn merge(outcome: &mut Outcome, later: Outcome) {
    outcome.failed.clear();
    outcome.absorb(later);
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
