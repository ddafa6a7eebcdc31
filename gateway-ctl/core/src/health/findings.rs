//! Findings with their sentences and remedies.

use std::fmt;
use std::net::SocketAddr;

use super::{CheckState, Code, Finding, Params};

/// Protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    Udp,
    Tcp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Udp => "UDP",
            Protocol::Tcp => "TCP",
        })
    }
}

/// Program that has a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortHolder {
    pub program: String,
    pub pid: u32,
}

/// Socket of a program at a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortUse {
    pub protocol: Protocol,
    pub address: SocketAddr,
    /// `None` if the process is not visible.
    pub holder: Option<PortHolder>,
}

impl PortUse {
    fn program(&self) -> String {
        match &self.holder {
            Some(PortHolder { program, pid }) => format!("{program} (process {pid})"),
            None => "a program that is not visible here".to_owned(),
        }
    }

    fn params(&self) -> Params {
        let mut params = Params::from([
            ("protocol", self.protocol.to_string().to_lowercase()),
            ("address", self.address.to_string()),
        ]);
        if let Some(PortHolder { program, pid }) = &self.holder {
            params.extend([("program", program.clone()), ("pid", pid.to_string())]);
        }
        params
    }

    fn stop(&self) -> String {
        match &self.holder {
            Some(PortHolder { program, .. }) => format!("stop {program} (systemctl disable --now {program})"),
            None => format!("stop it; `ss -lpn 'sport = :{}'` as root shows it", self.address.port()),
        }
    }
}

/// Fill of a table with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Low,
    Filling,
    Full,
}

/// Returns the level of a table: from 80 percent on it fills, from 98 percent on it counts as full, because entries of
/// short life make the number vary.
pub fn level(entries: u64, limit: u64) -> Level {
    match entries.saturating_mul(100) / limit.max(1) {
        98.. => Level::Full,
        80.. => Level::Filling,
        _ => Level::Low,
    }
}

