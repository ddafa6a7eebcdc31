//! Codes of findings. The page "Health" of the documentation has one section for each, which a test compares.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident = $text:literal,)+) => {
        /// Code of a finding. Clients translate by it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$meta])* $variant,)+
        }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $text,)+
                }
            }
        }
    };
}

codes! {
    Ok = "ok",
    /// The check has not run yet, or its input cannot be read.
    NotChecked = "not_checked",
    /// Another program has a port that the gateway needs.
    PortTaken = "port_taken",
    /// Another program listens beside the gateway and takes a part of its clients.
    PortShared = "port_shared",
    /// An address cannot be bound for another reason.
    NotBound = "not_bound",
    /// A service does not run.
    NotRunning = "not_running",
    /// A query that came in by a LAN interface got no answer.
    NoAnswer = "no_answer",
    NoUpstream = "no_upstream",
    UpstreamDown = "upstream_down",
    AllUpstreamsDown = "all_upstreams_down",
    UpstreamProblem = "upstream_problem",
    NetworkNotServed = "network_not_served",
    PoolExhausted = "pool_exhausted",
    OtherDhcpServer = "other_dhcp_server",
    LeasesNotStored = "leases_not_stored",
    ClockNotSynchronised = "clock_not_synchronised",
    TableFilling = "table_filling",
    TableFull = "table_full",
    FlowsUnrecorded = "flows_unrecorded",
    StorageLow = "storage_low",
    StorageFull = "storage_full",
    StorageLocked = "storage_locked",
    MemoryLow = "memory_low",
    FileDescriptorsLow = "file_descriptors_low",
    FileDescriptorsFull = "file_descriptors_full",
    PrefixNotDelegated = "prefix_not_delegated",
    BackupFailed = "backup_failed",
    BackupTargetUnreachable = "backup_target_unreachable",
    AlertsNotDelivered = "alerts_not_delivered",
    Drift = "drift",
    LanWithoutEthernet = "lan_without_ethernet",
    TaskFailed = "task_failed",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_documentation_has_each_code_and_no_other() {
        let page = include_str!("../../../../docs/src/health.md");
        let table = page.split_once("## Codes").expect("a section").1;
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let documented: Vec<&str> = rows.map(|(code, _)| code).collect();
        let codes: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(documented.iter().copied().collect::<BTreeSet<_>>(), codes);
        assert_eq!(documented.len(), codes.len(), "each once");
    }
}
