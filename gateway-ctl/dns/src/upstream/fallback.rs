//! One question and several upstreams: who is asked next when one does not answer, and what counts as an answer.

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

/// A question is answered within this, or not at all.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// Tries at one upstream.
const TRIES: usize = 3;
/// Tries at all.
const MOST: usize = 8;
/// Upstreams that are asked at once where all are.
const WIDEST: usize = 6;

type Try = BoxFuture<'static, (usize, Result<Answer, Error>)>;

struct Race {
    /// In the order in which they are asked.
    lines: Vec<Arc<UpstreamClient>>,
    /// By line: how often it was asked, and whether there is sense in asking it again.
    tried: Vec<(usize, bool)>,
    started: usize,
    asked: Arc<UpstreamQuery>,
    until: Instant,
    running: FuturesUnordered<Try>,
}

/// The first answer that says something. `wide`: all that live are asked at once.
pub async fn ask(
    lines: Vec<Arc<UpstreamClient>>,
    asked: Arc<UpstreamQuery>,
    wide: bool,
    until: Instant,
) -> Result<(Answer, Arc<UpstreamClient>), Failure> {
    if lines.is_empty() {
        return Err(Failure::NoUpstream);
    }
    let tried = vec![(0, true); lines.len()];
    let mut race = Race { lines, tried, started: 0, asked, until, running: FuturesUnordered::new() };
    let outcome = race.run(wide).await;
    if !race.running.is_empty() {
        // Whoever is late is to be known as late, or as dead.
        let mut running = std::mem::take(&mut race.running);
        tokio::spawn(async move { while running.next().await.is_some() {} });
    }
    outcome
}

impl Race {
    async fn run(&mut self, wide: bool) -> Result<(Answer, Arc<UpstreamClient>), Failure> {
        let living = self.lines.iter().filter(|line| !line.health.is_dead()).count();
        let at_once = if wide { living.clamp(1, WIDEST) } else { 1 };
        let mut next_at = self.until;
        for _ in 0..at_once {
            next_at = self.start().unwrap_or(next_at);
        }
        // An answer that says nothing, if there is no better one.
        let mut poor: Option<(Answer, Arc<UpstreamClient>)> = None;
        let mut error = Error::Timeout;
        while !self.running.is_empty() {
            tokio::select! {
                biased;
                Some((index, outcome)) = self.running.next() => {
                    match outcome.and_then(|answer| self.sound(answer)) {
                        Ok(answer) => {
                            let rcode = answer.1.rcode;
                            let line = self.lines[index].clone();
                            if (rcode == NOERROR && !answer.1.referral) || rcode == NXDOMAIN {
                                return Ok((answer, line));
                            }
                            self.tried[index].1 = false;
                            // Two that cannot resolve it are enough; the others would take as long.
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
                Err(Failure::Failed("the upstream refers to others and asks nobody itself".into()))
            }
            (None, Error::Timeout) => Err(Failure::Timeout),
            (None, error) => Err(Failure::Failed(error.to_string())),
        }
    }

    /// Refuses a reply that its reader could not parse.
    fn sound(&self, answer: Answer) -> Result<Answer, Error> {
        if !matches!(answer.1.rcode, NOERROR | NXDOMAIN) {
            return Ok(answer);
        }
        let question = Question { name: self.asked.name.as_ref(), qtype: self.asked.qtype };
        match wire::Answer::read(&answer.0, question, self.asked.dnssec_ok) {
            Ok(_) => Ok(answer),
            Err(_) => Err(Error::Broken),
        }
    }

    /// Asks the next one, and tells when it is time for the one after it. None if nobody is left.
    fn start(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.started >= MOST || now >= self.until {
            return None;
        }
        let rank = |index: &usize| self.tried[*index].0;
        let index = (0..self.lines.len())
            .filter(|index| self.tried[*index].1 && self.tried[*index].0 < TRIES)
            .min_by_key(rank)?;
        self.tried[index].0 += 1;
        self.started += 1;
        let (line, asked, until) = (self.lines[index].clone(), self.asked.clone(), self.until);
        // The same one again is given more time each time, and the last time all there is: names that are hard to
        // resolve take long.
        let delay = line.hedge_delay() * self.tried[index].0 as u32;
        let last = self.tried[index].0 == TRIES || self.started == MOST;
        self.running.push(Box::pin(async move { (index, line.ask(asked, until, last).await) }));
        Some(now + delay)
    }
}
