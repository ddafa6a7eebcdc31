//! Query, client and filter decision: the types that filter, resolver and query log share.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::{Id, text_enum};

use super::name::{Name, NameRef};

/// Question of class IN (RFC 1035, section 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    pub name: NameRef<'a>,
    /// Record type: 1 is A, 28 AAAA, 65 HTTPS.
    pub qtype: u16,
}

/// Client identity that rules are matched against, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// Source address of the query.
    pub address: Option<IpAddr>,
    pub device: Option<Id>,
    pub groups: Vec<Id>,
    pub privacy_class: Option<Id>,
}

/// Action of the filter on a query, or on an answer that it inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Resolved as usual.
    Pass,
    /// Answered as the blocking mode says: null addresses, NXDOMAIN or REFUSED.
    Block,
    Nxdomain,
    /// The name exists, but has no records of the queried type.
    NoData,
    Refuse,
    /// Answered with these addresses; with NODATA if none is of the queried type.
    Addresses(Vec<IpAddr>),
    /// Answered from local data, else with NODATA. A rewrite knows the name, so that no query for it is forwarded.
    LocalOnly,
    /// Resolved as this name, shown as a CNAME.
    Name(Name),
}

text_enum! {
    /// Kind of the entry that decided.
    pub enum Cause {
        Rule = "rule",
        Allowlist = "allowlist",
        Blocklist = "blocklist",
        Feed = "threat_feed",
        Rewrite = "rewrite",
        Canary = "canary",
        /// Block of a privacy class or of the privacy settings.
        Privacy = "privacy",
        /// Protection against rebinding: a public name with an address of the network.
        Rebinding = "rebinding",
    }
}

/// Entry that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSource {
    pub cause: Cause,
    /// Id of the rule, list, feed or rewrite; none for built-in entries.
    pub id: Option<Id>,
    /// The rule as written in its list.
    pub rule: Arc<str>,
    /// Inspected item, if it is not the queried name: a name of the CNAME chain, or an address of the answer.
    pub through: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub action: Action,
    /// None if nothing matched.
    pub because: Option<RuleSource>,
}

impl Decision {
    pub const PASS: Decision = Decision { action: Action::Pass, because: None };
}

/// Record as encoded in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub name: Name,
    pub rtype: u16,
    pub ttl: u32,
    /// Uncompressed.
    pub rdata: Box<[u8]>,
}

/// Answer from local data: zones, records, names of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    pub rcode: u8,
    pub authoritative: bool,
    pub answers: Vec<Record>,
    /// The SOA of a negative answer (RFC 2308), or the NS records of a delegation.
    pub authorities: Vec<Record>,
    pub additionals: Vec<Record>,
    /// Extended DNS error: reason of a missing answer (RFC 8914).
    pub ede: Option<(u16, &'static str)>,
    /// Target of the last CNAME, if it is outside the local data. It is to be resolved and appended.
    pub goes_on: Option<Name>,
}
