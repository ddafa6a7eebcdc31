//! The table of suites. `cargo xtask test` runs each in its own process, and fails if gateway-tests has a suite that is
//! not in the table.

use std::time::Duration;

use anyhow::Result;

use crate::metadata::{Metadata, list, text};

#[derive(Debug)]
pub(super) struct Suite {
    pub name: &'static str,
    pub what: &'static str,
    pub work: Work<'static>,
    pub quick: Quick,
    pub lane: Lane,
    pub root: bool,
    /// Arguments of the test programs.
    pub arguments: &'static [&'static str],
    /// Time limit, after which the suite is killed and has failed. It is generous, as other suites run at the same time,
    /// and the machine may be slow.
    pub limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work<'a> {
    /// Checks and tests of `cargo xtask ui`.
    Dashboard,
    /// Rules of `cargo xtask tidy`, one test each.
    Tidy,
    /// Tests beside the code, and the test targets of every package but gateway-tests.
    Units,
    /// Module with the suite's name in this test target of gateway-tests.
    Module(&'a str),
}

/// Schedule of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Suites that mostly wait for networks and timers. Permits limit the networks of all of them
    /// (`tests/src/network_permit.rs`).
    Networks,
    /// Suites that take a processor, and whose tests have deadlines.
    Processors,
    /// Suites that only need processor time, of which the other lanes leave some: at the lowest priority.
    Background,
    /// Suites that compare two gateways under load. They run after the lanes of networks and processors.
    Alone,
}

impl Lane {
    /// Returns the number of its suites that run at the same time. Those of the background have processors to fill.
    pub(super) const fn width(self) -> usize {
        match self {
            Self::Networks | Self::Processors | Self::Alone => 1,
            Self::Background => 2,
        }
    }
}

