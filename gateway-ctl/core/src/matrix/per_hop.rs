//! Columns of the leak matrix in which a single hop is down.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::cell::HopColumn;
use super::scenarios::Scenarios;
use super::{Grid, LeakMatrix, Risk, rows_of};
use crate::compile::Input;
use gateway_model::kinds::proxy::Proxy;
use gateway_model::kinds::routing_policy::{Hop, HopType};

/// The leak matrix with a column for each tunnel, proxy and uplink that policies use as a hop.
pub fn leak_matrix_per_hop(input: &Input<'_>) -> LeakMatrix {
    let scenarios = Scenarios::of(input);
    let Grid { mut matrix, views, .. } = rows_of(input, &scenarios);
    let policies = &scenarios.up.compiled.policies;
    let hops: BTreeSet<&Hop> = policies.iter().flat_map(|policy| &policy.hops).map(|hop| &hop.hop).collect();
    for hop in hops.into_iter().filter(|hop| can_fail(input, hop)) {
        // One at a time, because each scenario holds a whole plan.
        let scenario = match scenarios.without.get(hop) {
            Some(scenario) => Cow::Borrowed(scenario),
            None => Cow::Owned(scenarios.up.without(input, hop)),
        };
        let mut exits = scenario.exits();
        let state = state_of(hop);
        for (row, (rank, view)) in matrix.rows.iter_mut().zip(&views) {
            let cell = view.cell(&mut exits, *rank);
            if cell.leak {
                row.risk = row.risk.max(if view.by_choice { Risk::Low } else { Risk::High });
            }
            row.cells.hops.insert(state.clone(), cell);
        }
        matrix.states.push(state.clone());
        matrix.hops.push(HopColumn { state, r#type: hop.r#type, target: hop.target.clone() });
    }
    matrix.note_risk();
    matrix
}

/// Returns the name of a column. Names of tunnels have no spaces, so the names of two columns differ.
fn state_of(hop: &Hop) -> String {
    let target = &hop.target;
    match hop.r#type {
        HopType::Vpn => format!("{target} down"),
        HopType::Proxy => format!("proxy {target} down"),
        HopType::Interface => format!("uplink {target} down"),
        HopType::MeshPeer => format!("mesh peer {target} down"),
    }
}

/// Reports whether the target exists, so that it can fail.
fn can_fail(input: &Input<'_>, hop: &Hop) -> bool {
    match hop.r#type {
        HopType::Vpn => input.state.tunnel_by_name(&hop.target).is_some(),
        HopType::Proxy => input.state.find::<Proxy>(&hop.target).is_some(),
        HopType::Interface => input.network.uplinks.iter().any(|uplink| uplink.is_called(&hop.target)),
        HopType::MeshPeer => {
            input.facts.mesh.as_ref().is_some_and(|mesh| mesh.legs.contains_key(&hop.target))
        }
    }
}
