//! Threads of the resolver, supervised like tasks.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::hooks::Supervise;

/// Runs work on its own thread until it returns, and restarts it after a panic. Aborting the handle does not end the
/// thread: the work must return by itself.
pub(crate) fn supervise(
    supervisor: &dyn Supervise,
    name: String,
    work: impl Fn() + Send + Sync + 'static,
) -> JoinHandle<()> {
    let (work, thread) = (Arc::new(work), name.clone());
    supervisor.restart_until_done(name, Box::new(move || Box::pin(run(thread.clone(), work.clone()))))
}

/// Runs the work on a thread and waits for its end. A panic of the thread becomes a panic of the task.
async fn run(name: String, work: Arc<impl Fn() + Send + Sync + 'static>) {
    let (sender, ended) = oneshot::channel();
    let body = move || {
        // The task may have been aborted.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(|| work())));
    };
    let failure: Box<dyn Any + Send> = match std::thread::Builder::new().name(name).spawn(body) {
        Err(error) => Box::new(format!("cannot start a thread: {error}")),
        Ok(_) => match ended.await {
            Ok(Ok(())) => return,
            Ok(Err(panic)) => panic,
            Err(_) => Box::new("the thread has ended without a result"),
        },
    };
    resume_unwind(failure);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::hooks::StartTask;

    /// Supervisor that restarts at once and counts the panics.
    struct Restarting(Arc<AtomicU64>);

    impl Supervise for Restarting {
        fn restart_until_done(&self, _name: String, mut start: StartTask) -> JoinHandle<()> {
            let panics = self.0.clone();
            tokio::spawn(async move {
                while tokio::spawn(start()).await.is_err() {
                    panics.fetch_add(1, Ordering::SeqCst);
                }
            })
        }
    }

    #[tokio::test]
    async fn thread_that_panics_is_run_again_and_its_end_is_the_end() {
        let (panics, runs) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counted = runs.clone();
        let work = move || {
            assert_eq!(std::thread::current().name(), Some("dns-test"));
            assert!(counted.fetch_add(1, Ordering::SeqCst) >= 2, "broken");
        };
        let task = supervise(&Restarting(panics.clone()), "dns-test".into(), work);
        task.await.expect("it ends when the thread returns");
        assert_eq!((panics.load(Ordering::SeqCst), runs.load(Ordering::SeqCst)), (2, 3));
    }
}
