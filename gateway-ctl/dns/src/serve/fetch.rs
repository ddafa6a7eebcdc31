//! Answers from the cache or from an upstream. Identical queries in flight are merged. A stale answer is used when no
//! upstream answers soon (RFC 8767). Failures are cached for a while (RFC 9520).

use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::Question;
use tokio::sync::watch;
use tokio::time::timeout;

use super::pending_queries::{QueryKey, QueryResult, ResultReceiver};
use super::{Settings, Shared};
use crate::cache::{Entry, Freshness, Key, Limits};
use crate::hooks::{Failure, Query, QueryRoute, Reply};
use crate::wire::Answer;
use crate::wire::code::ede;
use crate::wire::stored::AnswerAge;

/// Maximum wait for an upstream. It exceeds the time for which any upstream is tried.
const MAX_WAIT: Duration = Duration::from_secs(12);

/// Guard that removes a pending query when its task ends, for whatever reason.
struct PendingQuery {
    shared: Arc<Shared>,
    key: QueryKey,
}

impl Drop for PendingQuery {
    fn drop(&mut self) {
        self.shared.pending_queries.lock().remove(&self.key);
    }
}

/// Entry to answer from.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub entry: Arc<Entry>,
    pub age: AnswerAge,
    pub cached: bool,
}

/// Route and client of a query.
#[derive(Clone, Debug)]
pub struct Sender {
    pub route: Arc<QueryRoute>,
    pub client: u64,
}

impl Shared {
    /// Returns the entry to answer from, out of the cache or from an upstream. `now` is the time of the cache lookup in
    /// milliseconds of the cache clock.
    pub async fn fetch(
        self: &Arc<Self>,
        key: &Key<'_>,
        sender: Sender,
        settings: &Settings,
        now: u64,
    ) -> Fetched {
        let mut old = None;
        if let Some(entry) = self.cache.get(key, now) {
            match entry.freshness(now) {
                Freshness::Fresh(age) | Freshness::StaleRecheckPending(age) => {
                    if entry.used(now) {
                        self.renew(&entry, sender.route, sender.client, settings);
                    }
                    return Fetched { entry, age, cached: true };
                }
                Freshness::Stale(age) => old = Some(Fetched { entry, age, cached: true }),
                Freshness::Expired => {}
            }
        }
        let receiver = self.join_or_start(key, sender, settings.cache);
        let wait = if old.is_some() { settings.stale_wait } else { MAX_WAIT };
        match (timeout(wait, wait_for_result(receiver)).await, old) {
            (Ok(Some(QueryResult { replaceable: true, .. })) | Ok(None) | Err(_), Some(old)) => old,
            (Ok(Some(result)), _) => Fetched { entry: result.entry, age: AnswerAge::Fresh(0), cached: false },
            (Ok(None) | Err(_), None) => {
                let failed = failure(key, &Failure::Timeout, &settings.cache, now);
                Fetched { entry: Arc::new(failed), age: AnswerAge::Fresh(0), cached: false }
            }
        }
    }

    /// Refreshes an entry that is still fresh (prefetch). Does not wait for the upstream.
    pub fn renew(&self, entry: &Entry, route: Arc<QueryRoute>, client: u64, settings: &Settings) {
        if let Some(shared) = self.this.upgrade() {
            shared.join_or_start(&entry.key(), Sender { route, client }, settings.cache);
        }
    }

    fn join_or_start(self: &Arc<Self>, key: &Key<'_>, sender: Sender, limits: Limits) -> ResultReceiver {
        let key = QueryKey {
            partition: key.partition,
            dnssec_ok: key.dnssec_ok,
            checking_disabled: key.checking_disabled,
            qtype: key.qtype,
            name: key.name.to_owned(),
        };
        let mut pending_queries = self.pending_queries.lock();
        if let Some(receiver) = pending_queries.get(&key) {
            return receiver.clone();
        }
        let (publisher, receiver) = watch::channel(None);
        pending_queries.insert(key.clone(), receiver.clone());
        drop(pending_queries);
        let pending = PendingQuery { shared: self.clone(), key };
        self.runtime.spawn(async move {
            let result = pending.shared.run_query(&pending.key, sender, &limits).await;
            // Later queries find the entry in the cache.
            drop(pending);
            publisher.send_replace(Some(result));
        });
        receiver
    }

    async fn run_query(&self, key: &QueryKey, sender: Sender, limits: &Limits) -> QueryResult {
        let query = Query {
            route: sender.route,
            client: sender.client,
            name: key.name.clone(),
            qtype: key.qtype,
            dnssec_ok: key.dnssec_ok,
            checking_disabled: key.checking_disabled,
        };
        let reply = timeout(MAX_WAIT, self.ask.send_query(query)).await.unwrap_or(Err(Failure::Timeout));
        let key = Key {
            partition: key.partition,
            dnssec_ok: key.dnssec_ok,
            checking_disabled: key.checking_disabled,
            qtype: key.qtype,
            name: key.name.as_ref(),
        };
        let now = self.clock.ms();
        let (entry, kept, replaceable) = match reply {
            Ok(reply) => {
                let entry = understood(&key, &reply, limits, now);
                let failed = entry.failed;
                (entry, true, failed)
            }
            Err(failure) => {
                // A blocked route, or one without upstreams, can recover at any time, so its failure is not cached.
                let kept = !matches!(failure, Failure::Blocked(_) | Failure::NoUpstream);
                let replaceable = matches!(failure, Failure::Timeout | Failure::Failed(_));
                (self::failure(&key, &failure, limits, now), kept, replaceable)
            }
        };
        let entry = Arc::new(entry);
        let old = self.cache.peek(&key).filter(|old| !old.failed && old.gone_at > now);
        match old {
            Some(old) if entry.failed && replaceable => old.keep_stale(now),
            _ if kept && entry.expires_at > now => self.cache.insert(entry.clone()),
            _ => {}
        }
        QueryResult { entry, replaceable }
    }
}

async fn wait_for_result(mut receiver: ResultReceiver) -> Option<QueryResult> {
    receiver.wait_for(Option::is_some).await.ok().and_then(|result| result.clone())
}

fn understood(key: &Key<'_>, reply: &Reply, limits: &Limits, now: u64) -> Entry {
    let question = Question { name: key.name, qtype: key.qtype };
    let entry = Answer::read(&reply.message, question, key.dnssec_ok).map_err(|unsound| unsound.to_string());
    let entry = entry.and_then(|answer| {
        Entry::answer(key, &answer, reply.upstream.clone(), reply.secure, limits, now)
            .ok_or_else(|| "the answer is too long".into())
    });
    let entry = entry.unwrap_or_else(|why| {
        Entry::failure(key, (ede::INVALID_DATA, why), reply.upstream.clone(), limits, now)
    });
    entry.sent_by(reply.egress.clone())
}

fn failure(key: &Key<'_>, failure: &Failure, limits: &Limits, now: u64) -> Entry {
    let code = match failure {
        Failure::Timeout => ede::NO_REACHABLE_AUTHORITY,
        Failure::NoUpstream => ede::NOT_READY,
        Failure::Blocked(_) => ede::OTHER,
        Failure::Bogus(code, _) => *code,
        Failure::Failed(_) => ede::NETWORK_ERROR,
    };
    let mut entry = Entry::failure(key, (code, failure.to_string()), "".into(), limits, now);
    entry.blocked = matches!(failure, Failure::Blocked(_));
    if let Failure::Bogus(..) = failure {
        entry.secure = Some(false);
    }
    entry
}
