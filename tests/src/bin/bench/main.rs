//! The benches: each compares the gateway with a peer and alternates between both in one run. So the ratio holds on a
//! machine whose absolute speed drifts.
//!
//! Rows are printed as a table with their targets, and written as JSON with `--json`. A complete run also renews the
//! tables of the documents. A missed target does not make the run fail: the results are for reading.

mod api;
mod apply;
mod bpf;
mod captures;
mod conntrack;
mod dhcp;
mod dns;
mod failover;
mod fast_path;
mod flow_log;
mod flows;
mod forward;
mod frame;
mod generator;
mod new_flows;
mod page_load;
mod policies;
mod row;
mod sink;
mod size;
mod socks;
mod start;
mod tables;
mod tcp;
mod titles;
mod topology;
mod verdict;
mod views;
mod wireguard;

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use gateway_tests::cores::AffinityGuard;
use gateway_tests::netns::require_root;

use crate::row::{Row, print_table, to_json};

const USAGE: &str = "usage: bench [--only NAME]... [--json FILE]\n";

/// Benchmark function. It receives the selected rows and may skip work that only other rows need.
type Bench = fn(&[&str]) -> Result<Vec<Row>>;

/// Benches by the names of their rows. Rows that share a costly set-up are measured together.
const BENCHES: &[(&[&str], Bench)] = &[
    (&["verdict_flow_flat", "verdict_new_flat"], |_| verdict::run()),
    (&["privacy_flow", "privacy_new"], |_| verdict::run_blocks()),
    (&["page_load_without_ipv6"], |_| page_load::run()),
    (&["wan_failover", "wan_failover_link"], |_| failover::run()),
    (&["forward_vs_ct_masq", "forward_vs_nft_linear", "forward_vs_ip_rule"], |_| forward::run()),
    (&["fastpath_1", "fastpath_1k", "fastpath_100k", "fastpath_v6_1k"], fast_path::run),
    (&["fastpath_xdp_1k", "fastpath_xdp_100k"], fast_path::run_xdp),
    (&["flow_log_bytes", "flow_log_page", "flow_log_top", "flow_log_rate"], flow_log::run),
    (&["capture_kept", "capture_filter"], captures::run),
    (&["new_flows_10k"], |_| new_flows::run()),
    (&["flood"], |_| new_flows::run_flood()),
    (&["tcp_bulk", "fastpath_tcp", "fastpath_tcp_down"], tcp::run),
    (&["apply_10k", "apply_one_10k"], apply::run),
    (&["wireguard_vs_wireguard_go", "wireguard_small"], |_| wireguard::run()),
    (wireguard::NEWEST_ROWS, wireguard::run_newest),
    (&["socks_vs_native"], |_| socks::run()),
    (&["api_get_vs_axum", "api_list_10k"], |_| api::run()),
    (&["evaluate_5k", "leak_matrix_5k"], |_| views::run()),
    (&["start_empty", "start_1000_secrets"], |_| start::run()),
    (&["binary_size"], |_| size::run()),
    (&["dns_blocked", "dns_cached", "dns_mix", "dns_once"], dns::serving),
    (&["dns_load", "dns_memory"], dns::lists),
    (&["dhcp_dora", "dhcp_perfdhcp", "dhcp_memory"], |_| dhcp::run()),
    // Profiles without rows.
    (&["breakdown"], |_| forward::break_down()),
];

#[derive(Default)]
struct Options {
    only: Vec<String>,
    json: Option<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [bare, address, file] = arguments.as_slice()
        && bare == api::BARE
    {
        return api::be_bare(address, std::path::Path::new(file));
    }
    let Some(options) = parse(arguments.into_iter())? else {
        print!("{USAGE}");
        return Ok(());
    };
    require_root()?;
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for (names, bench) in BENCHES {
        let wanted =
            |name: &&str| options.only.is_empty() || options.only.iter().any(|only| is_meant(only, name));
        let names: Vec<&str> = names.iter().copied().filter(wanted).collect();
        if names.is_empty() {
            continue;
        }
        println!("== {}", names.join(", "));
        // Some benches pin this thread to a core.
        let _cores = AffinityGuard::new().context("the cores of this thread")?;
        // A failure costs its own rows only.
        match bench(&names) {
            Ok(found) => rows.extend(found.into_iter().filter(|row| names.contains(&row.bench))),
            Err(error) => {
                eprintln!("bench: {}: {error:#}", names.join(", "));
                failed.push(names.join(", "));
            }
        }
    }
    print_table(&rows);
    let json = to_json(&rows);
    if let Some(file) = &options.json {
        std::fs::write(file, &json).with_context(|| format!("write {file}"))?;
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join("; "));
    if options.only.is_empty() {
        tables::write(&json)?;
    }
    Ok(())
}

/// Reports whether a row is selected by its name, or by the name of a group, which is a prefix of the names of its
/// rows.
fn is_meant(only: &str, name: &str) -> bool {
    name.strip_prefix(only).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Parses the arguments. Returns `None` for a request for help.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} wants a value"));
        match argument.as_str() {
            "--only" => {
                let name = value()?;
                let known = || BENCHES.iter().flat_map(|(names, _)| names.iter());
                ensure!(
                    known().any(|known| is_meant(&name, known)),
                    "there is no bench {name}; there are {}",
                    known().copied().collect::<Vec<_>>().join(", ")
                );
                options.only.push(name);
            }
            "--json" => options.json = Some(value()?),
            "--help" | "-h" => return Ok(None),
            other => bail!("unknown argument {other}\n{USAGE}"),
        }
    }
    Ok(Some(options))
}
