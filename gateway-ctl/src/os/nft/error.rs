//! Errors of nftables.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the program nft is missing (Debian package nftables)")]
    Missing,
    #[error("cannot run nft")]
    Run(#[source] io::Error),
    #[error("nft did not finish in time")]
    Timeout,
    #[error("nft could not {action}: {message}")]
    Refused { action: &'static str, message: String },
    #[error("{0:?} is not a valid interface name for a rule")]
    InterfaceName(String),
    #[error("another rule set than the given one was asked for")]
    Mismatch,
}
