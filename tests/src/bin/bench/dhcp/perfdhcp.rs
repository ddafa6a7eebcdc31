//! perfdhcp, Kea's load generator: the most exchanges that a server completes in a second.
//!
//! perfdhcp keeps the default receive buffer of the kernel, which holds 256 answers. A server that synchronises its leases
//! in groups answers a whole group at once, so the buffer would overflow and the loss be that of the load, not of the
//! server. The default is therefore larger while perfdhcp opens its socket, for both servers.

mod receive_buffer;

use std::process::Stdio;

use anyhow::{Context, Result};
use gateway_tests::netns::Namespace;

/// Exchanges that perfdhcp begins in a second.
const RATES: [u32; 6] = [5_000, 10_000, 15_000, 20_000, 25_000, 30_000];
/// Duration of a rate in seconds. All rates together make fewer leases than the gateway holds.
const PERIOD: u32 = 2;
/// Port of relays (RFC 2131, section 4.1).
const RELAY_PORT: u16 = 67;
/// Share of exchanges that may stay incomplete.
const MAX_LOSS: f64 = 0.1;

/// Statistics of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exchanges {
    begun: u64,
    /// Complete with an acknowledgement.
    completed: u64,
}

/// Raises the rate until more than one exchange in ten stays incomplete. Returns the most exchanges per second that were
/// completed.
pub(super) fn sustained(namespace: &Namespace, relay: &str, server: &str) -> Result<f64> {
    let mut sustained = 0.0;
    for (run, rate) in RATES.into_iter().enumerate() {
        let exchanges = exchange(namespace, relay, server, rate, run)?;
        println!("    perfdhcp at {rate}/s: {exchanges:?}");
        sustained = f64::max(sustained, exchanges.completed as f64 / f64::from(PERIOD));
        let missing = exchanges.begun.saturating_sub(exchanges.completed);
        if missing as f64 > exchanges.begun as f64 * MAX_LOSS {
            break;
        }
    }
    Ok(sustained)
}

/// Runs perfdhcp as a relay with new clients.
fn exchange(namespace: &Namespace, relay: &str, server: &str, rate: u32, run: usize) -> Result<Exchanges> {
    let mut command = namespace.command("perfdhcp");
    let clients = (rate * PERIOD * 2).to_string();
    command.args(["-4", "-l", relay, "-r", &rate.to_string(), "-R", &clients, "-p", &PERIOD.to_string()]);
    // It waits half a second for the last answers.
    command.args(["-g", "single", "-W", "500000"]);
    command.args(["-b", &format!("mac=02:08:{run:02x}:00:00:00"), server]);
    // Its exit status is 3 if exchanges are incomplete.
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = receive_buffer::spawn_with_a_large_one(&mut command, RELAY_PORT).context("perfdhcp")?;
    let output = running.wait_with_output().context("perfdhcp")?;
    let text = String::from_utf8_lossy(&output.stdout);
    statistics(&text).with_context(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn statistics(text: &str) -> Option<Exchanges> {
    let (discovers, requests) = text.split_once("REQUEST-ACK")?;
    let number = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
        line.rsplit(':').next()?.trim().parse().ok()
    };
    Some(Exchanges {
        begun: number(discovers, "sent packets")?,
        completed: number(requests, "received packets")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read() {
        let text = "***Rate statistics***\nRate: 99.9 4-way exchanges/second, expected rate: 100\n\n\
                    ***Statistics for: DISCOVER-OFFER***\nsent packets: 500\nreceived packets: 499\ndrops: 1\n\n\
                    ***Statistics for: REQUEST-ACK***\nsent packets: 499\nreceived packets: 498\ndrops: 1\n";
        assert_eq!(statistics(text), Some(Exchanges { begun: 500, completed: 498 }));
        assert_eq!(statistics("Running\n"), None);
    }
}
