//! Posture by state of the tunnels: the behaviour of each policy in force, and whether traffic would leak.
//!
//! Each state is compiled, and the fwmarks are followed through the rules, routes and guards of the resulting plan.

mod cell;
mod hosts;
pub mod per_hop;
mod reach;
mod scenarios;

use std::collections::BTreeMap;

use gateway_common::wire::ChoiceKind;
use gateway_model::id::Id;
use gateway_model::kinds::routing_policy::{FailPolicy, HopMode, HopType, RoutingPolicy};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::{Compiled, CompiledPolicy, Input};
use crate::evaluate::route::{Exits, Kernel};
use crate::evaluate::{Decision, PolicyRef};
use crate::gateway_verdict::{HostCounts, Treatment};
pub use cell::{Cell, Cells, HopColumn, Outcome};
use reach::{DnsPath, ExternalQueries, Reach, is_bound};
use scenarios::Scenarios;
pub(crate) use scenarios::{Scenario, up_and_down};

/// Leak matrix: policies by states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeakMatrix {
    /// Names of the columns, in order.
    pub states: Vec<String>,
    /// Columns of single hops; empty unless they were requested.
    pub hops: Vec<HopColumn>,
    /// The policies in force, in order of evaluation.
    pub rows: Vec<LeakRow>,
    /// Hosts without a device record that are there, by the treatment of their packets now.
    pub without_record: HostCounts,
    /// The same hosts as rows of their own, the most exposed first.
    pub unrecorded: Vec<UnrecordedRow>,
    /// Cell of the state without a plan.
    #[serde(skip)]
    boot: Cell,
    pub risk: Risk,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeakRow {
    pub policy_id: Id,
    pub name: String,
    pub fail_policy: FailPolicy,
    /// Hosts that are there and whose packets the policy decides on now.
    pub hosts: usize,
    pub cells: Cells,
    pub risk: Risk,
}

/// Row of hosts without a device record: those of one treatment, by one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnrecordedRow {
    /// Treatment of their packets now.
    pub treatment: Treatment,
    /// Policy or exception that decides on them; null if none does.
    pub policy: Option<PolicyRef>,
    /// Number of hosts that are there.
    pub hosts: usize,
    /// Behaviour in each state. That of the policy's row; without one it does not depend on tunnels, and is no leak, because
    /// nothing intends a tunnel for them.
    pub cells: Cells,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Nothing leaks in any state.
    #[default]
    None,
    /// Leaks only when hops fail, because the policy fails open or names an uplink as its last hop.
    Low,
    /// Leaks while all tunnels work, while the daemon or the plan is absent, or contrary to the failure policy.
    High,
}

/// Behaviour of one policy when its hops fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailRow {
    pub policy_id: Id,
    pub name: String,
    pub fail_policy: FailPolicy,
    pub hops: Vec<FailHop>,
    /// Present outcome, of the address family with the higher exposure. The next two are of the same kind.
    pub current: Outcome,
    pub if_first_fails: Outcome,
    pub if_all_fail: Outcome,
    /// Traffic leaks in at least one state of the leak matrix.
    pub leak_possible: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailHop {
    pub r#type: HopType,
    pub target: String,
    pub healthy: bool,
    /// Human-readable reason why the hop is not usable; empty if it is.
    pub reason: String,
}

pub const STATES: [&str; 6] = ["up", "degraded", "down", "flapping", "daemon_down", "boot"];

/// The grid over the policies at work.
pub fn leak_matrix(input: &Input<'_>) -> LeakMatrix {
    rows_of(input, &Scenarios::of(input)).matrix
}

/// Returns the behaviour of each policy in force, now and when hops fail. `compiled` is the plan of the present facts.
pub fn fail_matrix(input: &Input<'_>, compiled: &Compiled) -> Vec<FailRow> {
    let worlds = Scenarios::of(input);
    let Grid { matrix, degraded, .. } = rows_of(input, &worlds);
    let mut now = Exits::of(Kernel::new(compiled, input.facts));
    let mut up = worlds.up.exits();
    let mut nothing = worlds.nothing.exits();
    let mut rows = Vec::new();
    let by_id: BTreeMap<Id, &CompiledPolicy> =
        compiled.policies.iter().map(|policy| (policy.id, policy)).collect();
    for (rank, row) in matrix.rows.into_iter().enumerate() {
        // The plan may come from other policies than the state has.
        let Some(policy) = by_id.get(&row.policy_id).copied() else { continue };
        let usual = both(&mut up, &worlds.up.compiled.policies[rank]);
        let current = both(&mut now, policy);
        let all = both(&mut nothing, &worlds.nothing.compiled.policies[rank]);
        let cells = &row.cells;
        let leaks =
            [&cells.up, &cells.degraded, &cells.down, &cells.flapping, &cells.daemon_down, &cells.boot];
        rows.push(FailRow {
            policy_id: row.policy_id,
            name: row.name,
            fail_policy: row.fail_policy,
            hops: policy.hops.iter().map(fail_hop).collect(),
            current: exposed(&current, &usual),
            if_first_fails: degraded[rank],
            if_all_fail: exposed(&all, &usual),
            leak_possible: leaks.iter().any(|cell| cell.leak),
        });
    }
    rows
}

