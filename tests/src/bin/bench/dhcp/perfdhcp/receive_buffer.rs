//! The receive buffer of sockets that choose none (`net.core.rmem_default`, socket(7)). The setting is one for the whole
//! machine, so it is changed only briefly.

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, Result};
use gateway_tests::wait::wait_for;

const SETTING: &str = "/proc/sys/net/core/rmem_default";
/// Size in bytes: more than all answers of a run.
const LARGE: &str = "67108864";

/// Starts a program and returns when a UDP socket of its namespace has this port. That socket has a large receive buffer.
pub(super) fn spawn_with_a_large_one(command: &mut Command, port: u16) -> Result<Child> {
    let _default = RaisedDefault::new()?;
    let child = command.spawn()?;
    let sockets = format!("/proc/{}/net/udp", child.id());
    let local = format!(":{port:04X} ");
    wait_for(Duration::from_secs(10), "a socket", || {
        fs::read_to_string(&sockets).is_ok_and(|sockets| sockets.contains(&local))
    })?;
    Ok(child)
}

/// Dropping it restores the value.
struct RaisedDefault {
    before: String,
}

impl RaisedDefault {
    fn new() -> Result<RaisedDefault> {
        let before = fs::read_to_string(SETTING).context(SETTING)?;
        fs::write(SETTING, LARGE).context(SETTING)?;
        Ok(RaisedDefault { before })
    }
}

impl Drop for RaisedDefault {
    fn drop(&mut self) {
        if let Err(error) = fs::write(SETTING, &self.before) {
            eprintln!("{SETTING} is still {LARGE}, it was {}: {error}", self.before.trim_end());
        }
    }
}
