//! Watches the proxies: resolves their names, probes each through every leg by which policies reach it, and reports
//! which of them are usable.
//!
//! Some proxies exist inside a tunnel only, so a proxy is up or down per leg, and one that policies reach only through
//! legs is neither resolved nor probed until a leg works. Before its first probe it counts as usable, so a restart of
//! the daemon interrupts no policy: the relay finds out, and lets nothing past it. A lost probe ends no connection.

mod health;
mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::compile::proxy_login;
use gateway_core::facts::ProxyFact;
use gateway_core::indexes::LegId;
use gateway_core::plan::Plan;
use gateway_model::kinds::proxy::{Proxy, ProxyLive, ProxyStatus};
use gateway_model::{Id, State};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::os::proxy::ConnectFailures;
use crate::reconcile::Reason;
use crate::service::{Context, Service};
use crate::world::reports::proxies::ProxyStates;
use health::{Health, Verdict};
use probe::{ProbeParameters, ProbeResult};

/// Time between two attempts to resolve a name, while an address is needed.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// Minimum pause between probes, however many connections fail.
const LEAST_PAUSE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_secs(1);

/// Path to a proxy: the proxy and the leg.
type ProxyPath = (Id, Option<LegId>);

/// Result of a task that the watcher started.
enum TaskResult {
    Probed(ProxyPath, Result<ProbeResult, String>),
    Resolved(String, Result<SocketAddr, String>),
}

/// Path to a proxy and the state of its probes.
#[derive(Debug, Default)]
struct ProxyWatch {
    health: Health,
    reason: String,
    latency: Option<Duration>,
    udp: Option<bool>,
    next: Option<Instant>,
    last_attempt: Option<Instant>,
    in_flight: bool,
    /// Parameters of the last probe. A path to another address starts with fresh state.
    question: Option<(SocketAddr, Option<gateway_core::plan::ProxyLogin>)>,
}

/// Watcher of the proxies.
struct Proxies {
    context: Context,
    paths: BTreeMap<ProxyPath, ProxyWatch>,
    names: BTreeMap<String, ProxyAddress>,
    sender: mpsc::UnboundedSender<TaskResult>,
    news: mpsc::UnboundedReceiver<TaskResult>,
}

#[derive(Debug, Default)]
struct ProxyAddress {
    address: Option<SocketAddr>,
    last_attempt: Option<Instant>,
    /// Number of attempts so far. Each attempt takes the next leg that reaches the proxy.
    attempts: usize,
    /// Reason why there is no address.
    error: String,
}

/// Returns the service that watches the proxies.
pub(crate) fn service(context: &Context) -> Service {
    let worlds = context.worlds.clone();
    Service::vital("proxy_watcher", Proxies::new(context.clone()).run())
        .contributes(move |facts| worlds.last().reports.proxies.enrich(facts))
}

impl Proxies {
    fn new(context: Context) -> Proxies {
        let (sender, news) = mpsc::unbounded_channel();
        Proxies { context, paths: BTreeMap::new(), names: BTreeMap::new(), sender, news }
    }

