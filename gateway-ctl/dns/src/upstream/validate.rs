//! DNSSEC: answers that prove themselves from the root down (RFC 4035), by hickory's validator over our own asking.
//!
//! Validation queries use the route of the client, and their results are cached for that route only.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, StreamExt};
use gateway_core::dns::NameRef;
use hashbrown::HashMap;
use hickory_net::dnssec::DnssecDnsHandle;
use hickory_net::runtime::TokioRuntimeProvider;
use hickory_net::{DnsError, DnsHandle, NetError};
use hickory_proto::dnssec::rdata::DNSSECRData;
use hickory_proto::dnssec::{Proof, TrustAnchors};
use hickory_proto::op::{DnsRequest, DnsRequestOptions, DnsResponse, Message, Query};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::message::{self, UpstreamQuery};
use crate::hooks::{Failure, QueryRoute};
use crate::wire::rtype;

/// Limits of the cache of keys and delegations: time and number.
const KEY_CACHE_TTL: Duration = Duration::from_secs(3600);
const MAX_CACHED_KEYS: usize = 1024;
/// Sets of records whose proofs are remembered.
const MAX_CACHED_PROOFS: usize = 4096;

/// Codes of RFC 8914.
const EDE_BOGUS: u16 = 6;
const EDE_EXPIRED: u16 = 7;
const EDE_NOT_YET_VALID: u16 = 8;
const EDE_RRSIGS_MISSING: u16 = 10;
const EDE_NSEC_MISSING: u16 = 12;

/// Source of the keys and delegations of zones.
pub(super) trait ZoneKeys: Send + Sync {
    /// Asks the upstreams of a zone. Returns the message and its response code.
    fn send_query<'a>(
        &'a self,
        zone: NameRef<'a>,
        route: &'a QueryRoute,
        name: gateway_core::dns::Name,
        qtype: u16,
    ) -> BoxFuture<'a, Result<(Vec<u8>, u16), String>>;
}

/// Validates the replies to one group's queries by one route.
pub(super) struct Validator {
    pub route: Arc<QueryRoute>,
    carrier: GroupTransport,
    handle: DnssecDnsHandle<GroupTransport>,
}

/// Sends the queries of the validator to the upstreams of the group.
#[derive(Clone)]
struct GroupTransport(Arc<GroupTransportState>);

/// Answers by name and type, and until when they hold.
type KeyCache = HashMap<(gateway_core::dns::Name, u16), (Vec<u8>, Instant)>;

struct GroupTransportState {
    /// Keys and delegations of zones with other upstreams are queried there.
    keys: Weak<dyn ZoneKeys>,
    route: Arc<QueryRoute>,
    known: Mutex<KeyCache>,
    /// Replies to validate, by the ids of their queries.
    given: Mutex<HashMap<u16, Vec<u8>>>,
    /// Questions of the validator that had no answer.
    unanswered: AtomicU64,
}

impl Validator {
    pub(super) fn new(
        keys: Weak<dyn ZoneKeys>,
        route: Arc<QueryRoute>,
        anchors: Arc<TrustAnchors>,
    ) -> Validator {
        let carrier = GroupTransport(Arc::new(GroupTransportState {
            keys,
            route: route.clone(),
            known: Mutex::default(),
            given: Mutex::default(),
            unanswered: AtomicU64::new(0),
        }));
        let handle = DnssecDnsHandle::with_trust_anchor(carrier.clone(), anchors)
            .validation_cache_size(MAX_CACHED_PROOFS);
        Validator { route, carrier, handle }
    }

    /// Validates a reply, and fails if it is bogus. Returns whether it is secure. The reply carries the result from
    /// then on, and expires with its signatures.
    pub(super) async fn check(
        &self,
        query: &UpstreamQuery,
        answer: &mut [u8],
        rcode: u16,
        until: Instant,
    ) -> Result<bool, Failure> {
        if rcode != message::NOERROR && rcode != message::NXDOMAIN {
            finished(answer, false, None);
            return Ok(false);
        }
        let (secure, most) = self.validate(query, answer, until).await?;
        finished(answer, secure, most);
        Ok(secure)
    }

