//! Limits of open connections, in total and per address.
//!
//! At a limit, a new connection takes the place of another one: of the largest holder the one that was idle longest
//! ([`gateway_core::fair_share`]). Clients open a connection again when they need it, so a host with many addresses and idle
//! connections keeps out no other. Loopback and the local socket have places of their own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::fair_share::largest;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::activity::Activity;
use super::limits::Limits;
use crate::peer::Peer;

/// Holder of connections: its network (a /24, or a /48 of IPv6), its address (a /64 of IPv6, of which a host can use any
/// address), and the exact address.
type Holder = [u128; 3];

pub(super) struct ConnectionLimit {
    limits: Limits,
    open: Arc<Mutex<OpenConnections>>,
}

#[derive(Default)]
struct OpenConnections {
    opened: u64,
    by_number: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    /// `None`: loopback, or the local socket.
    holder: Option<Holder>,
    activity: Arc<Activity>,
    task: Option<AbortHandle>,
}

/// Slot of a connection. Dropping it frees the slot.
pub(super) struct ConnectionSlot {
    number: u64,
    activity: Arc<Activity>,
    open: Arc<Mutex<OpenConnections>>,
}

impl ConnectionLimit {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, open: Arc::default() }
    }

    /// Takes a slot for a peer, if necessary that of another connection, which ends. `None` if none may end for it.
    pub(super) fn take(&self, peer: &Peer) -> Option<ConnectionSlot> {
        let holder = peer.ip().filter(|address| !address.is_loopback()).map(holder);
        let mut open = self.open.lock();
        match &holder {
            None => open.make_room(self.limits.loopback, &[0; 3], |other| other.is_none())?,
            Some([_, address, _]) => {
                let newcomer = holder.as_ref()?;
                let has_address = |other: Option<&Holder>| other.is_some_and(|other| other[1] == *address);
                open.make_room(self.limits.per_address, newcomer, has_address)?;
                open.make_room(self.limits.connections, newcomer, |other| other.is_some())?;
            }
        }
        open.opened += 1;
        let (number, activity) = (open.opened, Arc::new(Activity::default()));
        let connection = OpenConnection { holder, activity: activity.clone(), task: None };
        open.by_number.insert(number, connection);
        Some(ConnectionSlot { number, activity, open: self.open.clone() })
    }

    /// Notes the task that serves a connection.
    pub(super) fn note_task(&self, number: u64, task: AbortHandle) {
        if let Some(connection) = self.open.lock().by_number.get_mut(&number) {
            connection.task = Some(task);
        }
    }
}

impl OpenConnections {
    /// Ends a connection if those that count have reached a limit. `None` if none may end for the newcomer.
    fn make_room(
        &mut self,
        limit: usize,
        newcomer: &Holder,
        counts: impl Fn(Option<&Holder>) -> bool,
    ) -> Option<()> {
        let counted = || self.by_number.iter().filter(|(_, open)| counts(open.holder.as_ref()));
        if counted().count() < limit {
            return Some(());
        }
        let mut held = BTreeMap::from([(*newcomer, 1)]);
        for (_, open) in counted() {
            *held.entry(open.holder.unwrap_or_default()).or_default() += 1;
        }
        let most = largest(&held)?;
        let is_largest = |holder: &Holder| holder[0] == most[0] && held[holder] == held[&most];
        let of_largest = counted().filter(|(_, open)| is_largest(&open.holder.unwrap_or_default()));
        let (number, victim) = of_largest.min_by_key(|(_, open)| open.activity.last_use())?;
        // A connection that is used ends only for a holder of fewer.
        if victim.activity.is_used() && held[&most] <= held[newcomer] {
            return None;
        }
        let number = *number;
        let task = self.by_number.remove(&number).and_then(|open| open.task);
        if let Some(task) = task {
            task.abort();
        }
        Some(())
    }
}

impl ConnectionSlot {
    pub(super) fn activity(&self) -> Arc<Activity> {
        self.activity.clone()
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.open.lock().by_number.remove(&self.number);
    }
}

