//! A proxy from the relay's view: its address, its allowed legs, and its traffic counters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use gateway_core::indexes::LegId;
use gateway_core::plan::ProxyTarget;
use gateway_outbound::socks5::Credentials;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::fd_budget;
use super::splice::Traffic;
use crate::secrets;

/// A proxy, and the admission of connections through it.
#[derive(Debug)]
pub(super) struct Target {
    pub to: Arc<ProxyTarget>,
    pub counters: Arc<Counters>,
    /// Senders by leg. Connections live as long as the sender of their leg, which only this map holds.
    gates: Mutex<BTreeMap<Option<LegId>, watch::Sender<()>>>,
}

/// Counters of a proxy's connections since the start of the daemon.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub open: AtomicUsize,
    /// Open UDP flows.
    pub flows: AtomicUsize,
    /// Connections and flows so far.
    pub accepted: AtomicU64,
    /// Connections and flows for which the proxy was unreachable or refused.
    pub failed: AtomicU64,
    /// Connections and flows over the limit of this proxy or of the relay.
    pub over_limit: AtomicU64,
    pub traffic: Traffic,
}

/// Permission to use a proxy through a leg, valid as long as the gate is open.
#[derive(Debug)]
pub(super) struct Admission {
    pub to: Arc<ProxyTarget>,
    pub leg: Option<LegId>,
    pub gate: CloseSignal,
    pub counters: Arc<Counters>,
    pub budget: fd_budget::DescriptorBudget,
    _open: OpenCount,
    _descriptors: fd_budget::Permit,
}

/// Gate that is open as long as its sender exists.
#[derive(Debug)]
pub(super) struct CloseSignal(watch::Receiver<()>);

impl CloseSignal {
    pub(super) async fn closed(&self) {
        let mut sender = self.0.clone();
        // No value is ever sent. An error means that the sender is gone.
        while sender.changed().await.is_ok() {}
    }
}

/// Guard of the open counter: the connection counts as open until its drop.
#[derive(Debug)]
struct OpenCount {
    counters: Arc<Counters>,
    count: fn(&Counters) -> &AtomicUsize,
}

impl Target {
    pub(super) fn new(to: ProxyTarget, counters: Arc<Counters>) -> Target {
        let gates = to.legs.iter().map(|leg| (*leg, watch::Sender::new(()))).collect();
        Target { to: Arc::new(to), counters, gates: Mutex::new(gates) }
    }

    /// Returns the same proxy with other settings. Connections continue if their endpoint stays the same.
    pub(super) fn replaced(&self, to: ProxyTarget) -> Target {
        let next = Target::new(to, self.counters.clone());
        if (&next.to.address, &next.to.login) == (&self.to.address, &self.to.login) {
            let mut gates = self.gates.lock();
            let mut kept = next.gates.lock();
            for (leg, gate) in kept.iter_mut() {
                if let Some(open) = gates.remove(leg) {
                    *gate = open;
                }
            }
        }
        next
    }

    /// Admits a connection. Returns `None` if this leg is not allowed, or if the proxy has too many connections.
    pub(super) fn admit(
        &self,
        leg: Option<LegId>,
        budget: &fd_budget::DescriptorBudget,
    ) -> Option<Admission> {
        self.passage(leg, budget, |counters| &counters.open)
    }

    /// Admits a UDP flow under the same conditions.
    pub(super) fn admit_flow(
        &self,
        leg: Option<LegId>,
        budget: &fd_budget::DescriptorBudget,
    ) -> Option<Admission> {
        self.passage(leg, budget, |counters| &counters.flows)
    }

    fn passage(
        &self,
        leg: Option<LegId>,
        budget: &fd_budget::DescriptorBudget,
        count: fn(&Counters) -> &AtomicUsize,
    ) -> Option<Admission> {
        let gate = {
            let gates = self.gates.lock();
            CloseSignal(gates.get(&leg)?.subscribe())
        };
        let counters = self.counters.clone();
        counters.accepted.fetch_add(1, Ordering::Relaxed);
        let most = usize::try_from(self.to.connections).unwrap_or(usize::MAX);
        // Counted from here until the drop.
        let open = OpenCount { counters: counters.clone(), count };
        let many = count(&counters).fetch_add(1, Ordering::Relaxed) >= most;
        // One towards the host and one towards the proxy.
        let Some(descriptors) = budget.take(2).filter(|_| !many) else {
            counters.over_limit.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let (to, budget) = (self.to.clone(), budget.clone());
        Some(Admission { to, leg, gate, counters, budget, _open: open, _descriptors: descriptors })
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        (self.count)(&self.counters).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    pub(super) async fn login(&self) -> Option<Credentials<'_>> {
        let login = self.to.login.as_ref()?;
        Some(Credentials { username: &login.username, password: secrets::open(&login.password).await })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::fd_budget::DescriptorBudget;
    use super::*;

    fn target(legs: &[u8]) -> ProxyTarget {
        ProxyTarget {
            proxy_id: "p".into(),
            name: "p".into(),
            address: Some("192.0.2.1:1080".parse().unwrap()),
            login: None,
            udp: true,
            legs: BTreeSet::from_iter(legs.iter().copied().map(LegId::new)),
            connections: 2,
        }
    }

    fn is_open(passage: &Admission) -> bool {
        passage.gate.0.has_changed().is_ok()
    }

    #[test]
    fn connections_end_with_their_leg_or_with_the_proxy_they_led_to() {
        let first = Target::new(target(&[0, 16]), Arc::default());
        let (by_default, by_tunnel) = (
            first.admit(LegId::new(0), &DescriptorBudget::default()).unwrap(),
            first.admit(LegId::new(16), &DescriptorBudget::default()).unwrap(),
        );
        assert!(first.admit(LegId::new(17), &DescriptorBudget::default()).is_none());
        let second = first.replaced(ProxyTarget { udp: false, ..target(&[16, 17]) });
        drop(first);
        assert!(!is_open(&by_default), "its leg is gone");
        assert!(is_open(&by_tunnel));
        let moved = ProxyTarget { address: Some("192.0.2.2:1080".parse().unwrap()), ..target(&[16, 17]) };
        let third = second.replaced(moved);
        drop(second);
        assert!(!is_open(&by_tunnel));
        drop((by_default, by_tunnel));
        assert!(is_open(&third.admit(LegId::new(16), &DescriptorBudget::default()).unwrap()));
    }

    #[test]
    fn there_are_no_more_connections_than_allowed() {
        let target = Target::new(target(&[0]), Arc::default());
        let one = target.admit(LegId::new(0), &DescriptorBudget::default()).unwrap();
        let _two = target.admit(LegId::new(0), &DescriptorBudget::default()).unwrap();
        assert!(target.admit(LegId::new(0), &DescriptorBudget::default()).is_none());
        drop(one);
        assert!(target.admit(LegId::new(0), &DescriptorBudget::default()).is_some());
        assert_eq!(target.counters.over_limit.load(Ordering::Relaxed), 1);
    }
}
