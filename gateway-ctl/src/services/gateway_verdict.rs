//! Verdict on the gateway: does anything leak. Renewed every few seconds, from one world.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::gateway_verdict::{self, HostCounts, Observed, TreatedHosts, Word};
use gateway_core::phrase::Phrase;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use crate::handles::in_memory;
use crate::metrics::{gauge, gauges};
use crate::reconcile::Handle;
use crate::service::{Context, Service};
use crate::services::guard_tap::Escapes;
use crate::supervise::blocking;
use crate::world::World;

const PERIOD: Duration = Duration::from_secs(2);
/// Idle time after which the reconcile loop counts as hung.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Verdict on the gateway, and when it was reached.
#[derive(Clone, Debug)]
pub struct GatewayVerdict {
    pub word: Word,
    /// Phrases of the sentence without the age of the check.
    pub phrases: Vec<Phrase>,
    /// Time since which the word is the same.
    pub since: Timestamp,
    pub checked_at: Timestamp,
    pub counts: HostCounts,
    /// Packets that left past the egress guard since the start of the daemon.
    pub leaked_packets: u64,
    /// Packets that the egress guard dropped.
    pub guard_drops: u64,
}

/// Last verdict; `None` before the first.
pub type Verdicts = watch::Sender<Option<Arc<GatewayVerdict>>>;

in_memory!(Verdicts);

/// Returns the service that reaches the verdict.
pub fn service(context: &Context) -> Service {
    let verdicts = context.handles.get::<Verdicts>();
    Service::new("gateway_verdict", context, run).measures(move |registry| {
        if let Some(verdict) = &*verdicts.borrow() {
            measure(registry, &verdict.counts);
        }
    })
}

/// Adds the hosts on the LAN as `/status` counts them.
fn measure(registry: &mut Registry, counts: &HostCounts) {
    let by_treatment = [
        ("blocked", counts.blocked),
        ("through_policy", counts.through_policy),
        ("direct_by_exception", counts.direct_by_exception),
        ("failed_open", counts.failed_open),
        ("no_policy", counts.no_policy),
    ];
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let by_treatment =
        by_treatment.map(|(treatment, count)| (vec![("treatment", treatment.to_owned())], number(count)));
    gauges(
        registry,
        "hosts",
        "Hosts seen on the LAN in the last 24 hours, by treatment of their traffic",
        by_treatment,
    );
    let silent = u64::try_from(counts.records_silent).unwrap_or(u64::MAX);
    gauge(registry, "devices_silent", "Devices that were not seen on the LAN in the last 24 hours", silent);
}

/// Runs until it is aborted.
async fn run(Context { worlds, wake, dataplane, handles, .. }: Context) {
    let (escapes, verdicts) = (&handles.get::<Escapes>(), &handles.get::<Verdicts>());
    let mut counted: Option<(World, TreatedHosts)> = None;
    loop {
        let world = worlds.now();
        let hosts = match counted.take() {
            Some((before, hosts)) if is_like(&before, &world) => hosts,
            _ => {
                let world = world.clone();
                let count =
                    move || gateway_verdict::count(&world.input(), world.live(), &world.reports.hosts);
                blocking(count).await
            }
        };
        let dataplane = dataplane.clone();
        let drops = blocking(move || dataplane.with(|programs| programs.prevented())).await;
        let drops = drops.map(|drops| drops.values().map(|counters| counters.packets).sum());
        let before = verdicts.borrow().clone();
        let verdict = verdict(&world, &wake, escapes, &hosts, drops.map_err(|e| e.to_string()), before);
        verdicts.send_replace(Some(Arc::new(verdict)));
        counted = Some((world, hosts));
        tokio::time::sleep(PERIOD).await;
    }
}

/// Reports whether hosts are the same and are treated alike in two worlds.
fn is_like(before: &World, after: &World) -> bool {
    Arc::ptr_eq(before.live(), after.live())
        && Arc::ptr_eq(&before.state, &after.state)
        && Arc::ptr_eq(&before.facts, &after.facts)
        && Arc::ptr_eq(&before.reports.hosts, &after.reports.hosts)
}

fn verdict(
    world: &World,
    wake: &Handle,
    escapes: &Escapes,
    hosts: &TreatedHosts,
    drops: Result<u64, String>,
    before: Option<Arc<GatewayVerdict>>,
) -> GatewayVerdict {
    let escaped = escapes.read();
    let leaked_packets = escaped.counters.values().map(|counters| counters.packets).sum();
    let is_hung = wake.idle_time() > STALL_TIMEOUT;
    let unknown = [
        (world.status.run == 0).then(|| "no plan is in force yet".to_owned()),
        is_hung.then(|| "the reconcile loop does not respond".to_owned()),
        world.status.enforcement_failure(),
        (!escaped.is_observed).then(|| "the tap behind the egress guard has not observed yet".to_owned()),
        escaped.failure.map(|failure| format!("the tap behind the egress guard fails: {failure}")),
        drops.as_ref().err().cloned(),
    ];
    let observed = Observed {
        unknown: unknown.into_iter().flatten().collect(),
        escaped_recently: escaped.recent,
        escaped: leaked_packets,
    };
    let word = gateway_verdict::word(hosts, &observed);
    let since = before.filter(|before| before.word == word).map(|before| before.since);
    GatewayVerdict {
        word,
        phrases: gateway_verdict::phrases(word, hosts, &observed),
        since: since.unwrap_or(world.now),
        checked_at: world.now,
        counts: hosts.counts,
        leaked_packets,
        guard_drops: drops.unwrap_or_default(),
    }
}
