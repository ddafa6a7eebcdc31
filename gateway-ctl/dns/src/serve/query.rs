//! Query in progress: filter decisions, and answers that need no upstream.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::{Action, Cause, Decision, Local, Name, Question, Record, RuleSource};
use jiff::Timestamp;

use super::settings::Mode;
use super::{Now, State, Status, Trace, Transport};
use crate::cache::{Entry, Key};
use crate::hooks::{Client, FqdnInstallError};
use crate::wire::code::ede;
use crate::wire::stored::AnswerAge;
use crate::wire::svcb::strip_ech;
use crate::wire::{AnswerTargets, Ede, Envelope, Request, rcode, rtype};

/// Block length of padded answers (RFC 8467, section 4.1).
const BLOCK: usize = 468;

impl Transport {
    pub fn envelope(self, request: &Request<'_>, state: &State) -> Envelope<'static> {
        let plain = Envelope { limit: request.payload(), ..Envelope::default() };
        if self == Transport::Udp {
            return plain;
        }
        let tenths = state.settings.streams.idle.as_millis() / 100;
        Envelope {
            limit: usize::from(u16::MAX),
            // HTTP has its own means to signal it.
            keepalive: (self != Transport::Https).then(|| u16::try_from(tenths).unwrap_or(u16::MAX)),
            padding: matches!(self, Transport::Tls | Transport::Https).then_some(BLOCK),
            ..plain
        }
    }
}

/// Query in progress.
pub struct QueryContext<'a> {
    pub state: &'a State,
    pub request: &'a Request<'a>,
    pub client: &'a Client,
    pub envelope: Envelope<'static>,
    pub now: Now,
}

/// Outcome of an answer from the cache.
pub enum CachedReply {
    Answered(Trace),
    /// The filter rewrites a name or an address in it to another name.
    Elsewhere(Decision),
}

/// Reports whether a decision is a block. Local data of a list replaces a name as a block does.
fn is_block(decision: &Decision) -> bool {
    let cause = decision.because.as_ref().map(|because| because.cause);
    match decision.action {
        Action::Block | Action::Nxdomain | Action::NoData | Action::Refuse => true,
        Action::Pass => false,
        Action::Addresses(_) | Action::Name(_) | Action::LocalOnly => {
            matches!(cause, Some(Cause::Blocklist | Cause::Feed))
        }
    }
}

impl State {
    /// Returns the decision if it is in force, else a pass. Block decisions are not in force for unfiltered clients,
    /// and, except for canary domains, privacy blocks and rebinding, not while blocking is disabled or paused.
    pub fn in_force(&self, client: &Client, decision: Decision, now: Timestamp) -> Decision {
        if !is_block(&decision) {
            return decision;
        }
        let always = decision.because.as_ref().is_some_and(|because| {
            matches!(because.cause, Cause::Canary | Cause::Privacy | Cause::Rebinding)
        });
        match client.filtered && (always || self.settings.blocking.holds(now)) {
            true => decision,
            false => Decision::PASS,
        }
    }

    /// Evaluates the names that an answer from local data leads through. Returns the first decision that is not a pass. The
    /// name that continues the answer elsewhere is evaluated when it is resolved.
    pub fn inspect_local(
        &self,
        client: &Client,
        asked: Question<'_>,
        local: &Local,
        now: Timestamp,
    ) -> Option<Decision> {
        if local.answers.iter().all(|record| matches!(record.rtype, rtype::A | rtype::AAAA)) {
            return None;
        }
        let names = AnswerTargets::of(&local.answers).names;
        let inside = names.iter().filter(|name| local.goes_on.as_ref() != Some(*name));
        let decide = |name: &Name| self.local_answers.inspect_name(&client.asker, asked, name.as_ref(), now);
        inside
            .map(|name| self.in_force(client, decide(name), now))
            .find(|decision| decision.action != Action::Pass)
    }
}

