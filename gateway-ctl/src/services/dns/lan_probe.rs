//! Probes of name resolution by each LAN interface: queries that take the way of a host's queries, through the programs,
//! nftables and the resolver, and back to the interface.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gateway_core::dns_probe::{ProbeTarget, targets};
use gateway_dns::query_log::last_probe;

use super::DnsService;
use super::lan_probes::ProbeResult;
use crate::os::answer_tap::AnswerTap;
use crate::service::{Health, Service};
use crate::supervise::blocking;

/// Pause between probes. Each answer costs an ARP request for an address that no host has.
const INTERVAL: Duration = Duration::from_secs(30);
/// Pause between probes while one fails. The kernel repeats an ARP request for three seconds before it gives up, and sends
/// none for another answer meanwhile.
const RETRY: Duration = Duration::from_secs(5);
/// Time within which the answer has to leave.
const TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Returns the service that probes and reports.
pub(super) fn service(names: &Arc<DnsService>) -> Service {
    let reported = names.clone();
    Service::new("dns_lan_probes", names, run)
        .reports(move || std::future::ready(reported.lan_probes.check().map(Health::from)))
}

async fn run(names: Arc<DnsService>) {
    loop {
        let world = names.worlds.last();
        let port = names.config().listen_addr.port();
        let mut results = BTreeMap::new();
        for target in targets(&world.network, &world.facts) {
            let before = names.lan_probes.of(&target.interface);
            let (probing, interface) = (names.clone(), target.interface.clone());
            let probed = blocking(move || probing.probe(&target, port)).await;
            let result = match probed {
                Ok(()) => ProbeResult::default(),
                Err(error) => before.failed(format!("{error:#}")),
            };
            results.insert(interface, result);
        }
        let is_well = results.values().all(ProbeResult::is_well);
        names.lan_probes.set(results);
        tokio::time::sleep(if is_well { INTERVAL } else { RETRY }).await;
    }
}

impl DnsService {
    /// Sends one query by an interface, and waits until its answer leaves there. Blocks.
    fn probe(&self, target: &ProbeTarget, port: u16) -> anyhow::Result<()> {
        let tap = AnswerTap::open(target.index, target.client).context("cannot observe the interface")?;
        let token = getrandom::u64().context("getrandom failed")?;
        let frame = target.frame(port, token);
        let sent = self.dataplane.with(|programs| programs.inject(target.index, &frame));
        sent.context("cannot send a query")?;
        let deadline = Instant::now() + TIMEOUT;
        let (mut is_read, mut has_left) = (false, false);
        loop {
            is_read = is_read || last_probe() == token;
            has_left = has_left || tap.has_seen().context("cannot observe the interface")?;
            if is_read && has_left {
                return Ok(());
            }
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        match is_read {
            true => anyhow::bail!("the resolver answers, but the answer does not leave by the interface"),
            false => anyhow::bail!("the query does not reach the resolver"),
        }
    }
}
