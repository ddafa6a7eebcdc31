//! The demonstration: a network of namespaces, the daemon in it, and the scenario from the first policy to splitting.
//! It checks each claim with real packets. Every command that it shows is the command that it runs.
//!
//! `--check` asserts, removes everything and reports the result by the exit code. Without it the network stays up until
//! Ctrl-C, and the API is reachable from the host.

mod console;
mod scenario;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use gateway_tests::netns::require_root;
use gateway_tests::wait::wait_for;
use nix::sys::signal::{SigSet, Signal};

use crate::scenario::Walk;

const USAGE: &str = "usage: demo [--check]\n  --check  walk through once, fail if anything is not as told, leave nothing behind\n";

fn main() -> ExitCode {
    let mut check = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--check" => check = true,
            "--help" | "-h" => {
                print!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            other => {
                eprint!("demo: unknown argument {other}\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match demonstrate(check) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether every claim held.
fn demonstrate(check: bool) -> Result<bool> {
    require_root()?;
    println!(
        " needs: Linux with BTF, root      touches: nothing outside its own namespaces     \
         removes itself on Ctrl-C"
    );
    let interrupted = listen_for_the_end()?;
    let mut walk = Walk::begin(interrupted.clone())?;
    let outcome = walk.all_steps();
    if interrupted.load(Ordering::Relaxed) {
        walk.remove()?;
        return Ok(false);
    }
    let held = match outcome {
        Ok(held) => held,
        Err(error) => {
            eprintln!("{}", walk.last_words());
            walk.remove()?;
            return Err(error);
        }
    };
    if !check {
        walk.invite();
        // Runs until a signal or the timeout.
        while wait_for(std::time::Duration::from_secs(3600), "a signal", || {
            interrupted.load(Ordering::Relaxed)
        })
        .is_err()
        {}
        println!();
    }
    walk.remove()?;
    Ok(held)
}

/// Converts Ctrl-C and similar signals into a flag, so that everything is removed before the exit.
fn listen_for_the_end() -> Result<Arc<AtomicBool>> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    // Must run before any other thread exists: all threads inherit the mask. Started programs do not.
    signals.thread_block().context("block signals")?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    Ok(interrupted)
}
