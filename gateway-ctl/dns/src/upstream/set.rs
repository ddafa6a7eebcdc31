//! Upstreams in use, and the selection for a query.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use gateway_core::dns::{Name, NameRef};
use gateway_model::settings::groups::{DnsRotation, RotationMode};
use gateway_outbound::Egress;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::client::{Answer, UpstreamClient};
use super::config::{Group, Plan};
use super::context::Context;
use super::egress::{EgressNames, egress_of, shown};
use super::error::random;
use super::fallback::{self, DEADLINE};
use super::health::HealthStats;
use super::message::UpstreamQuery;
use super::selection::{Candidate, OrderInput, order, scramble};
use super::status::UpstreamStatus;
use super::validate::{Validator, ZoneKeys};
use crate::hooks::Server;
use crate::hooks::{Failure, Query, QueryEgress, QueryRoute, Reply, Resolvers, Upstream};

const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// Asks upstreams.
pub struct Upstreams {
    context: Arc<Context>,
    set: ArcSwap<Set>,
}

struct Set {
    groups: Vec<Arc<UpstreamGroup>>,
    by_domain: hashbrown::HashMap<Name, usize>,
    /// Groups of routes with their own resolvers, created on demand.
    apart: Mutex<HashMap<Arc<[Server]>, Arc<UpstreamGroup>>>,
    common: Arc<Common>,
}

/// Common parts of all groups of a set.
struct Common {
    rotation: DnsRotation,
    called: EgressNames,
    context: Arc<Context>,
}

/// Group of upstreams, with its members and validators.
struct UpstreamGroup {
    group: Group,
    servers: Vec<Arc<GroupMember>>,
    common: Arc<Common>,
    since: Instant,
    /// Number of queries. It survives a replacement of the set, so that a new plan does not begin with the first path
    /// again.
    turns: Arc<AtomicUsize>,
    /// By partition: validated keys stay with the route of their query.
    validators: Mutex<HashMap<u16, Arc<Validator>>>,
}

/// Upstream with its clients, one for each egress.
struct GroupMember {
    server: Arc<Server>,
    key: u64,
    lines: Mutex<HashMap<Egress, Arc<UpstreamClient>>>,
}

/// Upstreams and egresses that a query would use.
#[derive(Debug)]
pub struct UpstreamSelection {
    pub servers: Vec<Arc<str>>,
    /// Names of the egresses, in round-robin order.
    pub routes: Vec<Arc<str>>,
}

/// Answer with the upstream that gave it.
struct UpstreamReply {
    answer: Answer,
    upstream: Arc<str>,
    egress: Arc<str>,
}

impl Upstreams {
    pub fn new(plan: Plan, context: Context) -> Upstreams {
        let context = Arc::new(context);
        let set = ArcSwap::from_pointee(Set::of(plan, &context, None));
        Upstreams { context, set }
    }

    /// Uses this plan from now on, and drops paths that were not used for long. Pending queries are not disturbed.
    /// Unchanged upstreams keep connections and health.
    pub fn replace(&self, plan: Plan) {
        for member in self.set.load().all().iter().flat_map(|group| &group.servers) {
            member.lines().retain(|_, line| line.unwanted() < FORGOTTEN_AFTER);
        }
        self.set.rcu(|before| Set::of(plan.clone(), &self.context, Some(before)));
    }

