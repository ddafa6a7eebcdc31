//! `cargo xtask check`: the checks that a change must pass before the tests run.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{book, dependencies, ebpf, prepare::prepare, process, setup, tidy, units};

/// A check beside those of cargo.
type Check = fn() -> Result<()>;

/// Runs every step, also after a failed one: one run shows everything.
pub(crate) fn run() -> Result<ExitCode> {
    prepare(setup::Need::Build)?;
    let mut failed = Vec::new();
    for (name, mut command) in steps() {
        println!("== {name}");
        if let Err(error) = process::run(&mut command) {
            eprintln!("{error:#}");
            failed.push(name);
        }
    }
    println!("== dependencies");
    if let Err(error) = dependencies::check() {
        eprintln!("{error:#}");
        failed.push("dependencies");
    }
    let checks: [(&str, Check); 2] = [("unit", units::check), ("kernel programs", ebpf::check_changed)];
    for (name, check) in checks {
        println!("== {name}");
        if let Err(error) = check() {
            eprintln!("{error:#}");
            failed.push(name);
        }
    }
    println!("== book");
    match book::run(&book::Options::default()) {
        Ok(code) if code == ExitCode::SUCCESS => {}
        Ok(_) => failed.push("book"),
        Err(error) => {
            eprintln!("{error:#}");
            failed.push("book");
        }
    }
    println!("== tidy");
    if !tidy::check()?.iter().all(tidy::Outcome::passed) {
        failed.push("tidy");
    }
    if failed.is_empty() {
        println!("check: all passed");
        return Ok(ExitCode::SUCCESS);
    }
    println!("check: failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

fn steps() -> Vec<(&'static str, Command)> {
    let mut fmt = process::cargo();
    fmt.args(["fmt", "--all", "--check"]);
    let mut fmt_ebpf = process::cargo();
    fmt_ebpf.args(["fmt", "--check", "--manifest-path", "gateway-ebpf/Cargo.toml"]);
    let mut clippy = process::cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--keep-going", "--", "--deny", "warnings"]);
    let mut doc = process::cargo();
    // The crates are of this workspace alone, so their documentation has what is private.
    doc.args(["doc", "--workspace", "--no-deps", "--keep-going", "--document-private-items"])
        .env("RUSTDOCFLAGS", "--deny warnings --allow rustdoc::private_intra_doc_links");
    vec![("fmt", fmt), ("fmt of the kernel programs", fmt_ebpf), ("clippy", clippy), ("doc", doc)]
}
