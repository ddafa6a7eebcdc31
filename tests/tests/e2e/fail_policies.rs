//! The failure policies in comparison over one hop: their matches, the run of a cause, and the evaluation of a cell.
//!
//! One testbed has the three policies at once, distinguished by their destinations. Another host is closed to the same
//! hop and keeps it under load throughout, so the test also covers the transition.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use gateway_tests::services::{HTTP, HTTP_OTHER};
use gateway_tests::tap::Counts;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{other_server, server};
use gateway_tests::traffic::{self, Load};
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::json;

use crate::e2e::paths::path;
use crate::e2e::{FAMILIES, SOON};

/// Timeout of a request that is repeated or blocked: far longer than a working path needs.
pub(super) const TIMEOUT: Duration = Duration::from_millis(500);

/// Returns the timeout of a request with this expected answer. One that is answered once may take longer on a busy
/// machine; only a blocked one waits to the end.
pub(super) fn timeout_for(expected: Option<IpAddr>) -> Duration {
    match expected {
        Some(_) => traffic::TIMEOUT,
        None => TIMEOUT,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailPolicy {
    Closed,
    Degraded,
    Open,
}

impl FailPolicy {
    pub(super) const ALL: [FailPolicy; 3] = [Self::Closed, Self::Degraded, Self::Open];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Closed => "fail-closed",
            Self::Degraded => "fail-degraded",
            Self::Open => "fail-open",
        }
    }

    /// Returns the destination that its policy matches; TCP and UDP are answered there.
    pub(super) fn destination(self, ipv6: bool) -> SocketAddr {
        match self {
            Self::Closed => (server(ipv6), HTTP).into(),
            Self::Degraded => (other_server(ipv6), HTTP).into(),
            Self::Open => (server(ipv6), HTTP_OTHER).into(),
        }
    }
}

/// A cause, its effect on the hop, and its start and end.
pub(super) struct Row<S: Site> {
    pub cause: &'static str,
    pub effect: S::Effect,
    pub apply: fn(&mut S),
    pub undo: fn(&mut S),
}

/// A network with one kind of hop and the three policies over it.
pub(super) trait Site: Sized {
    type Effect: Copy + Debug;

    fn testbed(&self) -> &Testbed;

    /// Waits until all policies use their hops.
    fn wait_until_well(&self, after: &str);

    /// Waits until the gateway has detected the effect of the cause.
    fn wait_until_noticed(&self, row: &Row<Self>);

    fn check_cells(&self, row: &Row<Self>);

    fn run(mut self, rows: &[Row<Self>]) {
        self.wait_until_well("the start");
        let load = Load::start(&self.testbed().network.tv).expect("load");
        for row in rows {
            println!("{}: {:?}", row.cause, row.effect);
            self.testbed().network.tap.reset();
            (row.apply)(&mut self);
            self.wait_until_noticed(row);
            // No request was sent that may leave directly: the transition itself leaks nothing.
            load.run_for(60).expect("load");
            let counts = self.testbed().network.tap.counts();
            assert_eq!(counts.leaked.total(), 0, "{}, while it came: {counts}", row.cause);
            self.check_cells(row);
            self.testbed().network.tap.reset();
            (row.undo)(&mut self);
            self.wait_until_well(row.cause);
        }
        let sent = load.stop();
        assert!(sent.v4 > 500 && sent.v6 > 500, "{sent:?}");
    }
}

/// Stores the three policies over these hops.
pub(super) fn store_policies(testbed: &Testbed, hops: &[(&str, &str)]) {
    for (n, fail_policy) in (20u32..).zip(FailPolicy::ALL) {
        let to = FAMILIES.map(|ipv6| fail_policy.destination(ipv6).to_string()).join(",");
        let more = json!({"fail_policy": fail_policy.name(), "priority": n});
        testbed.store_policy(&path(fail_policy.name(), ("destination", &to), hops, more)).expect("policy");
    }
}

/// Waits until the gateway reports the expected states of the policies without the hop, and the kernel has the plan.
pub(super) fn wait_until_gone(testbed: &Testbed, degraded: bool, cause: &str) {
    let expected = ["blocked", if degraded { "degraded" } else { "blocked" }, "fallback"];
    wait_ok(SOON, &format!("the policies to notice: {cause}"), || {
        let policies = testbed.api().get("/routing/policies")?;
        let status = |name: &str| {
            let mut all = policies.as_array().into_iter().flatten();
            all.find(|policy| policy["name"] == name).map(|policy| policy["status"].clone())
        };
        let seen = FailPolicy::ALL.map(|policy| status(policy.name()).unwrap_or_default());
        anyhow::ensure!(seen == expected, "{seen:?}");
        Ok(())
    })
    .expect("noticed");
    carry_out(testbed);
}

/// Waits until the kernel has the plan. The API reports a state earlier than the kernel; the response of this call
/// comes afterwards.
pub(super) fn carry_out(testbed: &Testbed) {
    testbed.api().act("/enforce/reconcile").expect("reconciled");
}

/// Waits for the last packets of a direct connection, so that they do not count for the next cell.
pub(super) fn let_it_end(testbed: &Testbed) {
    let leaked = || testbed.network.tap.counts().leaked.total();
    let mut last = (leaked(), Instant::now());
    wait_for(SOON, "a connection to end", || {
        let now = leaked();
        if now != last.0 {
            last = (now, Instant::now());
        }
        last.1.elapsed() > Duration::from_millis(300)
    })
    .expect("ended");
}

/// Asserts that packets of the cell's family left directly if permitted, and none of the other family.
pub(super) fn assert_leaks(counts: &Counts, ipv6: bool, direct: bool, cell: &str) {
    let (leaked, other) = match ipv6 {
        true => (counts.leaked.v6, counts.leaked.v4),
        false => (counts.leaked.v4, counts.leaked.v6),
    };
    assert_eq!((leaked > 0, other, counts.missed), (direct, 0, 0), "{cell}: {counts}");
}