    /// Returns every upstream by every path that was used; an unused one by its own path.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        let set = self.set.load();
        let mut shown = Vec::new();
        for group in &set.all() {
            for member in &group.servers {
                let mut lines: Vec<Arc<UpstreamClient>> = member.lines().values().cloned().collect();
                lines
                    .sort_by_key(|line| (line.path.mark, line.path.proxy.as_ref().map(|proxy| proxy.server)));
                if lines.is_empty() {
                    shown.push(UpstreamStatus::of(
                        &member.server,
                        &group.group.egress,
                        &HealthStats::default(),
                    ));
                }
                shown.extend(
                    lines
                        .iter()
                        .map(|line| UpstreamStatus::of(&line.server, &line.egress, &line.health.figures())),
                );
            }
        }
        shown
    }

    /// Returns the status of the upstreams for all names, by every path that was used. Empty if there are none.
    pub fn for_all_names(&self) -> Vec<(Arc<str>, HealthStats)> {
        let Some(group) = self.set.load().find(NameRef::ROOT, &Resolvers::Usual) else {
            return Vec::new();
        };
        let of_member = |member: &Arc<GroupMember>| {
            let lines: Vec<HealthStats> = member.lines().values().map(|line| line.health.figures()).collect();
            let unused = lines.is_empty().then(HealthStats::default);
            let shown = member.server.shown.clone();
            lines.into_iter().chain(unused).map(move |stats| (shown.clone(), stats)).collect::<Vec<_>>()
        };
        group.servers.iter().flat_map(of_member).collect()
    }

    /// Probes the upstreams for all names that have answered nothing for so long, by the path of the gateway itself.
    /// Returns when all have answered or failed.
    pub async fn probe_silent(&self, silence: Duration) {
        let Some(group) = self.set.load().find(NameRef::ROOT, &Resolvers::Usual) else { return };
        // Without an egress there is nothing to learn about upstreams.
        let Ok(path) = group.path(group.route(&QueryEgress::Default), 0) else { return };
        let lines = group.servers.iter().map(|member| group.line(member, path.clone()));
        let silent = lines.filter(|line| line.health.is_silent(silence));
        let probes: Vec<_> = silent.map(|line| async move { line.probe_now().await }).collect();
        futures_util::future::join_all(probes).await;
    }

    /// Returns the upstreams for a name by a route, or the reason why there are none.
    pub fn select(&self, name: NameRef<'_>, route: &QueryRoute) -> Result<UpstreamSelection, Arc<str>> {
        let set = self.set.load();
        let group = set.find(name, &route.resolvers).ok_or("no upstream is set")?;
        let route = group.route(&route.route);
        let turns = if let QueryEgress::Marked(marks) = route { marks.len() } else { 1 };
        let called = |turn| Ok(shown(&egress_of(route, turn)?, &set.common.called));
        let routes = (0..turns.max(1)).map(called).collect::<Result<_, Arc<str>>>()?;
        let servers: Vec<Arc<str>> = group.servers.iter().map(|member| member.server.shown.clone()).collect();
        if servers.is_empty() {
            Err("no upstream is set".into())
        } else {
            Ok(UpstreamSelection { servers, routes })
        }
    }

    async fn answer(&self, query: Query) -> Result<Reply, Failure> {
        let began = Instant::now();
        let set = self.set.load_full();
        let route = &query.route;
        let group = set.find(query.name.as_ref(), &route.resolvers).ok_or(Failure::NoUpstream)?;
        let asked = UpstreamQuery {
            name: query.name,
            qtype: query.qtype,
            recursion: group.group.recursion,
            dnssec_ok: query.dnssec_ok,
            checking_disabled: query.checking_disabled,
        };
        let until = began + self.context.wait(DEADLINE);
        let (reply, secure) = if group.group.dnssec && !asked.checking_disabled {
            // Whatever the upstream makes of it: it is evaluated here (RFC 6840, section 5.9).
            let signed = UpstreamQuery { dnssec_ok: true, checking_disabled: true, ..asked.clone() };
            let mut reply = group.send_query(&route.route, query.client, signed, until).await?;
            let (message, head, _) = &mut reply.answer;
            let secure = group.validator(&set, route).check(&asked, message, head.rcode, until).await?;
            (reply, Some(secure))
        } else {
            (group.send_query(&route.route, query.client, asked, until).await?, None)
        };
        let (message, _, _) = reply.answer;
        Ok(Reply {
            message: Bytes::from(message),
            upstream: reply.upstream,
            egress: reply.egress,
            elapsed: began.elapsed(),
            forwarder: group.group.forwarder,
            secure,
        })
    }
}

impl Upstream for Upstreams {
    fn send_query(&self, query: Query) -> impl Future<Output = Result<Reply, Failure>> + Send {
        self.answer(query)
    }
}

impl ZoneKeys for Set {
    fn send_query<'a>(
        &'a self,
        zone: NameRef<'a>,
        route: &'a QueryRoute,
        name: Name,
        qtype: u16,
    ) -> BoxFuture<'a, Result<(Vec<u8>, u16), String>> {
        Box::pin(async move {
            let group = self.find(zone, &route.resolvers).ok_or("no upstream is set")?;
            let recursion = group.group.recursion;
            let asked = UpstreamQuery { name, qtype, recursion, dnssec_ok: true, checking_disabled: true };
            let until = Instant::now() + group.common.context.wait(DEADLINE);
            let reply = group
                .send_query(&route.route, 0, asked, until)
                .await
                .map_err(|failure| failure.to_string())?;
            let (message, head, _) = reply.answer;
            Ok((message, head.rcode))
        })
    }
}

