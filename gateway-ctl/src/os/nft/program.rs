//! Runner of nft(8).

use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::error::Error;

/// Names of the program. The second is for daemons whose PATH lacks the administrator's directories.
const PROGRAMS: [&str; 2] = ["nft", "/usr/sbin/nft"];
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Applies a script as one transaction.
pub(super) async fn apply(action: &'static str, script: &str) -> Result<(), Error> {
    let output = run(&["-f", "-"], script).await?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Refused { action, message: first_line(&output) })
}

/// Returns the table as text without volatile values and the elements of named sets, or `None` if there is no table.
pub(super) async fn list(table: &str) -> Result<Option<String>, Error> {
    let output = run(&["--stateless", "--terse", "--numeric", "list", "table", "inet", table], "").await?;
    if output.status.success() {
        return Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    let message = first_line(&output);
    if message.contains("No such file or directory") {
        return Ok(None);
    }
    Err(Error::Refused { action: "list the rule set", message })
}

async fn run(arguments: &[&str], input: &str) -> Result<Output, Error> {
    for program in PROGRAMS {
        match tokio::time::timeout(TIME_LIMIT, output(program, arguments, input)).await {
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(result) => return result.map_err(Error::Run),
            Err(_) => return Err(Error::Timeout),
        }
    }
    Err(Error::Missing)
}

async fn output(program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input.as_bytes()).await {
            // nft ended before it read all input. Its exit status gives the reason.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
    }
    child.wait_with_output().await
}

/// Returns the first line of the error output. The rest repeats the script.
fn first_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason given");
    line.trim_start_matches("Error: ").to_owned()
}
