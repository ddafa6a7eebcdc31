//! The project's automation: `cargo xtask <command>`.
//!
//! It only calls other programs. It is not part of the gateway and links no gateway code, so that it compiles while the
//! rest does not.

mod bench;
mod book;
mod check;
mod demo;
mod dependencies;
mod dist;
mod ebpf;
mod metadata;
mod paths;
mod prepare;
mod process;
mod progress;
mod remap;
mod setup;
mod test;
mod tidy;
mod ui;
mod units;
mod vendors;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up, build, test and measure the gateway")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install the missing prerequisites of builds and tests: Debian packages, schemathesis
    Setup(SetupOptions),
    /// Build the kernel programs, which are committed in gateway-ebpf/object; installs the BPF toolchain
    Ebpf(ebpf::Options),
    /// Run the test suites (as root)
    Test(test::Options),
    /// Formatting, clippy, tidy, rustdoc, the book and its examples, and the rules of deny.toml, warnings denied
    Check,
    /// Check the links and examples of the documentation, and build it as a book in target/book
    Book(book::Options),
    /// Check the project's own rules: directions between crates, purity, length of files and others
    Tidy,
    /// Build a small network in namespaces and demonstrate the gateway in it (as root)
    Demo(demo::Options),
    /// Check, test and build the dashboard, which the daemon embeds; installs Node.js and its packages
    Ui(ui::Options),
    /// Build what is installed: a Debian package of the daemon, and an archive of the client for arm64
    Dist(dist::Options),
    /// Renew the list of vendors of MAC addresses that the daemon embeds
    Vendors(vendors::Options),
    /// Measure against peers, side by side (as root)
    Bench(bench::Options),
}

#[derive(clap::Args)]
struct SetupOptions {
    /// Install the BPF toolchain as well, for changes of the kernel programs
    #[arg(long)]
    ebpf: bool,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Setup(options) => {
            setup::ensure(setup::Need::Test)?;
            if options.ebpf {
                setup::bpf_toolchain()?;
            }
        }
        Command::Ebpf(options) => ebpf::run(&options)?,
        Command::Test(options) => return test::run(&options),
        Command::Check => return check::run(),
        Command::Book(options) => return book::run(&options),
        Command::Tidy => return tidy::run(),
        Command::Demo(options) => demo::run(&options)?,
        Command::Ui(options) => ui::run(&options)?,
        Command::Dist(options) => dist::run(&options)?,
        Command::Vendors(options) => vendors::run(&options)?,
        Command::Bench(options) => bench::run(&options)?,
    }
    Ok(ExitCode::SUCCESS)
}