impl Set {
    fn of(plan: Plan, context: &Arc<Context>, before: Option<&Set>) -> Set {
        let by_domain = plan.domains();
        let common =
            Arc::new(Common { rotation: plan.rotation, called: plan.called, context: context.clone() });
        let known: Vec<Arc<GroupMember>> = before
            .iter()
            .flat_map(|set| &set.groups)
            .flat_map(|standing| standing.servers.iter().cloned())
            .collect();
        let groups = plan.groups.into_iter().map(|mut group| {
            let servers = std::mem::take(&mut group.servers);
            let same = |standing: &&Arc<UpstreamGroup>| standing.group.domain == group.domain;
            let turns = before.iter().flat_map(|set| &set.groups).find(same).map(|same| same.turns.clone());
            UpstreamGroup::new(group, servers, &known, common.clone(), turns.unwrap_or_default())
        });
        let groups = groups.collect();
        let apart = before.map(|set| set.apart().clone()).unwrap_or_default();
        // They were not used for long, or are not to be used.
        let wanted = apart.into_iter().filter(|(_, standing)| standing.is_in_use());
        let apart = wanted.map(|(servers, standing)| {
            let again =
                UpstreamGroup::apart(&servers, &standing.servers, common.clone(), standing.turns.clone());
            (servers, again)
        });
        let apart = Mutex::new(apart.collect());
        let set = Set { groups, by_domain, apart, common };
        // A route with another name is another one: nothing known of it applies.
        for member in set.all().iter().flat_map(|standing| &standing.servers) {
            member.lines().retain(|path, line| line.egress == shown(path, &set.common.called));
        }
        set
    }

    fn apart(&self) -> MutexGuard<'_, HashMap<Arc<[Server]>, Arc<UpstreamGroup>>> {
        self.apart.lock()
    }

    fn all(&self) -> Vec<Arc<UpstreamGroup>> {
        let mut all = self.groups.clone();
        all.extend(self.apart().values().cloned());
        all
    }

    /// Returns the group with the longest domain that contains the name. In place of the group for all names, a route's
    /// own resolvers are used.
    fn find(&self, name: NameRef<'_>, resolvers: &Resolvers) -> Option<Arc<UpstreamGroup>> {
        let index = name.suffixes().find_map(|suffix| self.by_domain.get(&suffix.to_owned()));
        let found = index.and_then(|index| self.groups.get(*index));
        match resolvers {
            Resolvers::Only(servers) if found.is_none_or(|found| found.group.domain.as_ref().is_root()) => {
                let made = || UpstreamGroup::apart(servers, &[], self.common.clone(), Arc::default());
                Some(self.apart().entry(servers.clone()).or_insert_with(made).clone())
            }
            _ => found.cloned(),
        }
    }
}

impl GroupMember {
    fn new(server: Server) -> GroupMember {
        let key = random::<8>().map_or(0, u64::from_ne_bytes);
        GroupMember { server: Arc::new(server), key, lines: Mutex::default() }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Egress, Arc<UpstreamClient>>> {
        self.lines.lock()
    }
}

impl UpstreamGroup {
    /// Upstreams that are already known keep connections and health.
    fn new(
        group: Group,
        servers: Vec<Server>,
        known: &[Arc<GroupMember>],
        common: Arc<Common>,
        turns: Arc<AtomicUsize>,
    ) -> Arc<UpstreamGroup> {
        let servers = servers.into_iter().map(|server| {
            let same = known.iter().find(|member| *member.server == server);
            same.cloned().unwrap_or_else(|| Arc::new(GroupMember::new(server)))
        });
        Arc::new(UpstreamGroup {
            group,
            servers: servers.collect(),
            common,
            since: Instant::now(),
            turns,
            validators: Mutex::default(),
        })
    }