fn fail_hop(hop: &crate::compile::HopState) -> FailHop {
    FailHop {
        r#type: hop.hop.r#type,
        target: hop.hop.target.clone(),
        healthy: hop.usable,
        reason: hop.reason.clone(),
    }
}

/// Returns the egress of a policy's traffic in the present, and of both families the more exposed decision.
pub(crate) fn present_egress(
    input: &Input<'_>,
    exits: &mut Exits<'_>,
    policy: &CompiledPolicy,
) -> (Decision, Option<String>) {
    let compiled = exits.kernel.compiled;
    let families = both(exits, policy).map(|reach| {
        let decision = match reach.outcome(&reach) {
            Outcome::Blocked => Decision::Block,
            Outcome::Tunnel | Outcome::NextHop => Decision::Tunnel,
            Outcome::Direct => Decision::Direct,
        };
        (decision, reach.via(input, compiled))
    });
    let [four, six] = families;
    if six.0 > four.0 { six } else { four }
}

fn both(exits: &mut Exits<'_>, policy: &CompiledPolicy) -> [Reach; 2] {
    [Reach::of_policy(exits, policy, false), Reach::of_policy(exits, policy, true)]
}

/// Returns the more exposed of two address families, relative to the usual state of each.
fn exposed(reach: &[Reach; 2], usual: &[Reach; 2]) -> Outcome {
    let [four, six] = [0, 1].map(|i| reach[i].outcome(&usual[i]));
    four.max(six)
}

/// Leak matrix, and what was computed on the way to it.
struct Grid<'a> {
    matrix: LeakMatrix,
    /// Outcome of each row without the first hop of its policy.
    degraded: Vec<Outcome>,
    /// View of each row, with the rank of its policy.
    views: Vec<(usize, View<'a>)>,
}

fn rows_of<'a>(input: &'a Input<'a>, worlds: &'a Scenarios) -> Grid<'a> {
    let mut rows = Rows::new(input, worlds);
    let (mut list, mut degraded, mut views) = (Vec::new(), Vec::new(), Vec::new());
    for policy in &worlds.up.compiled.policies {
        let Some(stored) = input.policy(policy.id) else { continue };
        let (row, outcome, view) = rows.row(policy, &stored);
        list.push(row);
        degraded.push(outcome);
        views.push((rank_of(policy), view));
    }
    let states = STATES.map(str::to_owned).to_vec();
    let mut matrix = LeakMatrix {
        states,
        hops: Vec::new(),
        rows: list,
        without_record: HostCounts::default(),
        unrecorded: Vec::new(),
        boot: rows.boot,
        risk: Risk::None,
    };
    matrix.note_risk();
    Grid { matrix, degraded, views }
}

/// Index of a policy in the list of its plan.
fn rank_of(policy: &CompiledPolicy) -> usize {
    policy.rank.index()
}

impl LeakMatrix {
    fn note_risk(&mut self) {
        self.risk = self.rows.iter().map(|row| row.risk).max().unwrap_or_default();
    }
}

struct Rows<'a> {
    input: &'a Input<'a>,
    worlds: &'a Scenarios,
    up: Exits<'a>,
    down: Exits<'a>,
    degraded: Vec<Exits<'a>>,
    orphaned: Exits<'a>,
    boot: Cell,
    queries: ExternalQueries<'a>,
}

