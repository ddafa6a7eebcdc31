//! Clients of prefix delegation at the uplinks (RFC 8415). Their prefixes are facts of the plan.

mod client;
mod delegations;
mod stored;

use std::collections::BTreeMap;

use gateway_model::settings::groups::WipeLevel;
use tokio::task::{AbortHandle, JoinSet};

use crate::os::json_file;
use crate::service::{Context, Service};
use crate::supervise::blocking;
use delegations::{RETRY, Shared, wanted};

pub(crate) use delegations::Delegations;

/// Returns the service that requests prefixes.
pub(crate) fn service(context: &Context) -> Service {
    let delegations = &context.handles.get::<Delegations>();
    let (contributed, reported, worlds) = (delegations.clone(), delegations.clone(), context.worlds.clone());
    let stored = stored::path(&context.worlds.in_force().config.state_dir);
    Service::new("prefix_delegation", context, run)
        .contributes(move |facts| contributed.enrich(facts))
        .reports(move || std::future::ready(reported.health(&worlds)))
        .erases(move |level| {
            let stored = stored.clone();
            blocking(move || match level {
                WipeLevel::Soft => Ok(()),
                WipeLevel::Medium | WipeLevel::Hard => json_file::erase(&stored),
            })
        })
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let path = stored::path(&context.worlds.in_force().config.state_dir);
    let delegations = context.handles.get::<Delegations>();
    let shared = Shared { context: context.clone(), delegations, path };
    let mut worlds = context.worlds.watch();
    let mut tasks = JoinSet::new();
    let mut clients: BTreeMap<String, AbortHandle> = BTreeMap::new();
    loop {
        let world = worlds.borrow_and_update().clone();
        let wanted = wanted(&world);
        for (uplink, task) in clients.extract_if(.., |uplink, _| !wanted.contains(uplink)) {
            task.abort();
            client::release(&shared, &world, &uplink).await;
        }
        // Those of an earlier run, from before the setting was changed.
        for uplink in shared.delegations.leases().into_keys().filter(|uplink| !wanted.contains(uplink)) {
            client::release(&shared, &world, &uplink).await;
        }
        clients.retain(|_, task| !task.is_finished());
        for uplink in wanted {
            let start = || tasks.spawn(client::run(shared.clone(), uplink.clone()));
            clients.entry(uplink.clone()).or_insert_with(start);
        }
        tokio::select! {
            changed = worlds.changed() => if changed.is_err() { return },
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                if ended.is_err_and(|error| error.is_panic()) {
                    tracing::error!("a client of prefix delegation has panicked");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