    fn apart(
        servers: &Arc<[Server]>,
        known: &[Arc<GroupMember>],
        common: Arc<Common>,
        turns: Arc<AtomicUsize>,
    ) -> Arc<UpstreamGroup> {
        UpstreamGroup::new(Group::for_all(), servers.to_vec(), known, common, turns)
    }

    fn is_in_use(&self) -> bool {
        self.servers.iter().any(|member| !member.lines().is_empty())
    }

    /// Returns the route of the client, or the group's own one if that is the default route.
    fn route<'a>(&'a self, route: &'a QueryEgress) -> &'a QueryEgress {
        if *route == QueryEgress::Default { &self.group.route } else { route }
    }

    /// One query, by the route of the client.
    async fn send_query(
        &self,
        route: &QueryEgress,
        client: u64,
        query: UpstreamQuery,
        until: Instant,
    ) -> Result<UpstreamReply, Failure> {
        let route = self.route(route);
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let path = self.path(route, turn).map_err(Failure::Blocked)?;
        let lines = self.choose(&path, client, turn as u64)?;
        let wide = self.common.rotation.mode == RotationMode::Parallel;
        let (answer, line) = fallback::send_query(lines, Arc::new(query), wide, until).await?;
        Ok(UpstreamReply { answer, upstream: line.server.shown.clone(), egress: line.egress.clone() })
    }

    /// Returns the validator of a route. A changed route gets a new one.
    fn validator(&self, set: &Arc<Set>, route: &Arc<QueryRoute>) -> Arc<Validator> {
        let mut validators = self.validators.lock();
        if let Some(validator) =
            validators.get(&route.partition).filter(|validator| validator.route == *route)
        {
            return validator.clone();
        }
        let keys: Weak<Set> = Arc::downgrade(set);
        let anchors = self.common.context.anchors.clone();
        let validator = Arc::new(Validator::new(keys, route.clone(), anchors));
        validators.insert(route.partition, validator.clone());
        validator
    }

    /// Returns the next path of the route. Skips paths on which all upstreams are dead if another one is left.
    fn path(&self, route: &QueryEgress, turn: usize) -> Result<Egress, Arc<str>> {
        let next = egress_of(route, turn)?;
        let marks = if let QueryEgress::Marked(marks) = route { marks.len() } else { 1 };
        let dead = |path: &Egress| {
            let dead = |member: &Arc<GroupMember>| {
                member.lines().get(path).is_some_and(|line| line.health.is_dead())
            };
            self.servers.iter().all(dead)
        };
        let mut paths = (0..marks).filter_map(|offset| egress_of(route, turn.wrapping_add(offset)).ok());
        Ok(paths.find(|path| marks == 1 || !dead(path)).unwrap_or(next))
    }

    /// Returns the upstream clients by this path, in the order of attempts.
    fn choose(&self, path: &Egress, client: u64, turn: u64) -> Result<Vec<Arc<UpstreamClient>>, Failure> {
        let lines: Vec<Arc<UpstreamClient>> =
            self.servers.iter().map(|member| self.line(member, path.clone())).collect();
        if lines.len() < 2 {
            return Ok(lines);
        }
        let candidates: Vec<Candidate> = lines
            .iter()
            .zip(&self.servers)
            .map(|(line, member)| Candidate {
                key: member.key,
                dead: line.health.is_dead(),
                rtt: line.health.rtt(),
            })
            .collect();
        let (count, random) = match self.common.rotation.interval_sec {
            0 => (turn, u64::from_ne_bytes(random().map_err(|e| Failure::Failed(e.to_string()))?)),
            interval => {
                let count = self.since.elapsed().as_secs() / interval;
                (count, scramble(self.servers[0].key ^ count))
            }
        };
        let client = self.common.rotation.sticky_per_device.then_some(client);
        let order = order(&candidates, OrderInput { mode: self.common.rotation.mode, client, count, random });
        Ok(order.into_iter().map(|index| lines[index].clone()).collect())
    }

    fn line(&self, member: &GroupMember, path: Egress) -> Arc<UpstreamClient> {
        let mut lines = member.lines();
        let made = || {
            let egress = shown(&path, &self.common.called);
            UpstreamClient::new(member.server.clone(), path.clone(), egress, self.common.context.clone())
        };
        let line = lines.entry(path.clone()).or_insert_with(made).clone();
        line.touch();
        line
    }
}