    async fn run(mut self) {
        let Context { store, wake, worlds, engines, .. } = self.context.clone();
        let (mut changes, mut compiled) = (store.watch(), wake.compiled());
        let mut doubts = engines.relay.connect_failures();
        let mut known = ConnectFailures::default();
        loop {
            let state = store.current();
            let plan = compiled.borrow_and_update().clone();
            // The legs that reach a proxy are unknown until a plan of this state exists.
            let is_current = plan.revision == state.revision.0;
            self.update_paths(&state, &plan.plan, is_current);
            let states = self.poll(&state);
            let before = worlds.last().reports.proxies.clone();
            if *before != states {
                let acts = before.facts != states.facts || before.addresses != states.addresses;
                worlds.report(|reports| reports.proxies = Arc::new(states));
                if acts {
                    wake.wake(Reason::Facts);
                }
            }
            let due = self.paths.values().filter(|path| !path.in_flight).filter_map(|path| path.next).min();
            let due = due.unwrap_or_else(|| Instant::now() + TICK).min(Instant::now() + TICK);
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                news = self.news.recv() => if let Some(news) = news { self.take(&state, news) },
                changed = changes.changed() => if changed.is_err() { return },
                changed = compiled.changed() => if changed.is_err() { return },
                Ok(()) = doubts.changed() => {
                    let now = doubts.borrow_and_update().clone();
                    self.retry_now(now.iter().filter(|(path, count)| known.get(*path) != Some(*count)).map(|(path, _)| path));
                    known = now;
                }
            }
        }
    }

    /// Starts the due lookups of names, and the due probes of the paths in use. A proxy that no policy reaches is
    /// probed over the default route.
    fn update_paths(&mut self, state: &State, plan: &Plan, is_current: bool) {
        let mut wanted: BTreeSet<ProxyPath> = BTreeSet::new();
        // Endpoint names, each with the legs that reach the proxies of that name.
        let mut names: BTreeMap<String, BTreeSet<Option<LegId>>> = BTreeMap::new();
        for proxy in state.proxies.iter().filter(|proxy| proxy.enabled) {
            let id = proxy.meta.id;
            let by = plan.proxies.values().find(|target| target.proxy_id == id.to_string());
            match by {
                // Without a usable leg, no leg may reveal that the proxy is in use.
                Some(target) => wanted.extend(target.legs.iter().map(|leg| (id, *leg))),
                None => drop(wanted.insert((id, None))),
            }
            if let Some(name) = proxy.endpoint_name() {
                names
                    .entry(name)
                    .or_default()
                    .extend(wanted.range((id, None)..).take_while(|(of, _)| *of == id).map(|(_, leg)| *leg));
            }
        }
        self.names.retain(|name, _| names.contains_key(name));
        self.paths.retain(|path, _| wanted.contains(path));
        for (name, legs) in names.into_iter().filter(|(_, legs)| is_current && !legs.is_empty()) {
            self.resolve(state, name, &legs);
        }
        for path in wanted {
            if let Some(proxy) = state.proxies.get(path.0).cloned() {
                self.probe(path, &proxy);
            }
        }
    }

    /// Resolves a name; it keeps its address while the proxy is up there. The lookup uses a leg that reaches the
    /// proxy, and the default route only if it is the only leg.
    fn resolve(&mut self, state: &State, name: String, legs: &BTreeSet<Option<LegId>>) {
        let down = |path: &ProxyPath, watched: &ProxyWatch| {
            let proxy = state.proxies.get(path.0);
            watched.health.verdict() == Verdict::Down
                && proxy.is_some_and(|proxy| proxy.endpoint_name().as_ref() == Some(&name))
        };
        let stale = self.paths.iter().any(|(path, watched)| down(path, watched));
        let known = self.names.entry(name.clone()).or_default();
        let may_ask = known.last_attempt.is_none_or(|last_attempt| last_attempt.elapsed() >= ASK_AGAIN);
        if !may_ask || (known.address.is_some() && !stale) {
            return;
        }
        known.last_attempt = Some(Instant::now());
        known.attempts = known.attempts.wrapping_add(1);
        let mark = Some(LegId::host_mark(carrying_leg(legs, known.attempts)));
        let (sender, endpoint_names) = (self.sender.clone(), self.context.endpoint_names.clone());
        tokio::spawn(async move {
            let found = endpoint_names.resolve(&name, mark).await.map_err(|error| error.to_string());
            let first = |found: Vec<SocketAddr>| found.first().copied().ok_or("it has no address".to_owned());
            // The receiver may have ended.
            let _ = sender.send(TaskResult::Resolved(name, found.and_then(first)));
        });
    }

    fn probe(&mut self, path: ProxyPath, proxy: &Proxy) {
        let address = self.address(proxy);
        let login = proxy_login(proxy);
        let name = proxy.endpoint_name().and_then(|name| self.names.get(&name));
        let error = name.map(|name| name.error.as_str()).filter(|error| !error.is_empty());
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        let watched = self.paths.entry(path).or_default();
        let Some(address) = address else {
            watched.reason = format!("its name cannot be resolved{error}");
            return;
        };
        let question = (address, login.clone());
        if watched.question.as_ref() != Some(&question) {
            let in_flight = watched.in_flight;
            *watched = ProxyWatch { question: Some(question), in_flight, ..ProxyWatch::default() };
        }
        if watched.in_flight || watched.next.is_some_and(|next| next > Instant::now()) {
            return;
        }
        (watched.in_flight, watched.last_attempt) = (true, Some(Instant::now()));
        let question = ProbeParameters {
            address,
            login,
            leg: path.1,
            udp: proxy.udp,
            check: proxy.health_check.clone(),
        };
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let answer = probe::probe(&question).await;
            let _ = sender.send(TaskResult::Probed(path, answer));
        });
    }

    fn address(&self, proxy: &Proxy) -> Option<SocketAddr> {
        match proxy.endpoint_name() {
            Some(name) => self.names.get(&name)?.address,
            None => Some(SocketAddr::new(proxy.address.parse().ok()?, proxy.port)),
        }
    }

    fn take(&mut self, state: &State, news: TaskResult) {
        match news {
            TaskResult::Resolved(name, address) => {
                if let Some(known) = self.names.get_mut(&name) {
                    match address {
                        Ok(address) => (known.address, known.error) = (Some(address), String::new()),
                        Err(error) => known.error = error,
                    }
                }
            }
            TaskResult::Probed(path, answer) => {
                let Some(watched) = self.paths.get_mut(&path) else { return };
                watched.in_flight = false;
                let Some(proxy) = state.proxies.get(path.0) else { return };
                let check = &proxy.health_check;
                watched.health.note(answer.is_ok(), check);
                watched.next = Some(Instant::now() + watched.health.pause(check, chance()));
                match answer {
                    Ok(answer) => {
                        watched.latency = Some(answer.latency);
                        watched.udp = answer.udp.or(watched.udp);
                        watched.reason.clear();
                    }
                    Err(reason) => watched.reason = reason,
                }
            }
        }
    }

    /// Makes the next probe of a path due at once, because a client's connection over it failed.
    fn retry_now<'a>(&mut self, doubted: impl Iterator<Item = &'a (String, Option<LegId>)>) {
        for (id, leg) in doubted {
            let Some(watched) = id.parse().ok().and_then(|id| self.paths.get_mut(&(id, *leg))) else {
                continue;
            };
            let soon =
                watched.last_attempt.map_or_else(Instant::now, |last_attempt| last_attempt + LEAST_PAUSE);
            watched.next = Some(watched.next.map_or(soon, |next| next.min(soon)));
        }
    }

    fn poll(&self, state: &State) -> ProxyStates {
        let mut states = ProxyStates::default();
        for proxy in state.proxies.iter() {
            let id = proxy.meta.id;
            let paths = || {
                self.paths
                    .range((id, None)..)
                    .take_while(|((of, _), _)| *of == id)
                    .map(|((_, leg), watched)| (*leg, watched))
            };
            let verdict = |wanted| paths().any(|(_, path)| path.health.verdict() == wanted);
            let status = match proxy.enabled {
                false => ProxyStatus::Disabled,
                true if verdict(Verdict::Up) => ProxyStatus::Up,
                true if verdict(Verdict::Down) => ProxyStatus::Down,
                true => ProxyStatus::Unknown,
            };
            let latency = paths().filter_map(|(_, path)| path.latency).min();
            let latency = latency.filter(|_| status == ProxyStatus::Up);
            let reason = paths().map(|(_, path)| &path.reason).find(|reason| !reason.is_empty());
            let live = ProxyLive {
                status,
                latency_ms: latency.map(|latency| (latency.as_secs_f64() * 10_000.0).round() / 10.0),
                udp_works: paths().find_map(|(_, path)| path.udp),
                last_error: reason.cloned(),
            };
            states.proxies.insert(id, live);
            for (leg, path) in paths() {
                let fact = ProxyFact {
                    usable: path.health.verdict() != Verdict::Down,
                    reason: if path.health.verdict() == Verdict::Down {
                        path.reason.clone()
                    } else {
                        String::new()
                    },
                    udp: proxy.udp && path.udp != Some(false),
                };
                states.facts.entry(id.to_string()).or_default().insert(leg, fact);
            }
            if let (Some(name), Some(address)) = (proxy.endpoint_name(), self.address(proxy)) {
                states.addresses.insert(name, address);
            }
        }
        states
    }
}

/// Returns the leg for resolving a name. The legs that reach its proxy take turns; the default route is used only if
/// it is the only leg.
fn carrying_leg(legs: &BTreeSet<Option<LegId>>, attempt: usize) -> Option<LegId> {
    let others: Vec<LegId> = legs.iter().copied().flatten().collect();
    others.get(attempt % others.len().max(1)).copied()
}

/// Returns a random number from 0 to 1.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness, probes merely run at regular times.
    let _ = getrandom::fill(&mut bytes);
    f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_proxy_is_resolved_by_the_default_route_only_without_another_underlay() {
        let leg = |legs: &[u8], attempt| {
            LegId::raw(carrying_leg(&legs.iter().copied().map(LegId::new).collect(), attempt))
        };
        assert_eq!(leg(&[0], 1), 0);
        assert_eq!(leg(&[0, 16], 1), 16);
        assert_eq!([1, 2, 3].map(|attempt| leg(&[0, 16, 17], attempt)), [17, 16, 17]);
    }
}
