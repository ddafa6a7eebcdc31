//! Injected panics for tests of supervision. With debug assertions, a task panics when a file of its name appears in
//! the folder named by the environment variable `GATEWAY_FAULTS`. Other builds contain no such code.

#[cfg(debug_assertions)]
pub(super) async fn injected(task: &str) {
    use std::time::Duration;

    const POLL_INTERVAL: Duration = Duration::from_millis(100);
    let Some(folder) = std::env::var_os("GATEWAY_FAULTS") else { return std::future::pending().await };
    let file = std::path::Path::new(&folder).join(task);
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        assert!(std::fs::remove_file(&file).is_err(), "injected by a test");
    }
}

#[cfg(not(debug_assertions))]
pub(super) async fn injected(_: &str) {
    std::future::pending().await
}
