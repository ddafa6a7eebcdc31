//! How an answer came about: what the log says of it.

use std::sync::Arc;

use gateway_core::dns::RuleSource;

/// In which way a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// From what is stored here.
    Allowed = 0,
    Blocked = 1,
    Cached = 2,
    Rewritten = 3,
    /// By an upstream.
    Forwarded = 4,
    /// Not answered: a rule says so, or the question is one that is not served.
    Refused = 5,
    /// No upstream answered, or none that is sound.
    Error = 6,
}

impl Status {
    pub const ALL: [Status; 7] = [
        Status::Allowed,
        Status::Blocked,
        Status::Cached,
        Status::Rewritten,
        Status::Forwarded,
        Status::Refused,
        Status::Error,
    ];

    pub const fn text(self) -> &'static str {
        match self {
            Status::Allowed => "allowed",
            Status::Blocked => "blocked",
            Status::Cached => "cached",
            Status::Rewritten => "rewritten",
            Status::Forwarded => "forwarded",
            Status::Refused => "refused",
            Status::Error => "error",
        }
    }

    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.text() == text)
    }
}

/// The answer itself stands beside it, as it was sent.
#[derive(Clone, Debug)]
pub struct Trace {
    pub status: Status,
    /// What decided; also what allowed it.
    pub because: Option<RuleSource>,
    pub upstream: Option<Arc<str>>,
    /// The answer was validated, or it was found that it cannot be.
    pub secure: Option<bool>,
    /// Code of RFC 8914, whether or not the client could be told.
    pub ede: Option<u16>,
}

impl Trace {
    pub fn new(status: Status) -> Trace {
        Trace { status, because: None, upstream: None, secure: None, ede: None }
    }
}
