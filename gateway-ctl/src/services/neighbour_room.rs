//! Room in the kernel's neighbour tables for the hosts of several LANs, also after another program set less.

use std::time::Duration;

use tokio::time::interval;

use crate::os::neighbour_limits;
use crate::service::Context;

const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Runs until it is aborted.
pub(crate) async fn run(_: Context) {
    let mut ticks = interval(CHECK_INTERVAL);
    let mut is_reported = false;
    loop {
        ticks.tick().await;
        let raised = neighbour_limits::raise();
        if let Err(error) = &raised
            && !is_reported
        {
            tracing::warn!(%error, "failed to raise the limits of the neighbour tables");
        }
        is_reported = raised.is_err();
    }
}
