//! Origin and status of an answer, for the query log.

use std::sync::Arc;

use gateway_core::dns::RuleSource;

/// Status of an answered query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Answered from local data.
    Allowed = 0,
    Blocked = 1,
    Cached = 2,
    Rewritten = 3,
    /// Answered by an upstream.
    Forwarded = 4,
    /// Refused by a rule, or because the resolver does not serve this kind of query.
    Refused = 5,
    /// No upstream answered, or no answer was valid.
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

/// Origin and status of an answer. The log gets the answer itself as it was sent, beside this value.
#[derive(Clone, Debug)]
pub struct Trace {
    pub status: Status,
    /// Rule that decided, including an allow rule.
    pub because: Option<RuleSource>,
    pub upstream: Option<Arc<str>>,
    /// Display name of the egress by which the upstream was asked for this answer. None: no query was sent.
    pub egress: Option<Arc<str>>,
    /// No query was sent, because the route of the client is blocked.
    pub blocked: bool,
    /// DNSSEC result: true is secure, false is insecure or bogus (RFC 4035, section 4.3). None: not validated.
    pub secure: Option<bool>,
    /// Extended DNS error code (RFC 8914), even if the client could not receive it.
    pub ede: Option<u16>,
    /// Cause of a failure in words: the text of its extended DNS error.
    pub detail: Option<Arc<str>>,
}

impl Trace {
    pub fn new(status: Status) -> Trace {
        Trace {
            status,
            because: None,
            upstream: None,
            egress: None,
            blocked: false,
            secure: None,
            ede: None,
            detail: None,
        }
    }
}