impl<'a> Rows<'a> {
    fn new(input: &'a Input<'a>, worlds: &'a Scenarios) -> Rows<'a> {
        let mut orphaned = Kernel::new(&worlds.up.compiled, &worlds.up.facts);
        orphaned.gone = worlds.up.carried_by_the_daemon();
        orphaned.relay_gone = true;
        Rows {
            input,
            worlds,
            up: worlds.up.exits(),
            down: worlds.down.exits(),
            degraded: worlds.without.values().map(Scenario::exits).collect(),
            orphaned: Exits::of(orphaned),
            boot: reach::without_plan(&worlds.up),
            queries: ExternalQueries::new(input, &worlds.up.compiled),
        }
    }

    fn row(&mut self, policy: &CompiledPolicy, stored: &RoutingPolicy) -> (LeakRow, Outcome, View<'a>) {
        let rank = rank_of(policy);
        let bound = is_bound(policy);
        let dns = [false, true].map(|ipv6| DnsPath::of(&self.queries, stored, policy.rank, ipv6));
        let usual = both(&mut self.up, policy);
        let by_choice = is_direct_by_choice(policy, stored);
        let view = View { input: self.input, usual, dns, bound, by_choice };
        let up = view.cell(&mut self.up, rank);
        let down = view.cell(&mut self.down, rank);
        let first =
            policy.hops.first().and_then(|hop| self.worlds.without.keys().position(|key| *key == hop.hop));
        let exits = match first {
            Some(place) => &mut self.degraded[place],
            None => &mut self.up,
        };
        let degraded = view.cell(exits, rank);
        let without = both(exits, &exits.kernel.compiled.policies[rank]);
        let mut boot = self.boot.clone();
        boot.leak &= bound;
        let cells = Cells {
            flapping: if severity(&down) > severity(&up) { down.clone() } else { up.clone() },
            up,
            degraded,
            down,
            daemon_down: view.cell(&mut self.orphaned, rank),
            boot,
            hops: BTreeMap::new(),
        };
        let risk = risk(policy, by_choice, &cells);
        let row = LeakRow {
            policy_id: policy.id,
            name: policy.name.clone(),
            fail_policy: policy.fail_policy,
            hosts: 0,
            cells,
            risk,
        };
        let degraded = exposed(&without, &view.usual);
        (row, degraded, view)
    }
}

/// Returns the severity of a cell: a leak, then no service, then a detour.
fn severity(cell: &Cell) -> u8 {
    match (cell.leak, cell.outcome) {
        (true, _) => 3,
        (false, Outcome::Blocked) => 2,
        (false, Outcome::NextHop) => 1,
        (false, Outcome::Tunnel | Outcome::Direct) => 0,
    }
}

/// Reports whether the policy sends traffic directly when hops fail because its author chose so.
fn is_direct_by_choice(policy: &CompiledPolicy, stored: &RoutingPolicy) -> bool {
    let falls_back = stored.hop_mode == HopMode::Failover
        && stored.hops.iter().any(|hop| hop.r#type == HopType::Interface);
    policy.fail_policy == FailPolicy::Open || falls_back
}

fn risk(policy: &CompiledPolicy, by_choice: bool, cells: &Cells) -> Risk {
    let at_all_times = cells.up.leak || cells.daemon_down.leak || cells.boot.leak;
    let in_failure = cells.degraded.leak || cells.down.leak || cells.flapping.leak;
    // What a proxy does not take, its policy fails open for at all times.
    let only_rest = [&cells.up, &cells.daemon_down, &cells.boot]
        .iter()
        .all(|cell| cell.outcome != Outcome::Direct && cell.ipv6 != Outcome::Direct);
    match (at_all_times, in_failure) {
        (true, _) if only_rest && policy.fail_policy == FailPolicy::Open => Risk::Low,
        (true, _) => Risk::High,
        (false, true) if by_choice => Risk::Low,
        (false, true) => Risk::High,
        (false, false) => Risk::None,
    }
}

/// Common input of the cells of one row.
struct View<'a> {
    input: &'a Input<'a>,
    usual: [Reach; 2],
    dns: [DnsPath; 2],
    bound: bool,
    /// Leaks of failed hops are by choice.
    by_choice: bool,
}

impl View<'_> {
    fn cell(&self, exits: &mut Exits<'_>, rank: usize) -> Cell {
        let compiled = exits.kernel.compiled;
        let reach = both(exits, &compiled.policies[rank]);
        let [outcome, ipv6] = [0, 1].map(|i| reach[i].outcome(&self.usual[i]));
        let mut dns = Outcome::Blocked;
        let mut dns_leaks = false;
        for (ipv6, (way, usual)) in [false, true].into_iter().zip(self.dns.iter().zip(&self.usual)) {
            let (outcome, meant_for_a_tunnel) = way.outcome(exits, usual, rank, ipv6);
            dns = dns.max(outcome);
            dns_leaks |= meant_for_a_tunnel && outcome == Outcome::Direct;
        }
        let rest = [false, true].map(|ipv6| {
            let policy = &compiled.policies[rank];
            let choice = if ipv6 { &policy.v6 } else { &policy.v4 };
            choice.kind() == ChoiceKind::Proxy && Reach::of_unproxied(exits, policy, ipv6).direct
        });
        let shown =
            if outcome == Outcome::Blocked && ipv6 != Outcome::Blocked { &reach[1] } else { &reach[0] };
        Cell {
            outcome,
            via: shown.via(self.input, compiled),
            leak: self.bound
                && (outcome == Outcome::Direct
                    || ipv6 == Outcome::Direct
                    || dns_leaks
                    || rest.contains(&true)),
            dns,
            ipv6,
        }
    }
}
