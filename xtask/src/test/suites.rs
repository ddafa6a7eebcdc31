//! The table of suites. `cargo xtask test` runs each in its own process, and fails if gateway-tests has a suite that is
//! not in the table.

use std::time::Duration;

use anyhow::Result;

use crate::metadata::{Metadata, list, text};

#[derive(Debug)]
pub struct Suite {
    pub name: &'static str,
    pub what: &'static str,
    pub work: Work<'static>,
    pub quick: Quick,
    pub place: Place,
    pub root: bool,
    /// Arguments of the test programs.
    pub arguments: &'static [&'static str],
    /// Time limit, after which the suite is killed and has failed. It is generous, as it includes the build on a slow
    /// machine.
    pub limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work<'a> {
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
pub enum Place {
    /// In the order of the table.
    InTurn,
    /// In the order of the table, and alone: the suite has deadlines.
    Alone,
    /// From the beginning, in parallel with those in order: the suite is slow and has no deadlines of seconds.
    Beside,
    /// In parallel with those that run alone, at the lowest priority: the suite only needs processor time, of which
    /// they leave half.
    Background,
}

/// Part of a suite that `--quick` runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quick {
    All,
    /// Tests whose full name contains this text.
    Matching(&'static str),
    No,
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// Number of networks at a time. Their tests wait three quarters of their time, so two processors can run three of them
/// within the deadlines.
const NETWORKS: &[&str] = &["--test-threads=3"];

pub const SUITES: &[Suite] = &[
    Suite {
        name: "ui",
        what: "the checks and tests of the dashboard",
        work: Work::Dashboard,
        quick: Quick::All,
        place: Place::InTurn,
        root: false,
        arguments: &[],
        limit: minutes(10),
    },
    Suite {
        name: "tidy",
        what: "the project's own rules",
        work: Work::Tidy,
        quick: Quick::All,
        place: Place::InTurn,
        root: false,
        arguments: &[],
        limit: minutes(2),
    },
    Suite {
        name: "unit",
        what: "the tests beside the code, those of the test harness among them",
        work: Work::Units,
        quick: Quick::All,
        place: Place::InTurn,
        // The harness creates network namespaces.
        root: true,
        arguments: &[],
        limit: minutes(30),
    },
    Suite {
        name: "contract",
        what: "the interface against its specification",
        work: Work::Module("api"),
        quick: Quick::All,
        place: Place::InTurn,
        root: false,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "openapi",
        what: "every row by its own description, tried by schemathesis",
        work: Work::Module("api"),
        quick: Quick::No,
        place: Place::Background,
        root: false,
        arguments: &[],
        limit: minutes(40),
    },
    Suite {
        name: "authz",
        what: "accounts, keys, sessions, and every row by every kind of caller",
        work: Work::Module("api"),
        quick: Quick::All,
        place: Place::InTurn,
        root: false,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "cli",
        what: "the command-line client against a real daemon",
        work: Work::Module("api"),
        quick: Quick::No,
        place: Place::InTurn,
        root: true,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "tls",
        what: "TLS against OpenSSL, curl, slow clients and in every post-quantum mode",
        work: Work::Module("api"),
        quick: Quick::No,
        place: Place::InTurn,
        root: true,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "journeys",
        what: "journeys through the dashboard in a real browser",
        work: Work::Module("network"),
        quick: Quick::No,
        place: Place::InTurn,
        root: true,
        // A browser, its page and the daemon wait for each other.
        arguments: &["--test-threads=2"],
        limit: minutes(20),
    },
    Suite {
        name: "backup",
        what: "backups to a folder, SSH, WebDAV and an object store, and what goes wrong there",
        work: Work::Module("network"),
        quick: Quick::No,
        place: Place::Beside,
        root: true,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "deliveries",
        what: "alerts to an Alertmanager and other receivers, and what goes wrong there",
        work: Work::Module("network"),
        quick: Quick::No,
        place: Place::Beside,
        root: true,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "store",
        what: "crashes under load, and secrets at rest against another implementation",
        work: Work::Module("parts"),
        quick: Quick::No,
        place: Place::Background,
        root: false,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "kernel",
        what: "the programs in the kernel against the same decision in user space",
        work: Work::Module("parts"),
        quick: Quick::No,
        place: Place::InTurn,
        root: true,
        arguments: &[],
        limit: minutes(20),
    },
    Suite {
        name: "harness",
        what: "the networks and taps of the tests prove themselves",
        work: Work::Module("network"),
        quick: Quick::No,
        place: Place::Alone,
        root: true,
        arguments: &["--test-threads=1"],
        limit: minutes(15),
    },
    Suite {
        name: "e2e",
        what: "real packets through namespaces",
        work: Work::Module("network"),
        quick: Quick::Matching("e2e::routing::quick_"),
        place: Place::Alone,
        root: true,
        arguments: NETWORKS,
        limit: minutes(30),
    },
    Suite {
        name: "nothing_past",
        what: "every way that was found to leak, to outlive an end or to bring the daemon down",
        work: Work::Module("network"),
        quick: Quick::No,
        place: Place::Alone,
        root: true,
        arguments: NETWORKS,
        limit: minutes(30),
    },
    Suite {
        name: "soak",
        what: "random faults of hops under load, and with and without the fast path (GATEWAY_SOAK_SECONDS: 60)",
        work: Work::Module("network"),
        quick: Quick::No,
        place: Place::Beside,
        root: true,
        arguments: &["--nocapture"],
        limit: minutes(40),
    },
    Suite {
        name: "dns_stress",
        what: "random messages at the resolver's sockets (GATEWAY_DNS_STRESS_SECONDS: 60)",
        work: Work::Module("network"),
        quick: Quick::No,
        place: Place::Background,
        root: true,
        arguments: &["--nocapture"],
        limit: minutes(80),
    },
    Suite {
        name: "vm",
        what: "Debian's own kernel, emulated",
        work: Work::Module("parts"),
        quick: Quick::No,
        place: Place::InTurn,
        root: true,
        arguments: &[],
        limit: minutes(30),
    },
    Suite {
        name: "fuzz",
        what: "replay of the fuzz corpora",
        work: Work::Module("parts"),
        quick: Quick::No,
        place: Place::Background,
        root: false,
        arguments: &[],
        limit: minutes(15),
    },
];

pub fn names() -> Vec<&'static str> {
    SUITES.iter().map(|suite| suite.name).collect()
}

/// Existing test targets.
#[derive(Debug, Default)]
pub struct Targets {
    /// Targets of gateway-tests, whose modules are suites.
    pub ours: Vec<String>,
    pub others: Vec<String>,
}

pub fn targets() -> Result<Targets> {
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
