//! Query routes: from the plan's egress to the options of sockets.
//!
//! Decision 0043 says why.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gateway_core::compile::{Compiled, Input};
use gateway_core::host_egress::{self, HostEgress};
use gateway_core::indexes::LegId;
use gateway_core::plan::ProxyLogin;
use gateway_dns::hooks::{Login, QueryEgress, QueryRoute, Resolvers};
use gateway_dns::upstream::EgressNames;
use gateway_model::State;
use gateway_model::kinds::{DnsForwarder, Proxy};
use parking_lot::Mutex;
use zeroize::Zeroizing;

/// Query routes in use. A route keeps its index, and with it its cache partition. Unused routes expire.
#[derive(Default)]
pub(super) struct QueryRoutes(Mutex<QueryRouteTable>);

#[derive(Default)]
struct QueryRouteTable {
    routes: Vec<Entry>,
    /// First index that was never assigned.
    next: u16,
    /// Indexes of expired routes, oldest first.
    retired: VecDeque<(u16, Instant)>,
}

struct Entry {
    route: Arc<QueryRoute>,
    unused_since: Option<Instant>,
}

/// Time without use after which a route expires.
const EXPIRES_AFTER: Duration = Duration::from_secs(600);
/// Time after which the index of an expired route may be reused. No answer stays in the cache for so long.
const RETIRED_FOR: Duration = Duration::from_secs(8 * 24 * 3600);

impl QueryRouteTable {
    fn take_number(&mut self, now: Instant) -> Option<u16> {
        if self.next < u16::MAX {
            self.next += 1;
            return Some(self.next - 1);
        }
        let (_, retired) = self.retired.front()?;
        let is_free = now.saturating_duration_since(*retired) >= RETIRED_FOR;
        if is_free { self.retired.pop_front().map(|(number, _)| number) } else { None }
    }
}

impl QueryRoutes {
    pub(super) fn of(&self, outgoing: HostEgress, resolvers: Resolvers) -> Arc<QueryRoute> {
        let route = route(outgoing);
        let mut table = self.0.lock();
        let known =
            table.routes.iter_mut().find(|one| one.route.route == route && one.route.resolvers == resolvers);
        if let Some(known) = known {
            known.unused_since = None;
            return known.route.clone();
        }
        let Some(partition) = table.take_number(Instant::now()) else {
            // Without its own index, a route would share a cache partition with others, so it blocks all queries.
            let route = QueryEgress::Blocked("there are too many ways".into());
            return Arc::new(QueryRoute { partition: u16::MAX, route, resolvers });
        };
        let route = Arc::new(QueryRoute { partition, route, resolvers });
        table.routes.push(Entry { route: route.clone(), unused_since: None });
        route
    }

    /// Drops the routes that no client, policy or query has used for some time.
    pub(super) fn expire(&self, now: Instant) {
        let mut table = self.0.lock();
        let QueryRouteTable { routes, retired, .. } = &mut *table;
        routes.retain_mut(|one| {
            if Arc::strong_count(&one.route) > 1 {
                one.unused_since = None;
                return true;
            }
            let since = *one.unused_since.get_or_insert(now);
            let stays = now.saturating_duration_since(since) < EXPIRES_AFTER;
            if !stays {
                retired.push_back((one.route.partition, now));
            }
            stays
        });
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().routes.len()
    }

    /// Returns the route of a forwarder by its own settings.
    pub(super) fn of_forwarder(
        &self,
        input: &Input<'_>,
        compiled: &Compiled,
        egress: &str,
        proxy: Option<&str>,
    ) -> QueryEgress {
        let outgoing = match egress {
            DnsForwarder::AUTO => HostEgress::Default,
            name => host_egress::by_name(input, compiled, name),
        };
        let Some(proxy) = proxy else { return route(outgoing) };
        let leg = match outgoing {
            HostEgress::Default => None,
            HostEgress::Legs(legs) => legs.first().copied(),
            other => return route(other),
        };
        let Some(found) = input.state.find::<Proxy>(proxy) else {
            return QueryEgress::Blocked(format!("there is no proxy {proxy}").into());
        };
        match host_egress::to_proxy(input, found, leg) {
            Ok(outgoing) => route(outgoing),
            Err(why) => QueryEgress::Blocked(why.into()),
        }
    }
}

/// Returns the display names of the egresses (tunnels and uplinks).
pub(super) fn called(state: &State, compiled: &Compiled) -> EgressNames {
    compiled
        .legs
        .by_number
        .values()
        .map(|leg| (LegId::host_mark(Some(leg.number)), Arc::from(leg.name(state))))
        .collect()
}

fn route(outgoing: HostEgress) -> QueryEgress {
    match outgoing {
        HostEgress::Default => QueryEgress::Default,
        HostEgress::Legs(legs) => {
            QueryEgress::Marked(legs.into_iter().map(|leg| LegId::host_mark(Some(leg))).collect())
        }
        HostEgress::Proxy { address, leg, login } => {
            QueryEgress::Proxy { server: address, mark: LegId::host_mark(leg), user: login.map(credentials) }
        }
        HostEgress::Blocked(why) => QueryEgress::Blocked(why.into()),
    }
}

fn credentials(login: ProxyLogin) -> Arc<Login> {
    let password = Zeroizing::new(login.password.expose().to_owned());
    Arc::new(Login { user: login.username, password })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_routes_expire_and_their_numbers_are_not_reused_soon() {
        let (routes, start) = (QueryRoutes::default(), Instant::now());
        let kept = routes.of(HostEgress::Default, Resolvers::Usual);
        for n in 0..1000_u16 {
            routes.of(HostEgress::Blocked(format!("policy {n}")), Resolvers::Usual);
        }
        assert_eq!(routes.len(), 1001);
        routes.expire(start);
        assert_eq!(routes.len(), 1001, "unused from now on");
        routes.of(HostEgress::Blocked("policy 7".into()), Resolvers::Usual);
        routes.expire(start + EXPIRES_AFTER);
        assert_eq!(routes.len(), 2, "the one that was used again begins anew");
        routes.expire(start + EXPIRES_AFTER * 2);
        assert_eq!(routes.len(), 1);
        assert!(
            Arc::ptr_eq(&kept, &routes.of(HostEgress::Default, Resolvers::Usual)),
            "what is in use stays"
        );
        let next = routes.of(HostEgress::Blocked("another".into()), Resolvers::Usual);
        assert_eq!(next.partition, 1001, "answers of an expired way may still be cached under its number");
    }

    #[test]
    fn numbers_are_given_again_when_no_cache_can_hold_them() {
        let (mut table, start) = (QueryRouteTable::default(), Instant::now());
        table.next = u16::MAX;
        assert_eq!(table.take_number(start), None);
        table.retired.push_back((5, start));
        assert_eq!(table.take_number(start + RETIRED_FOR / 2), None);
        assert_eq!(table.take_number(start + RETIRED_FOR), Some(5));
        assert_eq!(table.take_number(start + RETIRED_FOR), None);
    }
}
