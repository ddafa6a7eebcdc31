//! Fast path of established flows: turns it on and off, and invalidates its entries when the path of packets changes.
//!
//! It is on only while this service follows the changes of the kernel. While it cannot, all packets go through the IP
//! stack; after a kill of the daemon, from the end of its lease on.
//!
//! Between LANs each direction has an entry of its own, made by `gw_lan_egress`: replies get theirs by their own
//! verdict, so the trust class of both devices counts. One pair of entries, as for uplinks, was rejected, because the
//! second direction would have no verdict. The program drops nothing and is attached while the fast path is off as
//! well, so the setting stays live.
//!
//! Decision 0121 says why.

mod xdp;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use gateway_common::fast_path::RENEWAL;
use gateway_common::wire::FastLink;
use gateway_core::facts::{Facts, LinkLayer};
use gateway_core::plan::Plan;
use gateway_outbound::causes::with_causes;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::os::bpf::{self, FastPath};
use crate::os::driver_state::ShaperChanges;
use crate::os::length_limits::{LengthLimits, Sysctls};
use crate::os::path_changes::PathChanges;
use crate::service::{Context, Service};
use crate::services::captures::CapturedInterfaces;
use crate::supervise::blocking;
use xdp::XdpControl;

/// Conntrack sees only some of the segments, so it must not refuse others as outside of the window.
const LIBERAL: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";
const REOPEN_AFTER: Duration = Duration::from_secs(1);
/// Interval at which the setting of conntrack is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Interval at which entries are counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(60);

/// Returns the service of the fast path. At the end of the daemon, which can no longer invalidate entries, it is off.
pub(crate) fn service(context: &Context) -> Service {
    let fast_path = context.dataplane.fast_path().clone();
    Service::new("fast_path", context, run).releases(move || blocking(move || report(fast_path.end())))
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let fast_path = context.dataplane.fast_path().clone();
    let mut liberal = Liberal::default();
    let dataplane = context.dataplane.clone();
    let mut control = blocking(move || XdpControl::open(dataplane)).await;
    loop {
        // Changes before the subscription are unknown.
        report(fast_path.set(None));
        let (event, error) = match PathChanges::open() {
            Ok(changes) => {
                let error;
                (error, control) = follow(&context, &fast_path, changes, &mut liberal, control).await;
                ("lost the subscription to path changes", error)
            }
            Err(error) => ("failed to subscribe to path changes", error),
        };
        report(fast_path.set(None));
        tracing::warn!(%error, "{event}: the fast path is off");
        let is_wanted = context.wake.compiled().borrow().plan.fast_path;
        fast_path.set_problem(is_wanted.then(|| format!("{event}: {error}")));
        sleep(REOPEN_AFTER).await;
    }
}

/// Follows changes until the subscription fails.
async fn follow(
    context: &Context,
    fast_path: &FastPath,
    mut changes: PathChanges,
    liberal: &mut Liberal,
    mut control: XdpControl,
) -> (io::Error, XdpControl) {
    let (mut compiled, mut facts) = (context.wake.compiled(), context.wake.facts());
    let captured = context.handles.get::<CapturedInterfaces>();
    let mut captures = captured.watch();
    let mut check = interval_at(Instant::now(), CHECK_INTERVAL);
    let mut renew = interval_at(Instant::now(), RENEWAL);
    renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shapers = ShaperChanges::open().ok();
    let mut count = interval_at(Instant::now() + COUNT_INTERVAL, COUNT_INTERVAL);
    loop {
        tokio::select! {
            biased;
            found = changes.next() => match found {
                Ok(found) => {
                    for change in found {
                        report(fast_path.invalidate(change));
                    }
                    continue;
                }
                Err(error) => return (error, control),
            },
            // Behind the changes: a renewal says that none is waiting.
            _ = renew.tick() => {
                report(fast_path.renew());
                continue;
            }
            changed = next_of(&mut shapers) => if changed.is_err() {
                // Without messages, the checks find the change.
                shapers = None;
            },
            _ = compiled.changed() => {}
            _ = facts.changed() => {}
            _ = captures.changed() => {}
            _ = check.tick() => {}
            _ = count.tick() => {
                let fast_path = fast_path.clone();
                if fast_path.is_on() {
                    report(blocking(move || fast_path.count_entries()).await.map(drop));
                }
                continue;
            }
        }
        let links = links(&compiled.borrow().plan, &facts.borrow(), &Sysctls);
        turn(fast_path, links.as_ref(), liberal);
        let (in_force, observed) = (compiled.borrow().clone(), facts.borrow().clone());
        let captured = captured.all();
        control = blocking(move || {
            control.update(&in_force.plan, &observed, &captured);
            control
        })
        .await;
    }
}

/// Turns the fast path on for these interfaces, or off.
fn turn(fast_path: &FastPath, links: Option<&BTreeMap<u32, FastLink>>, liberal: &mut Liberal) {
    let problem = links.and_then(|links| turn_on(fast_path, links, liberal).err());
    if links.is_none() || problem.is_some() {
        report(fast_path.set(None));
        liberal.restore();
    }
    if let Some(problem) = &problem {
        tracing::warn!("{problem}: the fast path stays off");
    }
    fast_path.set_problem(problem);
}

