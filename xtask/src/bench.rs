//! `cargo xtask bench`: builds the daemon with the installed profile (`ship`) and runs the benches. A complete
//! run renews the tables of the README and of the benchmarks page.

use anyhow::Result;

use crate::{demo, process, setup};

/// Variable with the path of the newest wireguard-go, which the bench reads.
const WIREGUARD_GO: &str = "GATEWAY_BENCH_WIREGUARD_GO";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only this measurement; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Write the rows {bench, title, ours, peer, peer_name, unit, ratio, target} to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
    /// Further arguments of the measurements
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    process::require_root("the benches make network namespaces of their own and load kernel programs")?;
    let mut arguments = Vec::new();
    for name in &options.only {
        arguments.extend(["--only".to_owned(), name.clone()]);
    }
    if let Some(file) = &options.json {
        arguments.extend(["--json".to_owned(), file.clone()]);
    }
    arguments.extend(options.rest.iter().cloned());
    let mut variables = Vec::new();
    if std::env::var_os(WIREGUARD_GO).is_none() {
        match setup::newest_wireguard_go() {
            Ok(program) => variables.push((WIREGUARD_GO, program)),
            Err(error) => eprintln!("bench: rows beside the newest wireguard-go are not measured: {error:#}"),
        }
    }
    demo::hand_over("bench", demo::Build::Ship, &arguments, &variables)
}
