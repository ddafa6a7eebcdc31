//! Origin and status of an answer, for the query log.

use std::sync::Arc;

use gateway_core::dns::RuleSource;
use gateway_model::text_enum;

text_enum! {
    /// Status of an answered query. The log has its position.
    #[repr(u8)]
    pub enum QueryStatus {
        /// Answered from local data.
        Allowed = "allowed",
        Blocked = "blocked",
        Cached = "cached",
        Rewritten = "rewritten",
        /// Answered by an upstream.
        Forwarded = "forwarded",
        /// Refused by a rule, or because the resolver does not serve this kind of query.
        Refused = "refused",
        /// No upstream answered, or no answer was valid.
        Error = "error",
    }
}

/// Origin and status of an answer. The log gets the answer itself as it was sent, beside this value.
#[derive(Clone, Debug)]
pub struct Trace {
    pub status: QueryStatus,
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
    pub fn new(status: QueryStatus) -> Trace {
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
