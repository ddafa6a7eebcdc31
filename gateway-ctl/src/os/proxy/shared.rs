//! State that all connections of the relay share.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_core::indexes::{LegId, ProxyIndex};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::associations::Associations;
use super::fd_budget::DescriptorBudget;
use super::flows::RelayedFlows;
use super::splice::Pool;
use super::target::{Admission, Target};

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub targets: RwLock<BTreeMap<ProxyIndex, Arc<Target>>>,
    pub pool: Pool,
    pub budget: DescriptorBudget,
    pub associations: Associations,
    pub flows: RelayedFlows,
    pub doubts: watch::Sender<ConnectFailures>,
}

/// Connect failures by proxy and leg. The value is a counter, so that each failure is a change.
pub type ConnectFailures = BTreeMap<(String, Option<LegId>), u64>;

impl Shared {
    pub(super) fn target(&self, number: ProxyIndex) -> Option<Arc<Target>> {
        self.targets.read().get(&number).cloned()
    }

    /// Reports a proxy that needs a check.
    pub(super) fn report_failure(&self, admission: &Admission) {
        self.doubts.send_modify(|doubts| {
            *doubts.entry((admission.to.proxy_id.clone(), admission.leg)).or_default() += 1;
        });
    }
}
