//! `gatewayd`: command line of the daemon. The library contains the implementation.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use gateway_api::{config, daemon, initialise, log, preflight, user_command};
use gateway_ctl::clock::SystemClock;
use gateway_ctl::engine;
use gateway_ctl::os::capture::child as capture_child;
use gateway_ctl::store::{Error as StoreError, Store};
use gateway_model::Role;
use gateway_model::kinds::user::ROLES;
use gateway_model::settings::bootstrap::Bootstrap;

const EXIT_CODES: &str = "\
Exit codes:
  0  success; for the daemon: ended by SIGTERM or SIGINT
  1  the configuration is not valid, a check failed, or the command was refused; nothing was changed
  2  the command line is not valid
  3  the daemon could not start or go on; what it had put into the kernel goes on holding";

/// Network gateway: policies, tunnels and their enforcement in the kernel, with a REST API.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Arguments {
    /// Configuration file.
    #[arg(long, global = true, default_value = config::DEFAULT_PATH)]
    config: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Read the configuration and report its errors as FILE:LINE:COLUMN.
    CheckConfig,
    /// Check whether this host meets the requirements of the gateway. Changes nothing.
    Preflight {
        /// Accept that TCP sessions which come in by an uplink end when the gateway starts.
        #[arg(long)]
        yes: bool,
    },
    /// Create the store, and the marker outside of it that records the initialisation. The gateway forwards nothing
    /// before. A second run changes nothing.
    Init {
        /// Create an empty store although this gateway had one. The old file is kept beside it.
        #[arg(long)]
        discard_state: bool,
        /// Accept that TCP sessions which come in by an uplink end when the gateway starts.
        #[arg(long)]
        yes: bool,
    },
    /// Block traffic from the LAN until the daemon has a plan. For early boot; an active plan stays in force.
    Guard,
    /// Managed users.
    User {
        #[command(subcommand)]
        command: User,
    },
    /// The audit log.
    Audit {
        #[command(subcommand)]
        command: Audit,
    },
    /// Process of a packet capture, which the daemon starts.
    #[command(hide = true)]
    Capture,
}

#[derive(Subcommand)]
enum User {
    /// Add a user; the password comes from standard input or GATEWAY_USER_PASSWORD.
    Add {
        #[arg(long)]
        username: String,
        /// admin, operator or viewer
        #[arg(long, value_parser = people_role)]
        role: Role,
    },
    /// List the users.
    List,
    /// Delete a user.
    Del {
        #[arg(long)]
        id: String,
    },
}

#[derive(Subcommand)]
enum Audit {
    /// Check that no entry was changed or removed. The daemon must not be running.
    Verify,
}

fn main() -> ExitCode {
    let Arguments { config: path, command } = Arguments::parse();
    let Some(command) = command else { return run_daemon(&path) };
    if matches!(command, Command::Capture) {
        return capture_child::run();
    }
    match run_command(&path, command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Errors of the configuration begin with the file name, as editors expect.
            let prefix = if error.is::<config::Error>() { "" } else { "gatewayd: " };
            eprintln!("{prefix}{error:#}");
            ExitCode::from(1)
        }
    }
}

fn run_daemon(path: &std::path::Path) -> ExitCode {
    let config = match config::load(path) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{:#}", anyhow::Error::from(error));
            return ExitCode::from(1);
        }
    };
    log::start(config.log.level);
    let outcome = runtime().and_then(|runtime| {
        let outcome = runtime.block_on(daemon::run(config));
        // Tasks that wait for a slow peer must not delay the exit.
        runtime.shutdown_timeout(Duration::from_secs(2));
        Ok(outcome?)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(3)
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")
}

/// Runs a command. Returns false if a check failed.
fn run_command(path: &std::path::Path, command: Command) -> Result<bool> {
    match command {
        Command::CheckConfig => {
            let config = config::load(path)?;
            for note in config.without_effect() {
                println!("note: {note}");
            }
            println!("{}: valid", path.display());
            Ok(true)
        }
        Command::Preflight { yes } => {
            let config = config::load(path)?;
            let sessions = runtime()?.block_on(preflight::sessions_from_outside(&config));
            let subject =
                preflight::Subject { sessions, may_cut_sessions: yes, ..config::preflight(&config) };
            let checks = preflight::run(&subject);
            print!("{}", preflight::table(&checks));
            Ok(preflight::passed(&checks))
        }
        Command::Init { discard_state, yes } => {
            let config = config::load(path)?;
            let sessions = runtime()?.block_on(preflight::sessions_from_outside(&config));
            if !sessions.is_empty() && !yes {
                bail!(
                    "these TCP sessions come in by an uplink and end when the gateway starts: {}. Nothing was done; {}",
                    preflight::session_names(&sessions),
                    preflight::SESSIONS_FIX
                );
            }
            for line in initialise::run(&config, discard_state)? {
                println!("{line}");
            }
            Ok(true)
        }
        Command::Guard => {
            let config = config::load(path)?;
            log::start(config.log.level);
            runtime()?.block_on(engine::guard(&config))?;
            println!("what comes from the LAN is blocked until the daemon has a plan");
            Ok(true)
        }
        Command::User { command } => {
            let command = match command {
                User::Add { username, role } => user_command::Command::Add { username, role },
                User::List => user_command::Command::List,
                User::Del { id } => user_command::Command::Del { id },
            };
            print!("{}", runtime()?.block_on(user_command::run(&config::load(path)?, command))?);
            Ok(true)
        }
        Command::Audit { command: Audit::Verify } => verify_audit(&config::load(path)?),
        Command::Capture => unreachable!("it has run"),
    }
}

fn people_role(text: &str) -> Result<Role, String> {
    match text.parse() {
        Ok(role) if ROLES.contains(&role) => Ok(role),
        _ => Err("admin, operator or viewer".to_owned()),
    }
}

fn verify_audit(config: &Bootstrap) -> Result<bool> {
    let path = config::store_path(config);
    if !path.exists() {
        bail!("there is no store at {}", path.display());
    }
    let store = match Store::open_existing(&path, SystemClock::shared()) {
        Err(StoreError::Locked { .. }) => bail!(
            "the daemon is running and has {} open; stop it first: systemctl stop gatewayd (traffic stays as it is)",
            path.display()
        ),
        opened => opened?,
    };
    let report = store.verify_audit()?;
    match &report.fault {
        None => println!("{} entries, none changed and none missing", report.entries),
        Some(fault) => println!("{} entries; at entry {}: {}", report.entries, fault.id, fault.what),
    }
    Ok(report.intact)
}
