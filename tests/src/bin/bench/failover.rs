//! `wan_failover`, `wan_failover_link`: time from the failure of the active uplink until a new flow of a LAN host is
//! answered by the other uplink, with a probe each second. The first row cuts the line behind a good link, the second takes
//! the carrier away. The peer is the interval of the probes.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use gateway_tests::services::IDENT;
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::UdpFlow;
use gateway_tests::two_uplinks::{Line, TwoUplinks};
use gateway_tests::wait::{wait_ok, wait_until};

use crate::row::{Row, Target, median};

const ROUNDS: usize = 7;
/// Interval of the probes in seconds.
const INTERVAL: f64 = 1.0;
const DEADLINE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_millis(50);

pub(crate) fn run() -> Result<Vec<Row>> {
    let uplinks = TwoUplinks::start(false, [1, 1])?;
    let mut active = Line::Fibre;
    let mut measured = [Vec::new(), Vec::new()];
    for round in 0..2 * ROUNDS {
        let is_pulled = round % 2 == 1;
        let fail = |fails: bool| {
            if is_pulled { uplinks.pull(active, fails) } else { uplinks.silence(active, fails) }
        };
        let failed = active;
        let started = Instant::now();
        fail(true)?;
        wait_until(DEADLINE, "an answer by the other uplink", || {
            let seen = seen(&uplinks)?;
            let is_by_first = seen == wan(false);
            (is_by_first == (failed == Line::Cable)).then_some(())
        })?;
        measured[usize::from(is_pulled)].push(started.elapsed().as_secs_f64());
        fail(false)?;
        active = active.other();
        wait_ok(DEADLINE, "the line to work again", || {
            let state = uplinks.state(failed)?;
            ensure!(state == "online", "{}: {state}", failed.name());
            Ok(())
        })?;
    }
    let [silent, pulled] = measured;
    println!("seconds until the other uplink answers (rounds)");
    println!("  {:.2}  line cut behind a good link {silent:.2?}", median(&silent));
    println!("  {:.2}  carrier lost {pulled:.2?}", median(&pulled));
    let row = |bench, values: &[f64], most| Row {
        bench,
        ours: median(values),
        peer: INTERVAL,
        peer_name: "the interval of the probes".to_owned(),
        unit: "s",
        target: Target::RatioAtMost(most),
    };
    Ok(vec![row("wan_failover", &silent, 4.0), row("wan_failover_link", &pulled, 2.0)])
}

/// Returns the source address that a server sees of a new flow.
fn seen(uplinks: &TwoUplinks) -> Option<std::net::IpAddr> {
    let to = SocketAddr::new(server(false), IDENT);
    UdpFlow::open(&uplinks.testbed.network.tv, to).ok()?.ask(TIMEOUT).ok()
}
