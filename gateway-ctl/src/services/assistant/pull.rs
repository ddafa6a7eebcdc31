//! Downloads of models, with their progress.

use std::sync::Arc;

use gateway_core::assistant::models::is_same_model;
use jiff::Timestamp;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::task::{AbortHandle, JoinHandle};

use super::model_error::ModelError;

/// Number of downloads that are kept.
const MAX_KEPT: usize = 20;

/// State of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PullState {
    Running,
    Done,
    Failed,
    /// An administrator stopped it.
    Stopped,
}

/// Download of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pull {
    pub name: String,
    pub state: PullState,
    /// Step as the server names it.
    pub step: String,
    /// Bytes of the step that have arrived; null if the server does not say.
    pub completed: Option<u64>,
    /// Bytes of the step; null if the server does not say.
    pub total: Option<u64>,
    pub started_at: Timestamp,
    /// Null while it runs.
    pub ended_at: Option<Timestamp>,
    /// Human-readable reason of a failure; null without one.
    pub error: Option<String>,
}

/// Downloads since the start of the daemon.
#[derive(Debug, Default)]
pub(super) struct Pulls(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    pull: Arc<Mutex<Pull>>,
    task: AbortHandle,
}

/// Download that runs, for the task that follows it.
#[derive(Clone, Debug)]
pub(super) struct RunningPull(Arc<Mutex<Pull>>);

impl RunningPull {
    pub(super) fn progress(&self, step: String, completed: Option<u64>, total: Option<u64>) {
        let mut pull = self.0.lock();
        pull.step = step;
        (pull.completed, pull.total) = (completed, total);
    }

    pub(super) fn end(&self, at: Timestamp, result: Result<(), String>) {
        let state = if result.is_ok() { PullState::Done } else { PullState::Failed };
        self.end_as(state, at, result.err());
    }

    fn end_as(&self, state: PullState, at: Timestamp, error: Option<String>) {
        let mut pull = self.0.lock();
        if pull.state == PullState::Running {
            pull.state = state;
            pull.ended_at = Some(at);
            pull.error = error;
        }
    }
}

impl Pulls {
    /// Starts a download, unless the same model is being downloaded.
    pub(super) fn start(
        &self,
        name: &str,
        now: Timestamp,
        spawn: impl FnOnce(RunningPull) -> JoinHandle<()>,
    ) -> Result<Pull, ModelError> {
        let mut kept = self.0.lock();
        if kept.iter().any(|kept| kept.is_running(name)) {
            return Err(ModelError::Pulling(name.to_owned()));
        }
        let pull = Pull {
            name: name.to_owned(),
            state: PullState::Running,
            step: String::new(),
            completed: None,
            total: None,
            started_at: now,
            ended_at: None,
            error: None,
        };
        let shared = Arc::new(Mutex::new(pull.clone()));
        let task = spawn(RunningPull(shared.clone())).abort_handle();
        kept.push(Kept { pull: shared, task });
        // The oldest one that has ended goes first.
        if kept.len() > MAX_KEPT
            && let Some(oldest) = kept.iter().position(|kept| kept.pull.lock().state != PullState::Running)
        {
            kept.remove(oldest);
        }
        Ok(pull)
    }

    pub(super) fn list(&self) -> Vec<Pull> {
        self.0.lock().iter().rev().map(|kept| kept.pull.lock().clone()).collect()
    }

    pub(super) fn stop(&self, name: &str, now: Timestamp) -> bool {
        let kept = self.0.lock();
        let Some(running) = kept.iter().find(|kept| kept.is_running(name)) else { return false };
        running.task.abort();
        RunningPull(running.pull.clone()).end_as(PullState::Stopped, now, None);
        true
    }

    /// Stops and forgets all downloads.
    pub(super) fn clear(&self) {
        self.0.lock().drain(..).for_each(|kept| kept.task.abort());
    }
}

impl Kept {
    fn is_running(&self, name: &str) -> bool {
        let pull = self.pull.lock();
        pull.state == PullState::Running && is_same_model(&pull.name, name)
    }
}
