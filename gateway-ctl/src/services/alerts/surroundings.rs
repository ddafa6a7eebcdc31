//! Surroundings of the alert engine: the rules in force, and the dependencies of the plan at work.

use std::collections::BTreeSet;
use std::sync::Arc;

use gateway_core::alerts::{AlertEngine, Dependencies, Rules};
use gateway_model::State;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::uplink::UplinkState;

use crate::services::active_alerts::AlertReport;
use crate::store::Store;
use crate::world::{World, Worlds};

/// State, rules and dependencies at one instant.
pub(super) struct View {
    pub state: Arc<State>,
    pub rules: Rules,
    pub dependencies: Dependencies,
}

impl View {
    /// Reads the state. The dependencies are only of interest while there are alerts.
    pub(super) fn new(
        store: &Store,
        worlds: Option<&Arc<Worlds>>,
        engine: &AlertEngine,
        reports: &[AlertReport],
    ) -> View {
        let state = store.current();
        let rules = Rules::of(&state);
        let is_quiet = reports.is_empty() && engine.open().next().is_none();
        let world = worlds.filter(|_| !is_quiet).map(|worlds| worlds.last());
        let dependencies = match world {
            Some(world) => dependencies(&world, engine, reports),
            None => Dependencies::default(),
        };
        View { state, rules, dependencies }
    }
}

fn dependencies(world: &World, engine: &AlertEngine, reports: &[AlertReport]) -> Dependencies {
    let uplinks = world.reports.uplinks.uplinks.iter();
    let doubtful = uplinks.filter(|(_, report)| report.state == UplinkState::Disconnecting);
    let doubtful: BTreeSet<String> = doubtful.map(|(interface, _)| interface.clone()).collect();
    let plan = world.live();
    let mut dependencies = Dependencies::of(&world.input(), plan, &doubtful);
    let open = engine.open().map(|record| (record.alert.kind, record.alert.subject.as_str()));
    let reported = reports.iter().filter_map(|report| match report {
        AlertReport::Holds(condition) => Some((condition.kind, condition.subject.as_str())),
        AlertReport::Ended(_) => None,
    });
    for (kind, subject) in open.chain(reported) {
        // The subject is the address of the upstream and its egress.
        if let (AlertKind::DnsUpstreamDown, Some((_, egress))) = (kind, subject.rsplit_once(" by ")) {
            dependencies.add_upstream(&world.state, &plan.legs, subject, egress);
        }
    }
    dependencies
}
