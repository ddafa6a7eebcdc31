//! DHCP clients of interfaces whose configuration has the method `dhcp`. Each is a process that reports its lease; the
//! reconcile loop sets addresses and routes.

mod events;
mod metrics;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::dhcp_report::parse;
use gateway_core::facts::Facts;
use gateway_core::interfaces::{InterfaceRole, role};
use gateway_core::network::InterfaceSettings;
use gateway_model::settings::groups::InterfaceMethod;
use gateway_outbound::causes::with_causes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::handles::in_memory;
use crate::os::dhcp_client::{DhcpClient, write_script};
use crate::reconcile::Reason;
use crate::service::{Context, Service};
use crate::world::{World, Worlds};

use events::Event;

/// Pause before a client that has ended is started again.
const RETRY: Duration = Duration::from_secs(5);
/// Time for a client to release its lease.
const RELEASE: Duration = Duration::from_secs(2);

/// Requests to running clients.
#[derive(Clone, Debug, Default)]
pub struct DhcpControl(Arc<Mutex<BTreeMap<String, mpsc::UnboundedSender<Request>>>>);

#[derive(Clone, Copy, Debug)]
enum Request {
    Renew,
}

in_memory!(DhcpControl);

impl DhcpControl {
    /// Makes the client of an interface renew its lease. Returns false if none runs.
    pub fn renew(&self, interface: &str) -> bool {
        self.0.lock().get(interface).is_some_and(|client| client.send(Request::Renew).is_ok())
    }
}

/// Returns the service that runs the clients.
pub fn service(context: &Context) -> Service {
    let (worlds, measured) = (context.worlds.clone(), context.worlds.clone());
    Service::new("dhcp_clients", context, run)
        .contributes(move |facts| worlds.last().reports.dhcp_clients.enrich(facts))
        .measures(move |registry| metrics::register(registry, &measured.last().reports.dhcp_clients))
}

/// Runs until it is aborted. The clients end with it.
async fn run(context: Context) {
    let control = &context.handles.get::<DhcpControl>();
    let folder = context.worlds.configuration().file().state_dir.join("dhcp");
    let script = match tokio::task::spawn_blocking(move || write_script(&folder)).await {
        Ok(Ok(script)) => script,
        Ok(Err(error)) => return fail(&with_causes(&error)).await,
        Err(error) => return fail(&error.to_string()).await,
    };
    let (sender, mut events) = mpsc::unbounded_channel();
    let (mut facts, mut revisions) = (context.wake.facts(), context.store.watch());
    control.0.lock().clear();
    context.worlds.report(|reports| reports.dhcp_clients = Arc::default());
    loop {
        let wanted = wanted(&context, &facts.borrow_and_update());
        follow(&wanted, control, &context.worlds, (&script, &sender));
        tokio::select! {
            event = events.recv() => {
                let Some((interface, event)) = event else { return };
                if wanted.contains(&interface) && note(&context, &interface, event) {
                    context.wake.wake(Reason::Facts);
                }
            }
            _ = facts.changed() => {}
            changed = revisions.changed() => if changed.is_err() { return },
        }
    }
}

/// The service is restarted, and tries again.
async fn fail(error: &str) {
    tracing::error!(error, "failed to prepare the DHCP clients");
    tokio::time::sleep(RETRY).await;
}

/// Returns the interfaces that need a client.
fn wanted(context: &Context, facts: &Facts) -> BTreeSet<String> {
    let World { state, network, .. } = context.worlds.now();
    let needs = |(name, settings): &(&String, &InterfaceSettings)| {
        let role = role(&state, &network, facts, name);
        let is_served = role == InterfaceRole::Other || role == InterfaceRole::Uplink && settings.on_demand;
        facts.links.contains_key(*name) && settings.method == InterfaceMethod::Dhcp && is_served
    };
    network.interfaces.iter().filter(needs).map(|(name, _)| name.clone()).collect()
}

/// Starts missing clients, and ends those that are not wanted.
fn follow(
    wanted: &BTreeSet<String>,
    control: &DhcpControl,
    worlds: &Worlds,
    (script, sender): (&Path, &mpsc::UnboundedSender<(String, Event)>),
) {
    let mut clients = control.0.lock();
    // A task ends when its sender is dropped.
    clients.retain(|interface, _| wanted.contains(interface));
    let started: Vec<String> = wanted.iter().filter(|name| !clients.contains_key(*name)).cloned().collect();
    for interface in started {
        let (requests, receiver) = mpsc::unbounded_channel();
        tokio::spawn(client(interface.clone(), script.to_owned(), receiver, sender.clone()));
        clients.insert(interface, requests);
    }
    let before = worlds.last().reports.dhcp_clients.clone();
    if !before.clients.keys().eq(wanted) {
        worlds.report(|reports| {
            let states = Arc::make_mut(&mut reports.dhcp_clients);
            states.clients.retain(|interface, _| wanted.contains(interface));
            for interface in wanted {
                states.clients.entry(interface.clone()).or_default();
            }
        });
    }
}

/// Runs a client until its sender of requests is dropped.
async fn client(
    interface: String,
    script: PathBuf,
    mut requests: mpsc::UnboundedReceiver<Request>,
    events: mpsc::UnboundedSender<(String, Event)>,
) {
    // Without a receiver the service has ended, which drops the requests, too.
    let report = |event| drop(events.send((interface.clone(), event)));
    loop {
        match DhcpClient::start(&interface, &script) {
            Err(error) => report(Event::Ended(with_causes(&error))),
            Ok(mut client) => loop {
                tokio::select! {
                    line = client.next_line() => match line {
                        Ok(line) => parse(&line).into_iter().for_each(|found| report(Event::Report(found))),
                        Err(end) => {
                            report(Event::Ended(end));
                            break;
                        }
                    },
                    request = requests.recv() => match request {
                        Some(Request::Renew) => client.renew(),
                        None => return client.stop(RELEASE).await,
                    },
                }
            },
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY) => {}
            request = requests.recv() => match request {
                Some(Request::Renew) => {}
                None => return,
            },
        }
    }
}

/// Notes an event. Returns whether the leases have changed.
fn note(context: &Context, interface: &str, event: Event) -> bool {
    let now = context.store.clock().now();
    let mut changed = false;
    context.worlds.report(|reports| {
        let states = Arc::make_mut(&mut reports.dhcp_clients);
        let state = states.clients.entry(interface.to_owned()).or_default();
        let before = state.lease.clone();
        state.take(event, now);
        changed = state.lease != before;
        tracing::info!(interface, stage = ?state.stage, error = state.error, "DHCP client");
    });
    changed
}
