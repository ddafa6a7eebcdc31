//! A resolver in its testbed, the gateway or a peer. It can be started, suspended and measured.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gateway_tests::cores;
use gateway_tests::daemon::Daemon;
use gateway_tests::dns::A;
use gateway_tests::name_server;
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

use super::names::domain;
use super::peer::Make;
use super::publisher;
use super::testbed::{Cores, NULL, Testbed};

/// Timeout for the load of a list and for the start of a resolver.
const LOADED: Duration = Duration::from_secs(180);
const STOP: Duration = Duration::from_secs(30);
/// Interval between two queries that check whether a name is blocked.
const PAUSE: Duration = Duration::from_millis(2);
/// Timeout of one of these queries.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Implementation of the resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    Peer(Make),
}

impl Whose {
    pub(super) fn name(self) -> &'static str {
        match self {
            Whose::Ours => "ours",
            Whose::Peer(make) => make.name(),
        }
    }

    /// Returns the gateway, then the peers.
    pub(super) fn all() -> impl Iterator<Item = Whose> {
        [Whose::Ours].into_iter().chain(Make::ALL.map(Whose::Peer))
    }
}

#[derive(Debug)]
pub(super) struct Server {
    pub whose: Whose,
    // Field order is drop order: processes end first, then files, then networks.
    process: Option<Process>,
    daemon: Option<Daemon>,
    folder: TempDir,
    pub testbed: Testbed,
    pinned: Option<usize>,
    /// URL of the list that the gateway subscribes to. Unused by peers.
    subscribed: Option<String>,
}

impl Server {
    /// Builds the testbed and writes the configuration. A pinned resolver runs on its own core only.
    pub(super) fn prepare(whose: Whose, cores: &Cores, pinned: bool) -> Result<Self> {
        let testbed = Testbed::build(cores)?;
        let folder = tempfile::Builder::new().prefix("gateway-").tempdir().context("temporary directory")?;
        let pinned = pinned.then_some(cores.resolver);
        let mut daemon = None;
        if whose == Whose::Ours {
            let mut ours = Daemon::prepare_in(&testbed.gateway, &testbed.prefix)?;
            let upstreams = [name_server::ADDRESS];
            // The load comes from one host, and the lists come from the host of the gateway.
            let dns = json!({"upstream_servers": upstreams, "rate_limit_per_client": 0, "list_private_targets": true});
            ours.configure(&json!({"dns": dns, "log": {"level": "info"}}))?;
            ours.keep_to(pinned);
            daemon = Some(ours);
        }
        Ok(Self { whose, process: None, daemon, folder, testbed, pinned, subscribed: None })
    }

    /// Starts the resolver with `blocked` blocked domains in its configuration. Returns the time until the last of them
    /// is blocked.
    pub(super) fn start(&mut self, blocked: usize) -> Result<Duration> {
        if let Whose::Peer(make) = self.whose {
            make.configure(self.folder.path(), blocked)?;
        }
        let started = Instant::now();
        match self.whose {
            Whose::Ours => self.daemon()?.spawn()?,
            Whose::Peer(make) => {
                self.process = Some(make.start(&self.testbed.gateway, self.folder.path(), self.pinned)?);
            }
        }
        self.wait_until_blocked(blocked)?;
        let taken = started.elapsed();
        if let Some(daemon) = &mut self.daemon {
            daemon.wait_until_well()?;
        }
        Ok(taken)
    }

    /// Gateway only: subscribes to a list of `blocked` domains that replaces the previous one. Returns the time until
    /// the last of them is blocked.
    pub(super) fn subscribe(&mut self, blocked: usize) -> Result<Duration> {
        self.unsubscribe()?;
        let list = json!({"name": format!("{blocked} domains"), "url": publisher::url(blocked)});
        let started = Instant::now();
        let made = self.daemon()?.api().post("/dns/blocklist", &list)?;
        self.wait_until_blocked(blocked)?;
        let taken = started.elapsed();
        self.subscribed = Some(made["id"].as_str().context("an id")?.to_owned());
        Ok(taken)
    }

    /// Gateway only: removes the subscription, so that no name is blocked.
    pub(super) fn unsubscribe(&mut self) -> Result<()> {
        let Some(id) = self.subscribed.take() else { return Ok(()) };
        self.daemon()?.api().delete(&format!("/dns/blocklist/{id}")).map(drop)
    }

    /// Stops the resolver gracefully.
    pub(super) fn stop(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.terminate(STOP)?;
        }
        match &mut self.daemon {
            Some(daemon) if daemon.pid().is_some() => daemon.terminate().map(drop),
            _ => Ok(()),
        }
    }

    pub(super) fn pid(&self) -> Result<u32> {
        let of_daemon = self.daemon.as_ref().and_then(Daemon::pid);
        self.process.as_ref().map(Process::pid).or(of_daemon).context("the resolver does not run")
    }

    /// Suspends or resumes the resolver by a signal. A suspended resolver takes no processor time from the others.
    pub(super) fn hold_still(&self, still: bool) -> Result<()> {
        let signal = if still { Signal::SIGSTOP } else { Signal::SIGCONT };
        let pid = Pid::from_raw(i32::try_from(self.pid()?).context("pid")?);
        kill(pid, signal).with_context(|| format!("{signal} to {}", self.whose.name()))
    }

    /// Returns the number of answers that the dataplane has sent from its packet cache and its filter.
    pub(super) fn answered_by_kernel(&self) -> Result<u64> {
        let Some(daemon) = &self.daemon else { return Ok(0) };
        let status = daemon.api().get("/dns/status")?;
        let count = |field: &str| status[field].as_u64().with_context(|| format!("no count {field}"));
        Ok(count("repeated")? + count("kernel_blocked")?)
    }

    pub(super) fn resident(&self) -> Result<u64> {
        cores::resident(self.pid()?)
    }

    fn daemon(&mut self) -> Result<&mut Daemon> {
        self.daemon.as_mut().context("a peer has no daemon")
    }

    /// Waits until the last blocked domain is blocked. Without blocked domains, waits until the resolver answers.
    fn wait_until_blocked(&mut self, blocked: usize) -> Result<()> {
        let last = blocked.checked_sub(1).map(domain);
        let started = Instant::now();
        let mut client = self.testbed.client()?.with_timeout(TIMEOUT)?;
        loop {
            let answer = client.ask(last.as_deref().unwrap_or("www.example"), A);
            let holds = answer.as_ref().is_ok_and(|reply| last.is_none() || reply.addresses == [NULL]);
            if holds {
                return Ok(());
            }
            let ended = match (&mut self.process, &mut self.daemon) {
                (Some(process), _) => process.ended(),
                (None, Some(daemon)) => daemon.ended(),
                (None, None) => None,
            };
            ensure!(
                ended.is_none() && started.elapsed() < LOADED,
                "{} does not come up ({ended:?}): {answer:?}\n{}",
                self.whose.name(),
                self.last_words()
            );
            std::thread::sleep(PAUSE);
        }
    }

    fn last_words(&self) -> String {
        match &self.daemon {
            Some(daemon) => daemon.last_words(),
            None => std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default(),
        }
    }

    /// Fills the cache of the resolver and checks every answer.
    pub(super) fn warm(&self, blocked: &[String], passing: &[String]) -> Result<()> {
        let wrong = || format!("{} answers wrongly", self.whose.name());
        wait_ok(STOP, "right answers", || {
            let names = passing.iter().map(String::as_str);
            self.testbed.check(names, super::testbed::ANSWER)
        })
        .with_context(wrong)?;
        self.testbed.check(blocked.iter().map(String::as_str), NULL).with_context(wrong)
    }
}
