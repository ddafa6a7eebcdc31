//! Hosts of the rows of the leak matrix.

use std::collections::BTreeMap;

use gateway_model::id::Id;

use super::LeakMatrix;
use crate::compile::{Compiled, Input};
use crate::gateway_verdict::{HostCounts, PresentHost, internet};
use crate::paths::{host_path, uplinks};

impl LeakMatrix {
    /// Counts the hosts of each row, and those without a device record. `compiled` is the plan of the input.
    pub fn count_hosts(&mut self, input: &Input<'_>, compiled: &Compiled, hosts: &[PresentHost]) {
        let (to, uplinks) = (internet(compiled), uplinks(input, compiled));
        let mut by_policy: BTreeMap<Id, usize> = BTreeMap::new();
        let mut without_record = HostCounts::default();
        for host in hosts {
            let Some(path) = host_path(input, compiled, host, to, &uplinks) else { continue };
            if let Some(policy) = &path.policy {
                *by_policy.entry(policy.id).or_default() += 1;
            }
            if path.device_id.is_none() {
                without_record.add(path.treatment);
            }
        }
        for row in &mut self.rows {
            row.hosts = by_policy.get(&row.policy_id).copied().unwrap_or_default();
        }
        self.without_record = without_record;
    }
}
