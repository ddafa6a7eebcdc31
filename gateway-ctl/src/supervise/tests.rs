//! Tests of tasks that end, panic and restart.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

fn supervisor() -> Supervisor {
    Supervisor::default()
}

#[tokio::test(start_paused = true)]
async fn task_that_panics_is_failed_at_once_and_started_again_with_growing_pauses() {
    let (supervisor, runs) = (supervisor(), Arc::new(AtomicU64::new(0)));
    let counted = runs.clone();
    let task = supervisor.restart("watcher", move || {
        let counted = counted.clone();
        async move {
            if counted.fetch_add(1, Ordering::SeqCst) < 3 {
                panic!("no reason");
            }
            std::future::pending().await
        }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(supervisor.failure().as_deref(), Some("watcher: it has panicked: no reason"));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_millis(6990)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 3, "after one and two seconds");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 4);
    assert!(supervisor.failure().is_some(), "it has not proved itself yet");
    tokio::time::sleep(STABLE).await;
    assert_eq!((supervisor.failure(), supervisor.report()["watcher"].starts), (None, 4));
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn task_that_ends_because_another_died_is_not_reported_as_the_cause() {
    let supervisor = supervisor();
    let (held, mut follows) = watch::channel(());
    supervisor.vital("consequence", async move {
        let _ = follows.changed().await;
    });
    supervisor.vital("cause", async move {
        let _held = held;
        panic!("injected");
    });
    tokio::time::sleep(PANIC_PRECEDENCE * 2).await;
    assert_eq!(supervisor.dead().await, "cause");
}

#[tokio::test(start_paused = true)]
async fn vital_task_that_dies_is_reported_to_the_daemon() {
    for panics in [false, true] {
        let supervisor = supervisor();
        let _task = supervisor.vital("loop", async move { assert!(!panics, "broken") });
        assert_eq!(supervisor.dead().await, "loop");
        assert!(supervisor.failure().is_some_and(|failure| failure.starts_with("loop: it has ")));
    }
}

#[tokio::test(start_paused = true)]
async fn panic_of_blocking_work_is_one_of_the_task() {
    let supervisor = supervisor();
    let task = supervisor.restart("watcher", || blocking(|| panic!("no reason")));
    let deadline = Instant::now() + RESTART_BACKOFF.first;
    while supervisor.failure().is_none() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(supervisor.failure().as_deref(), Some("watcher: it has panicked: no reason"));
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn task_that_may_end_is_restarted_after_a_panic_and_forgotten_after_its_end() {
    let (supervisor, runs) = (supervisor(), Arc::new(AtomicU64::new(0)));
    let counted = runs.clone();
    let task = supervisor.restart_until_done("session", move || {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move { assert!(run > 0, "broken") }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(supervisor.failure().as_deref(), Some("session: it has panicked: broken"));
    task.await.expect("it ends by itself");
    assert_eq!((runs.load(Ordering::SeqCst), supervisor.report()), (2, BTreeMap::new()));
}

#[tokio::test(start_paused = true)]
async fn name_that_is_taken_again_keeps_the_entry_of_the_newer_task() {
    let supervisor = supervisor();
    let forever = || std::future::pending::<()>();
    let first = supervisor.restart("list 1", forever);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let second = supervisor.restart("list 1", forever);
    tokio::time::sleep(Duration::from_millis(1)).await;
    first.abort();
    let _ = first.await;
    assert_eq!(supervisor.report()["list 1"].starts, 1);
    second.abort();
    let _ = second.await;
    assert_eq!(supervisor.report(), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn aborting_the_handle_ends_the_task_itself() {
    let (sender, mut receiver) = watch::channel(());
    let sender = Arc::new(sender);
    let given = sender.clone();
    let task = supervisor().restart("watcher", move || {
        let held = given.clone();
        async move {
            std::future::pending::<()>().await;
            drop(held);
        }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    task.abort();
    drop(sender);
    assert!(receiver.changed().await.is_err(), "nobody holds the sender any more");
}