impl Finding {
    fn new(
        state: CheckState,
        code: Code,
        params: impl IntoIterator<Item = (&'static str, String)>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        let params = params.into_iter().collect();
        Finding { state, code, params, message: message.into(), remedy: remedy.into() }
    }

    /// The check has not run, or its input cannot be read.
    pub fn not_checked(reason: impl Into<String>) -> Finding {
        let reason = reason.into();
        let params = [("reason", reason.clone())];
        Finding::new(CheckState::Unknown, Code::NotChecked, params, reason, "")
    }

    /// A port of a service is taken. `lost` is what clients do not get.
    pub fn port_taken(lost: &str, taken: &PortUse, state: CheckState) -> Finding {
        let message = format!("{} has {} port {}, so {lost}", taken.program(), taken.protocol, taken.address);
        Finding::new(state, Code::PortTaken, taken.params(), message, taken.stop())
    }

    /// A program listens on an own address beside the service, and the kernel prefers it there.
    pub fn port_shared(taken: &PortUse) -> Finding {
        let message = format!(
            "{} also listens on {} {}, and answers a part of the queries",
            taken.program(),
            taken.protocol,
            taken.address
        );
        Finding::new(CheckState::Degraded, Code::PortShared, taken.params(), message, taken.stop())
    }

    pub fn not_bound(address: &str, error: &str, state: CheckState) -> Finding {
        let params = [("address", address.to_owned()), ("error", error.to_owned())];
        let message = format!("{address} cannot be bound: {error}");
        Finding::new(state, Code::NotBound, params, message, "set an address that this host has")
    }

    pub fn not_running(service: &str, error: &str) -> Finding {
        let params = [("service", service.to_owned()), ("error", error.to_owned())];
        let message = format!("{service} does not run: {error}");
        let remedy = "look into the log of the daemon, and restart it";
        Finding::new(CheckState::Failed, Code::NotRunning, params, message, remedy)
    }

    /// A query that entered by a LAN interface, as one of a host, has no answer.
    pub fn no_answer(interface: &str, detail: &str, state: CheckState) -> Finding {
        let params = [("interface", interface.to_owned()), ("detail", detail.to_owned())];
        let message = format!("a DNS query by {interface} gets no answer: {detail}");
        let remedy = "look for firewall rules of others that drop port 53 (`nft list ruleset`)";
        Finding::new(state, Code::NoAnswer, params, message, remedy)
    }

    pub fn no_upstream() -> Finding {
        Finding::new(
            CheckState::Degraded,
            Code::NoUpstream,
            [],
            "no upstream is set, so hosts of the LAN get no answer for public names",
            "set dns.upstream_servers (PUT /settings/dns.upstream_servers), for instance to [\"9.9.9.9\", \"149.112.112.112\"]",
        )
    }

    pub fn upstream_down(upstream: &str, error: &str) -> Finding {
        let params = [("upstream", upstream.to_owned()), ("error", error.to_owned())];
        let message = format!("upstream {upstream} does not answer: {error}");
        let remedy = "see /dns/status, and replace it if it is gone";
        Finding::new(CheckState::Degraded, Code::UpstreamDown, params, message, remedy)
    }

    pub fn all_upstreams_down(upstreams: &[String], error: &str) -> Finding {
        let list = upstreams.join(", ");
        let params = [("upstreams", list.clone()), ("error", error.to_owned())];
        let message = format!("no upstream answers ({list}): {error}");
        let remedy = "check the uplink or tunnel that carries the queries, or set other upstreams";
        Finding::new(CheckState::Failed, Code::AllUpstreamsDown, params, message, remedy)
    }

    /// An upstream cannot be used as configured.
    pub fn upstream_problem(problem: &str) -> Finding {
        let params = [("problem", problem.to_owned())];
        let remedy = "correct dns.upstream_servers";
        Finding::new(CheckState::Degraded, Code::UpstreamProblem, params, problem, remedy)
    }

    /// A network gets no addresses by DHCP, or hosts cannot use them.
    pub fn network_not_served(reason: &str, state: CheckState) -> Finding {
        let params = [("reason", reason.to_owned())];
        let remedy = "correct /dhcp, the segment, or the address of the interface";
        Finding::new(state, Code::NetworkNotServed, params, reason, remedy)
    }

    pub fn pool_exhausted(pool: &str, message: impl Into<String>) -> Finding {
        let remedy = "enlarge the range, or shorten lease_sec";
        let params = [("pool", pool.to_owned())];
        Finding::new(CheckState::Degraded, Code::PoolExhausted, params, message, remedy)
    }

    pub fn other_dhcp_server(server: impl Into<String>) -> Finding {
        let server = server.into();
        let params = [("server", server.clone())];
        let remedy = "switch one of the servers off";
        Finding::new(CheckState::Degraded, Code::OtherDhcpServer, params, server, remedy)
    }

    pub fn leases_not_stored(error: &str) -> Finding {
        let params = [("error", error.to_owned())];
        let remedy = "make room on the disk of the state directory, or make it writable";
        Finding::new(CheckState::Failed, Code::LeasesNotStored, params, error, remedy)
    }

    pub fn clock_not_synchronised() -> Finding {
        Finding::new(
            CheckState::Degraded,
            Code::ClockNotSynchronised,
            [],
            "the clock of the gateway is not synchronised, so hosts do not accept its answers to their NTP queries",
            "let systemd-timesyncd or chrony reach a time server",
        )
    }

    /// A table of the kernel is nearly full or full. `lost` is what happens then.
    pub fn table(table: &str, entries: u64, limit: u64, lost: &str, remedy: &str) -> Option<Finding> {
        let (state, code, fill) = match level(entries, limit) {
            Level::Low => return None,
            Level::Filling => (CheckState::Degraded, Code::TableFilling, "nearly full"),
            Level::Full => (CheckState::Failed, Code::TableFull, "full"),
        };
        let params =
            [("table", table.to_owned()), ("entries", entries.to_string()), ("limit", limit.to_string())];
        let message = format!("the {table} table is {fill} ({entries} of {limit}): {lost}");
        Some(Finding::new(state, code, params, message, remedy))
    }

    /// Hosts begin more flows than the flow table takes.
    pub fn flows_unrecorded(packets: u64) -> Finding {
        let params = [("packets", packets.to_string())];
        let message = format!(
            "{packets} packets since the last check belong to flows that are not recorded, because their hosts begin too many"
        );
        let remedy = "find the host in /metrics (gateway_unrecorded_flow_packets) and stop it";
        Finding::new(CheckState::Degraded, Code::FlowsUnrecorded, params, message, remedy)
    }

    pub fn storage(shortage: &str, is_full: bool) -> Finding {
        let (state, code) = match is_full {
            true => (CheckState::Failed, Code::StorageFull),
            false => (CheckState::Degraded, Code::StorageLow),
        };
        Finding::new(state, code, [], shortage, "free space on the disk of state_dir")
    }

    /// Records wait for the encrypted storage.
    pub fn storage_locked(waiting: &str) -> Finding {
        let params = [("waiting", waiting.to_owned())];
        let message = format!("waiting for encrypted storage: {waiting}");
        let remedy = "open it with its passphrase (gateway-ctl storage unlock)";
        Finding::new(CheckState::Degraded, Code::StorageLocked, params, message, remedy)
    }

    pub fn memory_low(free_percent: u64) -> Finding {
        let params = [("free_percent", free_percent.to_string())];
        let message = format!("{free_percent} % of the memory is available");
        let remedy = "stop other programs, or use smaller lists";
        Finding::new(CheckState::Degraded, Code::MemoryLow, params, message, remedy)
    }

    pub fn file_descriptors(message: impl Into<String>, is_full: bool) -> Finding {
        let (state, code) = match is_full {
            true => (CheckState::Failed, Code::FileDescriptorsFull),
            false => (CheckState::Degraded, Code::FileDescriptorsLow),
        };
        Finding::new(state, code, [], message, "raise LimitNOFILE of the unit gatewayd.service")
    }

    pub fn prefix_not_delegated(uplink: &str, error: &str) -> Finding {
        let params = [("uplink", uplink.to_owned()), ("error", error.to_owned())];
        let remedy = "ask the provider whether it delegates prefixes, or switch the delegation off";
        let message = format!("{uplink}: {error}");
        Finding::new(CheckState::Degraded, Code::PrefixNotDelegated, params, message, remedy)
    }

    pub fn backup_failed(error: &str) -> Finding {
        let params = [("error", error.to_owned())];
        let message = format!("the last backup failed: {error}");
        Finding::new(CheckState::Failed, Code::BackupFailed, params, message, "see /backup/status")
    }

    pub fn backup_target_unreachable(error: &str) -> Finding {
        let params = [("error", error.to_owned())];
        let remedy = "correct the target in /backup/config";
        Finding::new(CheckState::Degraded, Code::BackupTargetUnreachable, params, error, remedy)
    }

    /// The last attempt at a receiver of alerts failed.
    pub fn alerts_not_delivered(receiver: &str, error: &str) -> Finding {
        let params = [("receiver", receiver.to_owned()), ("error", error.to_owned())];
        let message = format!("alerts do not reach the receiver {receiver}: {error}");
        let remedy = "correct the receiver in /alerts/webhook, /alerts/email, /alerts/mqtt or the rule";
        Finding::new(CheckState::Degraded, Code::AlertsNotDelivered, params, message, remedy)
    }

    /// The kernel differs from the plan.
    pub fn drift(reason: &str) -> Finding {
        let params = [("reason", reason.to_owned())];
        let remedy =
            "see /observer and /drift; stop the program that changes nftables, rules or BPF programs";
        Finding::new(CheckState::Failed, Code::Drift, params, reason, remedy)
    }

    pub fn lan_without_ethernet(message: &str) -> Finding {
        let remedy = "use an Ethernet interface as LAN";
        Finding::new(CheckState::Failed, Code::LanWithoutEthernet, [], message, remedy)
    }

    pub fn task_failed(failure: &str) -> Finding {
        let params = [("failure", failure.to_owned())];
        let remedy = "look into the log of the daemon; it starts the task again by itself";
        Finding::new(CheckState::Failed, Code::TaskFailed, params, failure, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_of_a_table_follows_its_share() {
        let levels = [(0, 100), (79, 100), (80, 100), (97, 100), (98, 100), (5, 4), (1, 0)];
        let levels = levels.map(|(entries, limit)| level(entries, limit));
        use Level::{Filling, Full, Low};
        assert_eq!(levels, [Low, Low, Filling, Filling, Full, Full, Full]);
        assert_eq!(level(u64::MAX, 1), Full);
    }

    #[test]
    fn a_taken_port_names_the_program() {
        let holder = PortHolder { program: "dnsmasq".into(), pid: 7 };
        let taken =
            PortUse { protocol: Protocol::Udp, address: "0.0.0.0:53".parse().unwrap(), holder: Some(holder) };
        let finding = Finding::port_taken("hosts get no names", &taken, CheckState::Failed);
        assert_eq!(finding.message, "dnsmasq (process 7) has UDP port 0.0.0.0:53, so hosts get no names");
        assert_eq!((finding.params["program"].as_str(), finding.params["pid"].as_str()), ("dnsmasq", "7"));
        assert!(finding.remedy.contains("dnsmasq"));
    }
}
