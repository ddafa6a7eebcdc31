//! Health of name resolution as hosts of the LAN have it: the addresses are bound, no other program answers beside the
//! resolver, and an upstream answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::health::{Check, CheckState, Finding, PortUse, Protocol};
use gateway_model::settings::bootstrap::DnsBackend;

use super::DnsService;
use super::port_uses::LOST;
use crate::os::port_use;
use crate::service::{Health, Service};
use crate::supervise::blocking;

/// Time without an answer after which an upstream is probed. Queries of hosts make probes unnecessary.
const SILENCE: Duration = Duration::from_secs(30);
/// Interval at which silent upstreams are looked for.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

impl DnsService {
    /// Returns the service that probes silent upstreams and reports the health of name resolution.
    pub(super) fn report(self: &Arc<Self>) -> Service {
        let names = self.clone();
        Service::new("dns_probes", self, |names: Arc<DnsService>| async move {
            loop {
                names.upstreams.probe_silent(SILENCE).await;
                names.end_alerts();
                tokio::time::sleep(PROBE_INTERVAL).await;
            }
        })
        .reports(move || {
            let names = names.clone();
            blocking(move || [names.check_listeners(), names.check_upstreams()].map(Health::from))
        })
    }

    fn check_listeners(&self) -> Check {
        let status = self.resolver.status();
        let mut findings = Vec::new();
        for listening in &status.listening {
            let address = listening.listen.address;
            // Hosts use UDP, and TCP only for long answers.
            for (protocol, bound, state) in [
                (Protocol::Udp, &listening.udp, CheckState::Failed),
                (Protocol::Tcp, &listening.tcp, CheckState::Degraded),
            ] {
                match bound {
                    Err(error) => findings.push(self.not_bound(protocol, address, error, state)),
                    Ok(_) => findings.extend(self.shared(protocol, address)),
                }
            }
        }
        for (address, bound) in &status.secure {
            if let Err(error) = bound {
                findings.push(self.not_bound(Protocol::Tcp, *address, error, CheckState::Degraded));
            }
        }
        let bound = status.listening.iter().map(|listening| listening.listen.address.to_string());
        Check::of("dns", findings, format!("answers on {}", bound.collect::<Vec<_>>().join(", ")))
    }

    fn not_bound(&self, protocol: Protocol, address: SocketAddr, error: &str, state: CheckState) -> Finding {
        let others = self.port_uses.at(protocol, address.port());
        match others.iter().find(|other| port_use::is_conflict(address, other.address)) {
            Some(taken) => Finding::port_taken(LOST, taken, state),
            None => Finding::not_bound(&format!("{protocol} {address}"), error, state),
        }
    }

    /// Finds programs that listen on a single address while the resolver has all. The kernel prefers them there.
    fn shared(&self, protocol: Protocol, address: SocketAddr) -> Vec<Finding> {
        let takes_hosts = |other: &&PortUse| {
            let ip = other.address.ip();
            let is_own_family = ip.is_ipv4() == address.is_ipv4();
            address.ip().is_unspecified() && is_own_family && !ip.is_unspecified() && !ip.is_loopback()
        };
        let others = self.port_uses.at(protocol, address.port());
        others.iter().filter(takes_hosts).map(Finding::port_shared).collect()
    }

    fn check_upstreams(&self) -> Check {
        let name = "dns_upstreams";
        // The external filter has a status of its own.
        if self.config().backend != DnsBackend::Integrated {
            return Check::of(name, Vec::new(), "the external filter resolves");
        }
        let upstreams = self.upstreams.for_all_names();
        let mut findings: Vec<Finding> =
            self.problems().iter().map(|problem| Finding::upstream_problem(problem)).collect();
        if upstreams.is_empty() {
            findings.insert(0, Finding::no_upstream());
            return Check::of(name, findings, "");
        }
        let error = |stats: &gateway_dns::upstream::HealthStats| stats.last_error.clone().unwrap_or_default();
        let mut names: Vec<String> = upstreams.iter().map(|(shown, _)| shown.to_string()).collect();
        names.dedup();
        let last_answer = upstreams.iter().filter_map(|(_, stats)| stats.last_answer).max();
        if upstreams.iter().all(|(_, stats)| stats.dead) {
            let (_, last) = &upstreams[0];
            findings.insert(0, Finding::all_upstreams_down(&names, &error(last)));
        } else {
            let dead = upstreams.iter().filter(|(_, stats)| stats.dead);
            findings.extend(dead.map(|(shown, stats)| Finding::upstream_down(shown, &error(stats))));
            if last_answer.is_none() {
                findings.push(Finding::not_checked("no upstream has answered yet"));
            }
        }
        let age = last_answer.map(|at| format!(", the last {} s ago", at.elapsed().as_secs()));
        Check::of(name, findings, format!("{} answer{}", names.join(", "), age.unwrap_or_default()))
    }
}
