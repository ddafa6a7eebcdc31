//! Hosts of the rows of the leak matrix, and the rows of hosts without a device record.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_common::classify::{IpPacket, UDP};
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_model::id::Id;

use super::cell::{Cell, Cells, Outcome};
use super::{LeakMatrix, LeakRow, UnrecordedRow};
use crate::compile::{Compiled, Input};
use crate::evaluate::{Decision, PolicyRef, decide_packet};
use crate::gateway_verdict::{HostCounts, PresentHost, Treatment, host_packets, internet};
use crate::indexes::Rank;
use crate::paths::{HostPath, host_path, uplinks};

/// Port of DNS.
const DNS: u16 = 53;

impl LeakMatrix {
    /// Counts the hosts of each row, and those without a device record. `compiled` is the plan of the input.
    pub fn count_hosts(&mut self, input: &Input<'_>, compiled: &Compiled, hosts: &[PresentHost]) {
        let (to, uplinks) = (internet(compiled), uplinks(input, compiled));
        let mut by_policy: BTreeMap<Id, usize> = BTreeMap::new();
        let mut without_record = HostCounts::default();
        let mut unrecorded: BTreeMap<(Treatment, Option<Id>), UnrecordedRow> = BTreeMap::new();
        for host in hosts {
            let Some(path) = host_path(input, compiled, host, to, &uplinks) else { continue };
            if let Some(policy) = &path.policy {
                *by_policy.entry(policy.id).or_default() += 1;
            }
            if path.device_id.is_some() {
                continue;
            }
            without_record.add(path.treatment);
            let policy = path.policy.clone();
            let key = (path.treatment, policy.as_ref().map(|policy| policy.id));
            let row = unrecorded.entry(key).or_insert_with(|| UnrecordedRow {
                treatment: path.treatment,
                cells: self
                    .cells(policy.as_ref(), &path, || queries(input, compiled, host, (to, path.decision))),
                policy,
                hosts: 0,
            });
            row.hosts += 1;
        }
        for row in &mut self.rows {
            row.hosts = by_policy.get(&row.policy_id).copied().unwrap_or_default();
        }
        self.without_record = without_record;
        // The most exposed first.
        self.unrecorded = unrecorded.into_values().rev().collect();
    }

    /// Returns the cells of a host: those of its policy, else what happens to it now, which tunnels do not change.
    fn cells(&self, policy: Option<&PolicyRef>, path: &HostPath, queries: impl FnOnce() -> Outcome) -> Cells {
        let of_policy = |row: &&LeakRow| policy.is_some_and(|policy| policy.id == row.policy_id);
        if let Some(row) = self.rows.iter().find(of_policy) {
            return row.cells.clone();
        }
        let now = Cell {
            outcome: outcome(path.families.ipv4),
            via: path.via.clone(),
            leak: false,
            dns: queries(),
            ipv6: outcome(path.families.ipv6),
        };
        Cells {
            up: now.clone(),
            degraded: now.clone(),
            down: now.clone(),
            flapping: now.clone(),
            daemon_down: now.clone(),
            boot: Cell { leak: false, ..self.boot.clone() },
            hops: self.hops.iter().map(|column| (column.state.clone(), now.clone())).collect(),
        }
    }
}

fn outcome(decision: Option<Decision>) -> Outcome {
    match decision {
        Some(Decision::Direct) => Outcome::Direct,
        Some(Decision::Tunnel) => Outcome::Tunnel,
        Some(Decision::Block) | None => Outcome::Blocked,
    }
}

/// Returns the treatment of a host's DNS queries to a server outside, if no policy decides on the host. The gateway asks by
/// the path of the host if it answers in place of the server.
fn queries(
    input: &Input<'_>,
    compiled: &Compiled,
    host: &PresentHost,
    (to, decision): ([IpAddr; 2], Decision),
) -> Outcome {
    let leaves = host_packets(input, host, to).into_iter().any(|packet| {
        let query = IpPacket { protocol: UDP, destination_port: DNS, opening: false, ..packet };
        let Verdict { rank, action, reason, .. } = decide_packet(compiled, &query, &[]);
        match (Rank::of_wire(rank), action, reason) {
            (None, _, Reason::ForcedDns) => decision == Decision::Direct,
            (None, Action::Mark, Reason::NoPolicy) => true,
            _ => false,
        }
    });
    if leaves { Outcome::Direct } else { Outcome::Blocked }
}
