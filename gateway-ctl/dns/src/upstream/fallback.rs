//! Fallback between the upstreams of one query: the order of attempts, and the answers that are accepted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use gateway_core::dns::Question;
use tokio::time::{Instant, sleep_until};

use super::client::{Answer, UpstreamClient};
use super::error::Error;
use super::message::{NOERROR, NXDOMAIN, SERVFAIL, UpstreamQuery};
use crate::hooks::Failure;
use crate::wire;

/// Time limit for the answer to a query. Clients wait 5 seconds before they give up or send the query again (glibc,
/// musl), so that an answer at that time would be lost.
pub(super) const DEADLINE: Duration = Duration::from_millis(4500);
/// Maximum number of attempts at one upstream.
const MAX_TRIES_PER_UPSTREAM: usize = 3;
/// Maximum number of attempts at all upstreams together.
const MAX_TRIES: usize = 8;
/// Maximum number of upstreams queried in parallel at the start.
const MAX_PARALLEL_TRIES: usize = 6;

type Attempt = BoxFuture<'static, (usize, Result<Answer, Error>)>;

struct FallbackRun {
    /// Upstreams in the order of attempts.
    lines: Vec<Arc<UpstreamClient>>,
    /// Per upstream: the number of attempts, and whether another attempt makes sense.
    tried: Vec<(usize, bool)>,
    started: usize,
    query: Arc<UpstreamQuery>,
    until: Instant,
    running: FuturesUnordered<Attempt>,
}

/// Returns the first conclusive answer. With `wide`, up to `MAX_PARALLEL_TRIES` live upstreams are queried in parallel.
pub(super) async fn send_query(
    lines: Vec<Arc<UpstreamClient>>,
    query: Arc<UpstreamQuery>,
    wide: bool,
    until: Instant,
) -> Result<(Answer, Arc<UpstreamClient>), Failure> {
    if lines.is_empty() {
        return Err(Failure::NoUpstream);
    }
    let tried = vec![(0, true); lines.len()];
    let mut race = FallbackRun { lines, tried, started: 0, query, until, running: FuturesUnordered::new() };
    let outcome = race.run(wide).await;
    if !race.running.is_empty() {
        // Late upstreams finish in the background, so that their health records it.
        let mut running = std::mem::take(&mut race.running);
        tokio::spawn(async move { while running.next().await.is_some() {} });
    }
    outcome
}

impl FallbackRun {
    async fn run(&mut self, wide: bool) -> Result<(Answer, Arc<UpstreamClient>), Failure> {
        let living = self.lines.iter().filter(|line| !line.health.is_dead()).count();
        let at_once = if wide { living.clamp(1, MAX_PARALLEL_TRIES) } else { 1 };
        let mut next_at = self.until;
        for _ in 0..at_once {
            next_at = self.start().unwrap_or(next_at);
        }
        // An inconclusive answer, used if there is no better one.
        let mut poor: Option<(Answer, Arc<UpstreamClient>)> = None;
        let mut error = Error::Timeout;
        while !self.running.is_empty() {
            tokio::select! {
                biased;
                Some((index, outcome)) = self.running.next() => {
                    match outcome.and_then(|answer| self.validate_answer(answer)) {
                        Ok(answer) => {
                            let rcode = answer.1.rcode;
                            let line = self.lines[index].clone();
                            if (rcode == NOERROR && !answer.1.referral) || rcode == NXDOMAIN {
                                return Ok((answer, line));
                            }
                            self.tried[index].1 = false;
                            // Two SERVFAIL answers are enough; the other upstreams would take as long.
                            let enough = rcode == SERVFAIL
                                && poor.as_ref().is_some_and(|(answer, _)| answer.1.rcode == SERVFAIL);
                            if poor.is_none() || rcode == SERVFAIL {
                                poor = Some((answer, line));
                            }
                            if enough {
                                next_at = self.until;
                                continue;
                            }
                        }
                        Err(failed) => {
                            self.tried[index].1 = matches!(failed, Error::Timeout | Error::Closed);
                            error = failed;
                        }
                    }
                    next_at = self.start().unwrap_or(self.until);
                }
                () = sleep_until(next_at.min(self.until)) => {
                    if Instant::now() >= self.until {
                        break;
                    }
                    next_at = self.start().unwrap_or(self.until);
                }
            }
        }
        match (poor, error) {
            (Some(poor), _) if !poor.0.1.referral => Ok(poor),
            (Some(_), _) => {
                Err(Failure::Failed("the upstream answers with a referral and does not resolve".into()))
            }
            (None, Error::Timeout) => Err(Failure::Timeout),
            (None, error) => Err(Failure::Failed(error.to_string())),
        }
    }

    /// Rejects an answer that cannot be parsed.
    fn validate_answer(&self, answer: Answer) -> Result<Answer, Error> {
        if !matches!(answer.1.rcode, NOERROR | NXDOMAIN) {
            return Ok(answer);
        }
        let question = Question { name: self.query.name.as_ref(), qtype: self.query.qtype };
        match wire::Answer::read(&answer.0, question, self.query.dnssec_ok) {
            Ok(_) => Ok(answer),
            Err(_) => Err(Error::Broken),
        }
    }

    /// Queries the next upstream and returns the time for the one after it. `None` if no attempt is left.
    fn start(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.started >= MAX_TRIES || now >= self.until {
            return None;
        }
        let rank = |index: &usize| self.tried[*index].0;
        let index = (0..self.lines.len())
            .filter(|index| self.tried[*index].1 && self.tried[*index].0 < MAX_TRIES_PER_UPSTREAM)
            .min_by_key(rank)?;
        self.tried[index].0 += 1;
        self.started += 1;
        let (line, asked, until) = (self.lines[index].clone(), self.query.clone(), self.until);
        // Each further attempt at the same upstream gets more time, and the last one all the time left: some names
        // take long to resolve.
        let delay = line.hedge_delay() * self.tried[index].0 as u32;
        let last = self.tried[index].0 == MAX_TRIES_PER_UPSTREAM || self.started == MAX_TRIES;
        self.running.push(Box::pin(async move { (index, line.send_query(asked, until, last).await) }));
        Some(now + delay)
    }
}
