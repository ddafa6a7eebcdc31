//! Ways of questions: from what the plan says to what sockets bear.

use std::sync::{Arc, Mutex, PoisonError};

use gateway_common::wire::Mark;
use gateway_core::compile::{Compiled, Input, Leg, LegKind};
use gateway_core::outgoing::{self, Outgoing};
use gateway_core::plan::ProxyLogin;
use gateway_dns::seam::{Login, Resolvers, Route, Way};
use gateway_dns::upstream::Called;
use gateway_model::State;
use gateway_model::kinds::{DnsForwarder, Proxy};
use zeroize::Zeroizing;

/// The ways that were ever in use: a way keeps its number, and with it its part of the cache.
#[derive(Default)]
pub struct Ways(Mutex<Vec<Arc<Way>>>);

impl Ways {
    pub fn of(&self, outgoing: Outgoing, resolvers: Resolvers) -> Arc<Way> {
        let route = route(outgoing);
        let mut ways = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = ways.iter().find(|way| way.route == route && way.resolvers == resolvers) {
            return known.clone();
        }
        // Nobody has so many ways; if somebody had, their answers would not be kept apart, so nothing goes that way.
        let way = match u16::try_from(ways.len()) {
            Ok(partition) => Way { partition, route, resolvers },
            Err(_) => {
                let route = Route::Blocked("there are too many ways".into());
                Way { partition: u16::MAX, route, resolvers }
            }
        };
        let way = Arc::new(way);
        ways.push(way.clone());
        way
    }

    /// The route of a forwarder by its own settings.
    pub fn of_forwarder(
        &self,
        input: &Input<'_>,
        compiled: &Compiled,
        egress: &str,
        proxy: Option<&str>,
    ) -> Route {
        let way = match egress {
            DnsForwarder::AUTO => Outgoing::Default,
            name => outgoing::by_name(input, compiled, name),
        };
        let Some(proxy) = proxy else { return route(way) };
        let leg = match way {
            Outgoing::Default => 0,
            Outgoing::Legs(legs) => legs.first().copied().unwrap_or(0),
            other => return route(other),
        };
        let Some(found) = input.state.find::<Proxy>(proxy) else {
            return Route::Blocked(format!("there is no proxy {proxy}").into());
        };
        match outgoing::to_proxy(input, found, leg) {
            Ok(outgoing) => route(outgoing),
            Err(why) => Route::Blocked(why.into()),
        }
    }
}

/// What the ways are called that tunnels and uplinks are.
pub fn called(state: &State, compiled: &Compiled) -> Called {
    let name = |leg: &Leg| -> Arc<str> {
        match &leg.kind {
            LegKind::Uplink => leg.interface.as_str().into(),
            LegKind::Tunnel(id) => {
                state.tunnels.get(*id).map_or(leg.interface.as_str(), |tunnel| &tunnel.name).into()
            }
        }
    };
    compiled.legs.by_number.values().map(|leg| (mark(leg.number), name(leg))).collect()
}

fn mark(leg: u8) -> u32 {
    Mark::OWN.0 | u32::from(leg)
}

fn route(outgoing: Outgoing) -> Route {
    match outgoing {
        Outgoing::Default => Route::Default,
        Outgoing::Legs(legs) => Route::Marked(legs.into_iter().map(mark).collect()),
        Outgoing::Proxy { address, leg, login } => {
            Route::Proxy { server: address, mark: mark(leg), user: login.map(credentials) }
        }
        Outgoing::Blocked(why) => Route::Blocked(why.into()),
    }
}

fn credentials(login: ProxyLogin) -> Arc<Login> {
    let password = Zeroizing::new(login.password.expose().to_owned());
    Arc::new(Login { user: login.username, password })
}
