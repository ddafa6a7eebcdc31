//! Backups to real servers on loopback: a folder, OpenSSH's sshd, lighttpd's WebDAV, and an object store. Needs root.

mod daemon;
mod every;
mod folder;
mod log;
mod relay;
mod s3;
mod sftp;
mod testbed;
mod webdav;

use std::time::Duration;

/// Timeout for immediate results on a slow machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);
