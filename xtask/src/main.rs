//! The project's automation: `cargo xtask <command>`.
//!
//! Everything here is plain process calls; nothing of it is part of the gateway, and nothing of the
//! gateway is linked into it, so that it compiles while the rest does not.

mod ebpf;
mod paths;
mod process;
mod setup;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up, build, test and measure the gateway", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what is missing (packages, BPF linker, BPF compiler) and build the kernel programs
    Setup,
    /// Build the kernel programs into target/bpf
    Ebpf,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Setup => ebpf::build(&setup::ensure(setup::Need::Everything)?),
        Command::Ebpf => ebpf::build(&setup::ensure(setup::Need::Build)?),
    }
}
