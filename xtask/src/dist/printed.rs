//! Manual pages and completions, which the client itself prints.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process;

/// Files that the client prints, with their arguments.
const PRINTED: &[(Printed, &[&str])] = &[
    (Printed::Bash, &["completion", "bash"]),
    (Printed::Zsh, &["completion", "zsh"]),
    (Printed::Fish, &["completion", "fish"]),
    (Printed::Manual, &["__manual", "gateway-ctl.1"]),
    (Printed::FileFormat, &["__manual", "gateway.yaml.5"]),
];

#[derive(Clone, Copy)]
pub(super) enum Printed {
    Bash,
    Zsh,
    Fish,
    Manual,
    FileFormat,
}

/// Returns what the client prints. A client that does not run on this machine is started by `command`.
pub(super) fn printed(command: impl Fn() -> Command) -> Result<Vec<(Printed, String)>> {
    let print = |(file, words): &(Printed, &[&str])| {
        let printed =
            process::output(command().args(*words)).context("the client that was built does not run")?;
        ensure!(!printed.is_empty(), "gateway-ctl {} prints nothing", words.join(" "));
        Ok((*file, printed))
    };
    PRINTED.iter().map(print).collect()
}
