//! What is asked, by whom, and what was decided: the words that filter, resolver and log share.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::Id;

use super::name::{Name, NameRef};

/// A question of class IN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    pub name: NameRef<'a>,
    /// 1 is A, 28 AAAA, 65 HTTPS.
    pub qtype: u16,
}

/// Whom rules are for, as far as it is known of the one who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// Where the question came from.
    pub address: Option<IpAddr>,
    pub device: Option<Id>,
    pub groups: Vec<Id>,
    pub privacy_class: Option<Id>,
}

/// What is done with a question, or with an answer that was looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Resolved as usual.
    Pass,
    /// Answered as the blocking mode says: null addresses, NXDOMAIN or REFUSED.
    Block,
    Nxdomain,
    /// The name is there, what was asked for is not.
    NoData,
    Refuse,
    /// Answered with those of the family that was asked for; at least one is.
    Addresses(Vec<IpAddr>),
    /// Resolved as this name, shown as a CNAME.
    Name(Name),
}

/// Which kind of entry decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    Rule,
    Allowlist,
    Blocklist,
    Feed,
    Rewrite,
    Canary,
}

/// The entry that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSource {
    pub cause: Cause,
    /// Of the rule, list, feed or rewrite; none for what is built in.
    pub id: Option<Id>,
    /// The rule as it is written in its list.
    pub rule: Arc<str>,
    /// What was looked at when it was not the name asked for: a name of the CNAME chain, or an address of the answer.
    pub through: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub action: Action,
    /// None when nothing matched.
    pub because: Option<RuleSource>,
}

impl Decision {
    pub const PASS: Decision = Decision { action: Action::Pass, because: None };
}

/// A record as it stands in a message, without its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub name: Name,
    pub rtype: u16,
    pub ttl: u32,
    /// Uncompressed.
    pub rdata: Box<[u8]>,
}

/// An answer from what is stored here: zones, records, names of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    pub rcode: u8,
    pub authoritative: bool,
    pub answers: Vec<Record>,
    /// The SOA of a negative answer (RFC 2308), NS of a delegation.
    pub authorities: Vec<Record>,
    pub additionals: Vec<Record>,
    /// Why there is no answer (RFC 8914).
    pub ede: Option<(u16, &'static str)>,
    /// The last CNAME leads out of what is stored here: to be resolved and appended.
    pub goes_on: Option<Name>,
}