/// Part of a suite that `--quick` runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quick {
    All,
    /// Tests whose full name contains this text.
    Matching(&'static str),
    No,
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// Number of tests at a time in suites of networks. Their networks need permits, so many of these tests may wait for one.
const NETWORKS: &[&str] = &["--test-threads=6"];

/// Suite that runs only by its name and with `--long`: it loads a language model first.
pub(super) const ASSISTANT_MODEL: &str = "assistant_model";

pub(super) const SUITES: &[Suite] = &[
    Suite {
        name: "ui",
        what: "the checks and tests of the dashboard",
        work: Work::Dashboard,
        quick: Quick::All,
        lane: Lane::Background,
        root: false,
        arguments: &[],
        limit: minutes(30),
    },
    Suite {
        name: "tidy",
        what: "the project's own rules",
        work: Work::Tidy,
        quick: Quick::All,
        lane: Lane::Processors,
        root: false,
        arguments: &[],
        limit: minutes(2),
    },
    Suite {
        name: "unit",
        what: "the tests beside the code, those of the test harness among them",
        work: Work::Units,
        quick: Quick::All,
        lane: Lane::Processors,
        // The harness creates network namespaces.
        root: true,
        arguments: &[],
        limit: minutes(40),
    },
    Suite {
        name: "contract",
        what: "the interface against its specification",
        work: Work::Module("api"),
        quick: Quick::All,
        lane: Lane::Background,
        root: false,
        arguments: &[],
        limit: minutes(30),
    },
    Suite {
        name: "openapi",
        what: "every row by its own description, tried by schemathesis",
        work: Work::Module("api"),
        quick: Quick::No,
        lane: Lane::Background,
        root: false,
        arguments: &[],
        limit: minutes(60),
    },
    Suite {
        name: ASSISTANT_MODEL,
        what: "the assistant with a real small language model, sixty questions",
        work: Work::Module("api"),
        quick: Quick::No,
        lane: Lane::Background,
        root: false,
        arguments: &["--nocapture"],
        limit: minutes(60),
    },
    Suite {
        name: "authz",
        what: "accounts, keys, sessions, and every row by every kind of caller",
        work: Work::Module("api"),
        quick: Quick::All,
        lane: Lane::Processors,
        root: false,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "cli",
        what: "the command-line client against a real daemon",
        work: Work::Module("api"),
        quick: Quick::No,
        lane: Lane::Networks,
        root: true,
        arguments: NETWORKS,
        limit: minutes(30),
    },
    Suite {
        name: "tls",
        what: "TLS against OpenSSL, curl, slow clients and in every post-quantum mode",
        work: Work::Module("api"),
        quick: Quick::No,
        lane: Lane::Processors,
        root: true,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "journeys",
        what: "journeys through the dashboard in a real browser",
        work: Work::Module("network"),
        quick: Quick::No,
        lane: Lane::Processors,
        root: true,
        // A browser, its page and the daemon wait for each other.
        arguments: &["--test-threads=2"],
        limit: minutes(40),
    },
    Suite {
        name: "backup",
        what: "backups to a folder, SSH, WebDAV and an object store, and what goes wrong there",
        work: Work::Module("network"),
        quick: Quick::No,
        lane: Lane::Networks,
        root: true,
        arguments: NETWORKS,
        limit: minutes(30),
    },
    Suite {
        name: "deliveries",
        what: "alerts to an Alertmanager and other receivers, flow records to ClickHouse, and what goes wrong there",
        work: Work::Module("network"),
        quick: Quick::No,
        lane: Lane::Networks,
        root: true,
        arguments: NETWORKS,
        limit: minutes(20),
    },
    Suite {
        name: "store",
        what: "crashes under load, and secrets at rest against another implementation",
        work: Work::Module("parts"),
        quick: Quick::No,
        lane: Lane::Background,
        root: false,
        arguments: &[],
        limit: minutes(30),
    },
    Suite {
        name: "kernel",
        what: "the programs in the kernel against the same decision in user space",
        work: Work::Module("parts"),
        quick: Quick::No,
        lane: Lane::Processors,
        root: true,
        arguments: &[],
        limit: minutes(30),
    },
    Suite {
        name: "harness",
        what: "the networks and taps of the tests prove themselves",
        work: Work::Module("network"),
        quick: Quick::No,
        lane: Lane::Processors,
        root: true,
        arguments: &["--test-threads=1"],
        limit: minutes(15),
    },
    Suite {
        name: "e2e",
        what: "real packets through namespaces",
        work: Work::Module("network"),
        quick: Quick::Matching("e2e::routing::quick_"),
        lane: Lane::Networks,
        root: true,
        arguments: NETWORKS,
        limit: minutes(60),
    },
    Suite {
        name: "nothing_past",
        what: "every way that was found to leak, to outlive an end or to bring the daemon down",
        work: Work::Module("network"),
        quick: Quick::No,
        lane: Lane::Networks,
        root: true,
        arguments: NETWORKS,
        limit: minutes(45),
    },
    Suite {
        name: "soak",
        what: "random faults of hops under load, and with and without the fast path (GATEWAY_SOAK_SECONDS: 60)",
        work: Work::Module("network"),
        quick: Quick::No,
        lane: Lane::Alone,
        root: true,
        arguments: &["--nocapture"],
        limit: minutes(40),
    },
    Suite {
        name: "dns_stress",
        what: "random messages at the resolver's sockets (GATEWAY_DNS_STRESS_SECONDS: 60)",
        work: Work::Module("network"),
        quick: Quick::No,
        lane: Lane::Background,
        root: true,
        arguments: &["--nocapture"],
        limit: minutes(80),
    },
    Suite {
        name: "vm",
        what: "Debian's own kernel, emulated",
        work: Work::Module("parts"),
        quick: Quick::No,
        lane: Lane::Processors,
        root: true,
        arguments: &[],
        limit: minutes(45),
    },
    Suite {
        name: "fuzz",
        what: "replay of the fuzz corpora",
        work: Work::Module("parts"),
        quick: Quick::No,
        lane: Lane::Background,
        root: false,
        arguments: &[],
        limit: minutes(15),
    },
];

pub(super) fn names() -> Vec<&'static str> {
    SUITES.iter().map(|suite| suite.name).collect()
}

/// Existing test targets.
#[derive(Debug, Default)]
pub(super) struct Targets {
    /// Targets of gateway-tests, whose modules are suites.
    pub ours: Vec<String>,
    pub others: Vec<String>,
}

pub(super) fn targets() -> Result<Targets> {
    let metadata = Metadata::of_workspace()?;
    let mut found = Targets::default();
    for package in metadata.packages() {
        let is_test = |target: &&serde_json::Value| list(&target["kind"]).iter().any(|kind| kind == "test");
        let names = list(&package["targets"]).iter().filter(is_test).map(|t| text(&t["name"]).to_owned());
        match text(&package["name"]) {
            "gateway-tests" => found.ours.extend(names),
            _ => found.others.extend(names),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (n, suite) in SUITES.iter().enumerate() {
            for other in &SUITES[n + 1..] {
                assert_ne!(suite.name, other.name);
            }
        }
    }

    #[test]
    fn the_test_targets_of_the_workspace_are_found() {
        let targets = targets().unwrap();
        assert!(targets.ours.iter().any(|target| target == "network"));
        assert!(targets.others.iter().any(|target| target == "core"));
    }
}
