//! Records expired objects, keeps the time, and watches the disk space of the store.

use std::time::Duration;

use crate::service::Context;
use crate::store::{Error, Store};
use crate::supervise::blocking;

/// Interval between two checks. The plan itself ends expired objects on time; this service only records it.
const INTERVAL: Duration = Duration::from_secs(5);

/// Runs until it is aborted.
pub(crate) async fn run(Context { store, .. }: Context) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let looked = store.clone();
        if let Err(error) = blocking(move || end_due(&looked)).await {
            tracing::error!(%error, "failed to record ended objects; retrying");
        }
    }
}

fn end_due(store: &Store) -> Result<(), Error> {
    store.renew_reserve();
    let ended = store.end_overdue()?;
    if ended > 0 {
        tracing::info!(ended, "recorded ends of exceptions, policies and API keys");
    }
    Ok(())
}