fn holder(address: IpAddr) -> Holder {
    match address {
        IpAddr::V4(four) => {
            let bits = four.to_ipv6_mapped().to_bits();
            [bits >> 8, bits, bits]
        }
        IpAddr::V6(six) => [six.to_bits() >> 80, six.to_bits() >> 64, six.to_bits()],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Remote { address: std::net::SocketAddr::new(address.parse().unwrap(), 1), tls: false }
    }

    fn limit(connections: usize, per_address: usize, loopback: usize) -> ConnectionLimit {
        ConnectionLimit::new(Limits { connections, per_address, loopback, ..Limits::default() })
    }

    fn is_open(slot: &ConnectionSlot) -> bool {
        slot.open.lock().by_number.contains_key(&slot.number)
    }

    #[test]
    fn an_address_has_its_share_and_gets_it_back() {
        let slots = limit(10, 2, 1);
        let take = |address: &str| slots.take(&peer(address)).expect("a slot");
        let (first, second) = (take("192.0.2.1"), take("192.0.2.1"));
        let third = take("::ffff:192.0.2.1");
        assert!(!is_open(&first) && is_open(&second) && is_open(&third), "the longest idle one ended");
        let used = [second.activity().used(), third.activity().used()];
        assert!(slots.take(&peer("192.0.2.1")).is_none(), "both are used");
        drop(used);
        let _other = take("192.0.2.2");
        drop(third);
        let _again = take("192.0.2.1");
        assert!(is_open(&second));
        let six = [take("2001:db8::1"), take("2001:db8::2"), take("2001:db8:0:1::3")];
        assert!(six.iter().all(is_open));
        let _third_of_a_network = take("2001:db8::3");
        assert_eq!(six.iter().filter(|slot| is_open(slot)).count(), 2);
    }

    #[test]
    fn loopback_and_the_local_socket_have_places_of_their_own() {
        let slots = limit(2, 1, 3);
        let _full = (slots.take(&peer("192.0.2.1")), slots.take(&peer("192.0.2.2")));
        let peers = [peer("127.0.0.1"), peer("::1"), Peer::Local];
        let kept = peers.map(|peer| slots.take(&peer).expect("a slot"));
        assert!(kept.iter().all(is_open));
        let used = kept.each_ref().map(|slot| slot.activity().used());
        assert!(slots.take(&peer("127.0.0.1")).is_none());
        drop(used);
        assert!(slots.take(&peer("127.0.0.1")).is_some());
    }

    #[test]
    fn nine_addresses_with_idle_connections_keep_no_other_out() {
        let slots = limit(512, 64, 16);
        let attack: Vec<_> = (1..=9)
            .flat_map(|host| (0..64).map(move |_| format!("192.0.2.{host}")))
            .filter_map(|address| slots.take(&peer(&address)))
            .collect();
        assert!(attack.len() >= 512);
        let admin = slots.take(&peer("192.0.2.200")).expect("a slot");
        let reading = admin.activity().used();
        let loopback = slots.take(&peer("127.0.0.1")).expect("a slot");
        for host in 1..=9 {
            drop(slots.take(&peer(&format!("192.0.2.{host}"))));
        }
        drop(reading);
        assert!(is_open(&admin) && is_open(&loopback));
    }

    proptest! {
        /// Whatever an attacker opens from any addresses, and whether he uses the connections or not, a host with one
        /// connection keeps it, or gets one.
        #[test]
        fn attacker_with_many_addresses_shuts_out_no_other(
            attack in proptest::collection::vec((0u8..20, any::<bool>()), 0..80),
            at in 0usize..80,
        ) {
            let slots = limit(24, 4, 2);
            let (mut held, mut using) = (Vec::new(), Vec::new());
            let mut mine = None;
            for (index, (host, uses)) in attack.iter().enumerate() {
                if index == at {
                    mine = slots.take(&peer("198.51.100.7"));
                    prop_assert!(mine.is_some());
                }
                if let Some(slot) = slots.take(&peer(&format!("192.0.2.{host}"))) {
                    using.extend(uses.then(|| slot.activity().used()));
                    held.push(slot);
                }
                prop_assert!(slots.open.lock().by_number.len() <= 24);
            }
            prop_assert!(mine.as_ref().is_none_or(is_open));
            prop_assert!(slots.take(&peer("198.51.100.9")).is_some());
        }
    }
}
