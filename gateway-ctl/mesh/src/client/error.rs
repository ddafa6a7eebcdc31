//! Reasons why a coordinator or a relay gave nothing of use.

use std::io;

use http::StatusCode;
use thiserror::Error;

use crate::map_frame::MapFrameError;
use crate::noise::NoiseError;

/// Longest reason of a coordinator that is repeated.
const LONGEST_REASON: usize = 200;

/// Reason why a coordinator or a relay gave nothing of use.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("it answers {status}: {reason}")]
    Refused { status: StatusCode, reason: String },
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the encrypted channel: {0}")]
    Noise(#[from] NoiseError),
    #[error(transparent)]
    Map(#[from] MapFrameError),
    #[error("{0}")]
    Protocol(&'static str),
    #[error("no answer in time")]
    Timeout,
}

impl ClientError {
    pub(super) fn refused(status: StatusCode, body: &[u8]) -> ClientError {
        let text = String::from_utf8_lossy(body);
        let reason: String = text.trim().chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
        ClientError::Refused { status, reason }
    }

    /// Tells whether the coordinator has no such node, or not any more.
    pub fn is_no_member(&self) -> bool {
        let statuses = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND];
        matches!(self, ClientError::Refused { status, .. } if statuses.contains(status))
    }
}