/// Turns the fast path on for these interfaces.
fn turn_on(
    fast_path: &FastPath,
    links: &BTreeMap<u32, FastLink>,
    liberal: &mut Liberal,
) -> Result<(), String> {
    liberal.set().map_err(|error| format!("failed to set nf_conntrack_tcp_be_liberal: {error}"))?;
    fast_path.set(Some(links)).map_err(|error| with_causes(&error))
}

async fn next_of(shapers: &mut Option<ShaperChanges>) -> io::Result<()> {
    match shapers {
        Some(shapers) => shapers.next().await,
        None => std::future::pending().await,
    }
}

/// Returns the interfaces with programs, by index. `None` if the fast path is off.
fn links(plan: &Plan, facts: &Facts, limits: &dyn LengthLimits) -> Option<BTreeMap<u32, FastLink>> {
    if !plan.fast_path {
        return None;
    }
    let link = |name: &String| {
        let link = facts.links.get(name).filter(|link| link.up)?;
        let ethernet = match link.link_layer {
            LinkLayer::Ethernet => 1,
            LinkLayer::Other => 0,
            LinkLayer::Loopback => return None,
        };
        let of_routes = facts.route_mtus.get(name).copied().unwrap_or(u32::MAX);
        let mtu = link.mtu.min(of_routes).min(limits.of(name));
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        Some((link.index, FastLink { mtu, ethernet }))
    };
    Some(plan.attach.keys().filter_map(link).collect())
}

/// Setting of conntrack that the fast path needs, and its value before.
#[derive(Debug, Default)]
struct Liberal {
    before: Option<String>,
}

impl Liberal {
    /// Sets it unless it is set.
    fn set(&mut self) -> io::Result<()> {
        let path = Path::new(LIBERAL);
        let have = std::fs::read_to_string(path)?.trim().to_owned();
        if have != "1" {
            std::fs::write(path, "1")?;
            self.before = Some(have);
        }
        Ok(())
    }

    fn restore(&mut self) {
        if let Some(before) = self.before.take()
            && let Err(error) = std::fs::write(LIBERAL, before)
        {
            tracing::warn!(%error, "failed to restore nf_conntrack_tcp_be_liberal");
        }
    }
}

fn report(result: Result<(), bpf::Error>) {
    if let Err(error) = result {
        tracing::error!(%error, "failed to control the fast path");
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::facts::Link;
    use gateway_core::plan::Attachment;

    use super::*;

    #[test]
    fn interfaces_are_used_by_their_kind_while_they_are_up() {
        let link = |index, up, mtu, link_layer| Link { index, up, mtu, link_layer, ..Link::default() };
        let links_of_host = [
            ("lan0".to_owned(), link(2, true, 1500, LinkLayer::Ethernet)),
            ("wan0".to_owned(), link(3, false, 1500, LinkLayer::Ethernet)),
            ("gw-a".to_owned(), link(4, true, 1420, LinkLayer::Other)),
            ("other".to_owned(), link(5, true, 1500, LinkLayer::Ethernet)),
            ("big".to_owned(), link(6, true, 65_536, LinkLayer::Ethernet)),
        ];
        let facts = Facts { links: links_of_host.into(), ..Facts::default() };
        let mut plan = Plan { fast_path: true, ..Plan::default() };
        for name in ["lan0", "wan0", "gw-a", "big", "gone"] {
            plan.attach.insert(name.to_owned(), Attachment::Guard);
        }
        let want = [
            (2, FastLink { mtu: 1500, ethernet: 1 }),
            (4, FastLink { mtu: 1420, ethernet: 0 }),
            (6, FastLink { mtu: u16::MAX, ethernet: 1 }),
        ];
        assert_eq!(links(&plan, &facts, &Unlimited), Some(want.into()));
        plan.fast_path = false;
        assert_eq!(links(&plan, &facts, &Unlimited), None);
    }

    #[test]
    fn shortest_limit_of_an_interface_is_in_force() {
        let link = |index| Link { index, up: true, mtu: 1500, ..Link::default() };
        let links_of_host = ["lan0", "wan0", "wan1"].map(|name| (name.to_owned(), link(2)));
        let facts = Facts {
            links: links_of_host.into(),
            route_mtus: [("wan0".to_owned(), 1400), ("wan1".to_owned(), 9000)].into(),
            ..Facts::default()
        };
        let mtu = |name: &str, limits: &dyn LengthLimits| {
            let attach = [(name.to_owned(), Attachment::Guard)].into();
            let plan = Plan { fast_path: true, attach, ..Plan::default() };
            links(&plan, &facts, limits).expect("on")[&2].mtu
        };
        assert_eq!(["lan0", "wan0", "wan1"].map(|name| mtu(name, &Unlimited)), [1500, 1400, 1500]);
        assert_eq!(["lan0", "wan0", "wan1"].map(|name| mtu(name, &Limit(1450))), [1450, 1400, 1450]);
    }

    struct Unlimited;

    impl LengthLimits for Unlimited {
        fn of(&self, _: &str) -> u32 {
            u32::MAX
        }
    }

    struct Limit(u32);

    impl LengthLimits for Limit {
        fn of(&self, _: &str) -> u32 {
            self.0
        }
    }
}
