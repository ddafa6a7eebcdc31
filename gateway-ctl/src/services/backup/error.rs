//! Reasons why a target does not accept or return a backup.

use std::fmt;
use std::time::Duration;

/// Human-readable reason why a target failed. Contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the target cannot be reached: {0}")]
    Unreachable(String),
    #[error("the target did not answer within {} seconds while {doing}", within.as_secs())]
    Timeout { doing: &'static str, within: Duration },
    #[error("the target refuses the user or the secret{0}")]
    Refused(String),
    #[error("the server has another host key than the one that is set: its fingerprint is {0}")]
    HostKey(String),
    #[error("there is no room at the target")]
    Full,
    #[error("the folder does not exist at the target")]
    NoFolder,
    #[error("the folder must not lie in the state directory of the gateway")]
    OwnFolder,
    #[error("{0}")]
    Setup(String),
    #[error("{doing} failed: {what}")]
    Failed { doing: &'static str, what: String },
}

impl Error {
    pub(super) fn failed(doing: &'static str, what: impl fmt::Display) -> Error {
        Error::Failed { doing, what: shortened(&what.to_string()) }
    }

    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::Timeout { .. })
    }
}

/// Limits the text of a server, so that it does not fill the status.
pub(super) fn shortened(text: &str) -> String {
    const MAX_MESSAGE_CHARS: usize = 200;
    let line: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let line = line.trim();
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