    /// Returns whether it is secure, and for how long.
    async fn validate(
        &self,
        asked: &UpstreamQuery,
        answer: &[u8],
        until: Instant,
    ) -> Result<(bool, Option<u32>), Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
        let read = Message::from_vec(answer).map_err(|error| failed(&error))?;
        let query = read.queries.first().ok_or_else(|| failed(&"an answer without a question"))?.clone();
        let unanswered = self.carrier.0.unanswered.load(Ordering::Relaxed);
        let mut request = DnsRequest::from_query(query.clone(), DnsRequestOptions::default());
        request.metadata.id = self.carrier.store_reply(answer).map_err(|error| failed(&error))?;
        let mut answers = self.handle.send(request);
        let outcome = timeout_at(until, answers.next()).await.map_err(|_| Failure::Timeout)?;
        let verdict = match outcome {
            Some(Ok(response)) => verdict(&response, &query).map(|secure| (secure, shortest(&response))),
            Some(Err(NetError::Dns(DnsError::Nsec { proof: Proof::Insecure, .. }))) => Some((false, None)),
            Some(Err(NetError::Dns(_))) => None,
            Some(Err(error)) => return Err(failed(&error)),
            None => return Err(Failure::Timeout),
        };
        match verdict {
            Some(found) => Ok(found),
            // Without the keys the reply cannot be validated.
            None if self.carrier.0.unanswered.load(Ordering::Relaxed) != unanswered => Err(Failure::Timeout),
            None => {
                let (code, why) = reason(&read, asked);
                Err(Failure::Bogus(code, why.to_owned()))
            }
        }
    }
}

/// Returns whether an accepted answer is secure. `None` if a part of it is bogus.
fn verdict(response: &Message, query: &Query) -> Option<bool> {
    let proofs = |records: &[Record]| -> Vec<Proof> {
        records.iter().filter(|record| !record.record_type().is_rrsig()).map(|record| record.proof).collect()
    };
    let (answers, authorities) = (proofs(&response.answers), proofs(&response.authorities));
    let bad = |proof: &Proof| matches!(proof, Proof::Bogus | Proof::Indeterminate);
    if answers.iter().any(bad) || (answers.is_empty() && authorities.iter().any(bad)) {
        return None;
    }
    let denied = response.authorities.iter().any(|record| {
        matches!(record.record_type(), RecordType::NSEC | RecordType::NSEC3) && record.proof.is_secure()
    });
    let ends = response.answers.iter().any(|record| record.record_type() == query.query_type());
    let secure = |proofs: &[Proof]| !proofs.is_empty() && proofs.iter().all(Proof::is_secure);
    Some(match answers.is_empty() {
        true => denied,
        false => secure(&answers) && (ends || denied || query.query_type() == RecordType::ANY),
    })
}

/// Returns the lowest TTL of validated records, as their signatures limit it (RFC 4035, section 5.3.3).
fn shortest(response: &Message) -> Option<u32> {
    let proved = response.answers.iter().chain(&response.authorities);
    proved.filter(|record| record.proof.is_secure()).map(|record| record.ttl).min()
}

/// Returns the most likely fault of an answer as a human-readable text.
fn reason(read: &Message, query: &UpstreamQuery) -> (u16, &'static str) {
    #[expect(clippy::disallowed_methods, reason = "explains what the validator decided by this clock")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32);
    let signatures = |records: &[Record]| -> Vec<(u32, u32)> {
        let of = |record: &Record| match &record.data {
            RData::DNSSEC(DNSSECRData::RRSIG(rrsig)) => {
                let input = rrsig.input();
                Some((input.sig_inception.get(), input.sig_expiration.get()))
            }
            _ => None,
        };
        records.iter().filter_map(of).collect()
    };
    let negative = read.answers.is_empty();
    let found = signatures(if negative { &read.authorities } else { &read.answers });
    // Serial number arithmetic (RFC 4034, section 3.1.5).
    let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
    let denial = |record: &Record| matches!(record.record_type(), RecordType::NSEC | RecordType::NSEC3);
    if found.is_empty() {
        (EDE_RRSIGS_MISSING, "it should be signed and is not")
    } else if found.iter().all(|(_, until)| before(*until, now)) {
        (EDE_EXPIRED, "its signature has expired")
    } else if found.iter().all(|(since, _)| before(now, *since)) {
        (EDE_NOT_YET_VALID, "its signature is not valid yet")
    } else if negative && query.qtype != rtype::DS && !read.authorities.iter().any(denial) {
        (EDE_NSEC_MISSING, "it denies without a proof")
    } else {
        (EDE_BOGUS, "its signature is wrong or leads to no trusted key")
    }
}

