//! Runs the client inside the gateway's namespace.

use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use gateway_tests::testbed::Testbed;

/// Result of a run of the client.
#[derive(Debug)]
pub(super) struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub(super) fn of(output: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the client writes UTF-8");
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Returns `GATEWAY_CTL_BIN`, or `gateway-ctl` beside the daemon or this program.
pub(super) fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("GATEWAY_CTL_BIN") {
        return named.into();
    }
    let here = std::env::current_exe().expect("path of this program");
    let beside = here.ancestors().skip(1).take(2).map(|folder| folder.join("gateway-ctl"));
    let daemon = std::env::var_os("GATEWAYD_BIN").map(PathBuf::from);
    let daemons = daemon.into_iter().map(|daemon| daemon.with_file_name("gateway-ctl"));
    let candidates: Vec<PathBuf> = daemons.chain(beside).collect();
    let found = candidates.iter().find(|candidate| candidate.is_file()).cloned();
    found.unwrap_or_else(|| {
        panic!(
            "no gateway-ctl at {candidates:?}: build it (cargo build -p gateway-cli) or set GATEWAY_CTL_BIN"
        )
    })
}

/// Returns a command of the client with its own environment and without a terminal.
pub(super) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Makes the command enter the gateway's namespace before it runs.
pub(super) fn inside(testbed: &Testbed, mut command: Command) -> Command {
    let entrance = testbed.network.gateway.entrance();
    // SAFETY: the closure makes one async-signal-safe system call.
    unsafe { command.pre_exec(move || entrance.enter()) };
    command
}

/// Runs the client against the scene's daemon.
pub(super) fn run(testbed: &Testbed, arguments: &[&str]) -> Ran {
    Ran::of(inside(testbed, command(arguments)).output().expect("gateway-ctl runs"))
}

/// Runs the client with this standard input.
pub(super) fn feed(testbed: &Testbed, arguments: &[&str], input: &str) -> Ran {
    let mut command = inside(testbed, command(arguments));
    let mut child = command.stdin(Stdio::piped()).spawn().expect("gateway-ctl runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    match stdin.write_all(input.as_bytes()) {
        // The client may end without reading its input.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.expect("the client reads its input"),
    }
    drop(stdin);
    Ran::of(child.wait_with_output().expect("gateway-ctl ends"))
}