impl<'a> QueryContext<'a> {
    pub fn new(
        state: &'a State,
        request: &'a Request<'a>,
        client: &'a Client,
        transport: Transport,
        now: Now,
    ) -> QueryContext<'a> {
        let envelope = transport.envelope(request, state);
        QueryContext { state, request, client, envelope, now }
    }

    pub fn key<'k>(&self, partition: u16, question: Question<'k>) -> Key<'k> {
        Key {
            partition,
            dnssec_ok: self.request.dnssec_ok(),
            checking_disabled: self.request.checking_disabled(),
            qtype: question.qtype,
            name: question.name,
        }
    }

    /// Answers queries that the resolver never serves, whatever their name is. None: the query is served.
    pub fn unserved(&self, out: &mut Vec<u8>) -> Option<Trace> {
        let request = self.request;
        let rcode = match request.qtype {
            _ if request.opt.is_some_and(|opt| opt.version > 0) => rcode::BADVERS,
            _ if request.qclass != 1 => rcode::REFUSED,
            rtype::OPT | 0 => rcode::FORMERR,
            rtype::AXFR | rtype::IXFR | rtype::MAILA | rtype::MAILB | rtype::TSIG | 249 => rcode::NOTIMP,
            _ => return None,
        };
        self.envelope.with(rcode, None).empty(out, request);
        Some(Trace::new(if rcode == rcode::REFUSED { Status::Refused } else { Status::Error }))
    }

    /// Returns the filter decision that is in force.
    pub fn decide(&self, question: Question<'_>) -> Decision {
        self.in_force(self.state.local_answers.decide(&self.client.asker, question, self.now.wall))
    }

    /// Returns the answer from local data. A name that the decision knows exists, also if its zone does not have it.
    pub fn local_answer(&self, question: Question<'_>, decision: &Decision) -> Option<Local> {
        let local = self.state.local_answers.local(question, self.request.dnssec_ok())?;
        let is_denied = u16::from(local.rcode) == rcode::NXDOMAIN && local.answers.is_empty();
        (!is_denied || decision.action != Action::LocalOnly).then_some(local)
    }

    /// Evaluates the names that an answer from local data leads through.
    pub fn inspect_local(&self, local: &Local) -> Option<Decision> {
        self.state.inspect_local(self.client, self.request.asked(), local, self.now.wall)
    }

    fn in_force(&self, decision: Decision) -> Decision {
        self.state.in_force(self.client, decision, self.now.wall)
    }

    /// Evaluates the names and addresses of an answer. Returns the first decision that is not a pass.
    pub fn inspect(&self, names: &[Name], addresses: &[(IpAddr, u32)]) -> Option<Decision> {
        let (local_answers, asker, asked) =
            (&self.state.local_answers, &self.client.asker, self.request.asked());
        let names =
            names.iter().map(|name| local_answers.inspect_name(asker, asked, name.as_ref(), self.now.wall));
        let addresses =
            addresses.iter().map(|(a, _)| local_answers.inspect_address(asker, asked, *a, self.now.wall));
        names.chain(addresses).map(|decision| self.in_force(decision)).find(|d| d.action != Action::Pass)
    }

    /// Writes the answer of a decision. None: the query must be resolved.
    pub fn decided(&self, out: &mut Vec<u8>, decision: &Decision) -> Option<Trace> {
        let (request, blocking) = (self.request, &self.state.settings.blocking);
        let ede = decision.because.as_ref().and_then(extended);
        let shut = |rcode| self.envelope.with(rcode, ede);
        let null: IpAddr = match request.qtype {
            rtype::AAAA => std::net::Ipv6Addr::UNSPECIFIED.into(),
            _ => std::net::Ipv4Addr::UNSPECIFIED.into(),
        };
        let mut status = Status::Blocked;
        match (&decision.action, blocking.mode) {
            (Action::Name(target), _) if request.qtype == rtype::CNAME => {
                status = Status::Rewritten;
                let (name, ttl) = (request.name().to_owned(), self.state.settings.rewrite_ttl);
                let rdata = target.as_ref().wire().into();
                let alias = Record { name, rtype: rtype::CNAME, ttl, rdata };
                self.envelope.with(rcode::NOERROR, None).records(out, request, [&[alias], &[], &[]]);
            }
            (Action::Pass | Action::Name(_), _) => return None,
            (Action::LocalOnly, _) => {
                status = Status::Rewritten;
                let ttl = self.state.settings.rewrite_ttl;
                self.envelope.with(rcode::NOERROR, None).negative(out, request, ttl);
            }
            (Action::Addresses(addresses), _) => {
                status = Status::Rewritten;
                let ttl = self.state.settings.rewrite_ttl;
                if let Err(install_failed) =
                    self.install_some(|| addresses.iter().map(|a| (*a, ttl)).collect())
                {
                    return Some(self.install_failed(out, &install_failed));
                }
                self.envelope.with(rcode::NOERROR, None).addresses(out, request, addresses, ttl);
            }
            (Action::Block, Mode::NullIp) => {
                shut(rcode::NOERROR).addresses(out, request, &[null], blocking.ttl)
            }
            (Action::NoData, _) => shut(rcode::NOERROR).negative(out, request, blocking.ttl),
            (Action::Block, Mode::Nxdomain) | (Action::Nxdomain, _) => {
                shut(rcode::NXDOMAIN).negative(out, request, blocking.ttl);
            }
            (Action::Block, Mode::Refused) => shut(rcode::REFUSED).empty(out, request),
            (Action::Refuse, _) => {
                status = Status::Refused;
                shut(rcode::REFUSED).empty(out, request);
            }
        }
        let ede = ede.map(|ede| ede.code);
        Some(Trace { because: decision.because.clone(), ede, ..Trace::new(status) })
    }

    /// Writes an answer from local data.
    pub fn local(&self, out: &mut Vec<u8>, local: &Local, because: Option<RuleSource>) -> Trace {
        if let Err(install_failed) = self.install_records(&local.answers) {
            return self.install_failed(out, &install_failed);
        }
        let rcode = u16::from(local.rcode);
        let ede = local.ede.map(|(code, text)| Ede { code, text });
        let envelope = Envelope { authoritative: local.authoritative, ..self.envelope.with(rcode, ede) };
        envelope.records(out, self.request, [&local.answers, &local.authorities, &local.additionals]);
        let status = if rcode == rcode::SERVFAIL { Status::Error } else { Status::Allowed };
        Trace { because, ede: ede.map(|ede| ede.code), ..Trace::new(status) }
    }

    /// Evaluates a cache entry and writes the answer from it.
    pub fn entry(&self, out: &mut Vec<u8>, entry: &Entry, age: AnswerAge, found: EntryOrigin) -> CachedReply {
        let stored = &entry.stored;
        if let Some(decision) = self.inspect(&stored.names, &stored.addresses) {
            return match self.decided(out, &decision) {
                Some(trace) => CachedReply::Answered(trace),
                None => CachedReply::Elsewhere(decision),
            };
        }
        let wanted = found.wanted && !stored.addresses.is_empty();
        if wanted {
            let addresses: Vec<_> = stored.addresses.iter().map(|(a, ttl)| (*a, age.left(*ttl))).collect();
            if let Err(install_failed) = self.install(&addresses) {
                return CachedReply::Answered(self.install_failed(out, &install_failed));
            }
        }
        let (ede, mut trace) = self.envelope_of(entry, age, found.cached);
        trace.because = found.because;
        if self.may_have_ech() {
            let [mut answers, authorities] = stored.unpack(age);
            if strip_ech(&mut answers) {
                let envelope = self.envelope.with(entry.rcode, ede);
                envelope.records(out, self.request, [&answers, &authorities, &[]]);
                return CachedReply::Answered(trace);
            }
        }
        let authentic = entry.secure == Some(true);
        let envelope = Envelope { authentic, ..self.envelope.with(entry.rcode, ede) };
        envelope.stored(out, self.request, stored, age);
        CachedReply::Answered(trace)
    }

    /// Reports whether the answer can have keys of Encrypted ClientHello that the client may not get.
    pub fn may_have_ech(&self) -> bool {
        self.client.strips_ech && matches!(self.request.qtype, rtype::HTTPS | rtype::SVCB)
    }

    /// Returns the extended error and the trace of an answer from an entry.
    pub fn envelope_of<'e>(
        &self,
        entry: &'e Entry,
        age: AnswerAge,
        cached: bool,
    ) -> (Option<Ede<'e>>, Trace) {
        let said = entry.ede.as_ref().map(|(code, text)| Ede { code: *code, text });
        let ede = match age {
            AnswerAge::Stale(_) if entry.rcode == rcode::NXDOMAIN => {
                Some(Ede { code: ede::STALE_NXDOMAIN, text: "" })
            }
            AnswerAge::Stale(_) => Some(Ede { code: ede::STALE, text: "" }),
            AnswerAge::Fresh(_) => said,
        };
        let status = match (entry.failed, cached) {
            (true, _) => Status::Error,
            (false, true) => Status::Cached,
            (false, false) => Status::Forwarded,
        };
        let upstream = Some(entry.upstream.clone()).filter(|upstream| !upstream.is_empty());
        let egress = Some(entry.egress.clone()).filter(|egress| !cached && !egress.is_empty());
        let (secure, ede_code) = (entry.secure, ede.map(|ede| ede.code));
        let detail = match (&entry.ede, age) {
            (Some((_, text)), AnswerAge::Fresh(_)) if entry.failed && !text.is_empty() => Some(text.clone()),
            _ => None,
        };
        let trace = Trace {
            upstream,
            egress,
            blocked: entry.blocked && !cached,
            secure,
            ede: ede_code,
            detail,
            ..Trace::new(status)
        };
        (ede, trace)
    }

    /// Installs the addresses in the dataplane if an FQDN policy covers the name. Callers call it before the client
    /// gets the answer.
    pub fn install_records(&self, records: &[Record]) -> Result<(), FqdnInstallError> {
        self.install_some(|| AnswerTargets::of(records).addresses)
    }

    fn install_some(&self, addresses: impl FnOnce() -> Vec<(IpAddr, u32)>) -> Result<(), FqdnInstallError> {
        match self.state.fqdn_policy.fqdn_route(self.client, self.request.name()) {
            Some(_) => self.install(&addresses()),
            None => Ok(()),
        }
    }

    fn install(&self, addresses: &[(IpAddr, u32)]) -> Result<(), FqdnInstallError> {
        if addresses.is_empty() {
            return Ok(());
        }
        let addresses: Vec<(IpAddr, Duration)> =
            addresses.iter().map(|(address, ttl)| (*address, Duration::from_secs(u64::from(*ttl)))).collect();
        self.state.fqdn_policy.install(self.client, self.request.name(), &addresses)
    }

    /// Writes SERVFAIL. The dataplane does not know the addresses, so the client must not get them: its packets would
    /// use another egress.
    pub fn install_failed(&self, out: &mut Vec<u8>, install_failed: &FqdnInstallError) -> Trace {
        self.failed(out, Ede { code: ede::NOT_READY, text: &install_failed.0 })
    }

    /// Answers a query of type ANY (RFC 8482). Such queries are not sent to upstreams.
    pub fn any(&self, out: &mut Vec<u8>, because: Option<RuleSource>) -> Trace {
        self.envelope.any(out, self.request);
        Trace { because, ..Trace::new(Status::Allowed) }
    }

    pub fn failed(&self, out: &mut Vec<u8>, ede: Ede<'_>) -> Trace {
        self.envelope.with(rcode::SERVFAIL, Some(ede)).empty(out, self.request);
        let detail = Some(ede.text).filter(|text| !text.is_empty()).map(Arc::from);
        Trace { ede: Some(ede.code), detail, ..Trace::new(Status::Error) }
    }
}

/// Origin of an entry.
#[derive(Clone, Debug, Default)]
pub struct EntryOrigin {
    pub cached: bool,
    /// An FQDN policy covers the name.
    pub wanted: bool,
    pub because: Option<RuleSource>,
}

/// Returns the extended error for the client (RFC 8914). Lists belong to the operator (Blocked), rules to the users of
/// the network (Filtered).
fn extended(because: &RuleSource) -> Option<Ede<'static>> {
    match because.cause {
        Cause::Blocklist => Some(Ede { code: ede::BLOCKED, text: "blocklist" }),
        Cause::Feed => Some(Ede { code: ede::BLOCKED, text: "threat feed" }),
        Cause::Rule => Some(Ede { code: ede::FILTERED, text: "filter rule" }),
        Cause::Privacy => Some(Ede { code: ede::FILTERED, text: "privacy class" }),
        Cause::Rebinding => Some(Ede { code: ede::FILTERED, text: "rebinding protection" }),
        Cause::Allowlist | Cause::Rewrite | Cause::Canary => None,
    }
}