/// The reply with the result of validation: AD as computed here, CD of the query, and expired with its signatures.
fn finished(answer: &mut [u8], secure: bool, most: Option<u32>) {
    if let Some(flags) = answer.get_mut(3) {
        *flags = *flags & !0x30 | u8::from(secure) << 5;
    }
    if let Some(most) = most {
        message::limit_life(answer, most);
    }
}

impl GroupTransport {
    /// Stores a reply for the next query. Returns its id.
    fn store_reply(&self, answer: &[u8]) -> Result<u16, super::Error> {
        let mut given = self.0.given.lock();
        // Left by queries that were given up.
        if given.len() > MAX_CACHED_KEYS {
            given.clear();
        }
        loop {
            let id = u16::from_be_bytes(super::error::random()?);
            if !given.contains_key(&id) {
                given.insert(id, answer.to_vec());
                return Ok(id);
            }
        }
    }

    async fn exchange(self, request: DnsRequest) -> Result<DnsResponse, NetError> {
        let query = request.queries.first().ok_or("a request without a question")?;
        let given = {
            let mut given = self.0.given.lock();
            // An id that a query of the validator has by chance belongs to another one.
            let fits = given.get(&request.metadata.id).is_some_and(|answer| answers(answer, query));
            if fits { given.remove(&request.metadata.id) } else { None }
        };
        let answer = match given {
            Some(answer) => answer,
            None => self.look_up(query).await.inspect_err(|_| {
                self.0.unanswered.fetch_add(1, Ordering::Relaxed);
            })?,
        };
        Ok(DnsResponse::from_buffer(answer)?)
    }

    async fn look_up(&self, query: &Query) -> Result<Vec<u8>, NetError> {
        let name = small(query.name()).ok_or("a name that is too long")?;
        let qtype = u16::from(query.query_type());
        let key = (name.clone(), qtype);
        {
            let known = self.0.known.lock();
            if let Some((answer, until)) = known.get(&key)
                && *until > Instant::now()
            {
                return Ok(answer.clone());
            }
        }
        let keys = self.0.keys.upgrade().ok_or("the upstreams were replaced")?;
        // The parent zone determines whether a zone is signed.
        let above = name.as_ref().parent().filter(|_| qtype == rtype::DS);
        let zone = above.unwrap_or(name.as_ref());
        let asked = keys.send_query(zone, &self.0.route, name.clone(), qtype).await;
        let (answer, rcode) = asked.map_err(NetError::from)?;
        if matches!(qtype, rtype::NS | rtype::DS | rtype::DNSKEY)
            && matches!(rcode, message::NOERROR | message::NXDOMAIN)
        {
            let life = message::shortest_life(&answer).map_or(Duration::ZERO, |life| life.min(KEY_CACHE_TTL));
            let mut known = self.0.known.lock();
            if known.len() >= MAX_CACHED_KEYS {
                known.clear();
            }
            known.insert(key, (answer.clone(), Instant::now() + life));
        }
        Ok(answer)
    }
}

impl DnsHandle for GroupTransport {
    type Response = Pin<Box<dyn Stream<Item = Result<DnsResponse, NetError>> + Send>>;
    type Runtime = TokioRuntimeProvider;

    fn send(&self, request: DnsRequest) -> Self::Response {
        Box::pin(stream::once(self.clone().exchange(request)))
    }
}

fn answers(answer: &[u8], query: &Query) -> bool {
    let (Some(question), Some(name)) = (message::question_of(answer), small(query.name())) else {
        return false;
    };
    let (asked, rest) = question.split_at(question.len() - 4);
    asked.eq_ignore_ascii_case(name.as_ref().wire())
        && rest[..2] == u16::from(query.query_type()).to_be_bytes()
}

/// Converts a name to this crate's form.
fn small(name: &Name) -> Option<gateway_core::dns::Name> {
    let mut wire = Vec::with_capacity(64);
    for label in name.iter() {
        wire.push(u8::try_from(label.len()).ok()?);
        wire.extend(label.iter().map(u8::to_ascii_lowercase));
    }
    wire.push(0);
    NameRef::new(&wire).map(NameRef::to_owned)
}
