//! `cargo xtask tidy`: rules of this project that neither the compiler nor clippy checks.
//!
//! Text rules inspect text: they catch mistakes, not deliberate circumvention.

mod capabilities;
mod circles;
mod crates;
mod documents;
mod features;
mod source;
mod text;
mod vocabulary;

use std::process::ExitCode;

use anyhow::Result;

use crate::ebpf;
use source::Source;

/// Result of a checked rule.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub rule: &'static str,
    pub violations: Vec<String>,
}

impl Outcome {
    pub(crate) fn passed(&self) -> bool {
        self.violations.is_empty()
    }
}

type Rule = (&'static str, fn(&[Source]) -> Result<Vec<String>>);

const RULES: &[Rule] = &[
    ("packages depend on each other in one direction only", |_| crates::directions()),
    ("gateway-core reaches nothing that does input or output", |_| crates::purity()),
    ("the demo and the tests build dependencies with the same features", |_| features::differences()),
    ("the daemon has one client for outgoing connections", |_| crates::outgoing_clients()),
    ("only gateway-outbound looks hosts up and connects to them", |s| Ok(text::outgoing(s))),
    ("no new import circle between the files of a crate", |s| Ok(circles::circles(s))),
    ("lock files are up to date", |_| crates::lock_files()),
    ("the kernel programs are built from these sources", |_| ebpf::differences()),
    ("every package takes the workspace's lints", |s| Ok(text::lints(s))),
    ("no source file is longer than 600 lines", |s| Ok(text::length(s))),
    ("no document is longer than its limit", |s| Ok(documents::lengths(s))),
    ("every decision has its parts, is in the index, and is cited", |s| Ok(documents::decisions(s))),
    ("no package has more retired words than its debt", |s| Ok(vocabulary::retired_words(s))),
    ("no package has more doc comments that begin with a question word than its debt", |s| {
        Ok(vocabulary::first_words(s))
    }),
    ("no type is a bare participle or pronoun", |s| Ok(vocabulary::bare_types(s))),
    ("every module says what it is", |s| Ok(text::module_docs(s))),
    ("no file is named after nothing in particular", |s| Ok(text::file_names(s))),
    ("no test is ignored", |s| Ok(text::ignored_tests(s))),
    ("nothing is left to do without an issue", |s| Ok(text::left_to_do(s))),
    ("no path of one machine", |s| Ok(text::machine_paths(s))),
    ("exactly one type is declared plain old data by hand", |s| Ok(text::plain_old_data(s))),
    ("pure packages use no unsafe code", |s| Ok(text::unsafe_code(s))),
    ("drivers and kernel programs read no wall clock", |s| Ok(text::wall_clock(s))),
    ("what this version lacks is told by one list", |s| Ok(capabilities::apart(s))),
    ("core and model touch no file, network, process or clock", |s| Ok(text::effects(s))),
];

/// Checks every rule, and prints each with its violations.
pub(crate) fn check() -> Result<Vec<Outcome>> {
    let sources = source::tracked()?;
    let mut outcomes = Vec::new();
    for (rule, find) in RULES {
        let violations = find(&sources)?;
        println!("{} {rule}", if violations.is_empty() { "ok  " } else { "FAIL" });
        for violation in &violations {
            println!("     {violation}");
        }
        outcomes.push(Outcome { rule, violations });
    }
    Ok(outcomes)
}

pub(crate) fn run() -> Result<ExitCode> {
    let outcomes = check()?;
    let failed: Vec<&str> = outcomes.iter().filter(|o| !o.passed()).map(|o| o.rule).collect();
    println!("tidy: {} of {} rules hold", outcomes.len() - failed.len(), outcomes.len());
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
