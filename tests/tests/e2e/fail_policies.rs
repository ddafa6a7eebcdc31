//! The failure policies side by side over one hop: what they match, how a cause is run through, and how a cell is judged.
//!
//! One site has the three policies at once, told apart by what they are asked for; another host is closed to the same hop
//! and keeps it under load throughout, so that the moment of the change is watched as well.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use gateway_tests::services::{HTTP, HTTP_OTHER};
use gateway_tests::tap::Counts;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{other_server, server};
use gateway_tests::traffic::Load;
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::json;

use crate::e2e::paths::path;
use crate::e2e::{FAMILIES, SOON};

/// How long a blocked question waits: far longer than a way that works would need.
pub const TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailPolicy {
    Closed,
    Degraded,
    Open,
}

impl FailPolicy {
    pub const ALL: [FailPolicy; 3] = [Self::Closed, Self::Degraded, Self::Open];

    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "fail-closed",
            Self::Degraded => "fail-degraded",
            Self::Open => "fail-open",
        }
    }

    /// What its policy matches; TCP and UDP are answered there.
    pub fn destination(self, ipv6: bool) -> SocketAddr {
        match self {
            Self::Closed => (server(ipv6), HTTP).into(),
            Self::Degraded => (other_server(ipv6), HTTP).into(),
            Self::Open => (server(ipv6), HTTP_OTHER).into(),
        }
    }
}

/// A cause, what it does to the hop, and how it comes and goes.
pub struct Row<S: Site> {
    pub cause: &'static str,
    pub effect: S::Effect,
    pub apply: fn(&mut S),
    pub undo: fn(&mut S),
}

/// A network with one kind of hop and the three policies over it.
pub trait Site: Sized {
    type Effect: Copy + Debug;

    fn testbed(&self) -> &Testbed;

    /// All policies lead through their hops.
    fn wait_until_well(&self, after: &str);

    /// The gateway has noticed what the cause did.
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
            // Nobody has asked what may go out directly: the change itself leaks nothing.
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
pub fn store_policies(testbed: &Testbed, hops: &[(&str, &str)]) {
    for (n, fail_policy) in (20u32..).zip(FailPolicy::ALL) {
        let to = FAMILIES.map(|ipv6| fail_policy.destination(ipv6).to_string()).join(",");
        let more = json!({"fail_policy": fail_policy.name(), "priority": n});
        testbed.store_policy(&path(fail_policy.name(), ("destination", &to), hops, more)).expect("policy");
    }
}

/// The gateway itself says that the policies are where they should be without the hop, and the kernel has the plan.
pub fn wait_until_gone(testbed: &Testbed, degraded: bool, cause: &str) {
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

/// The gateway says what it sees as soon as it knows; an answer to this comes when the kernel has the plan.
pub fn carry_out(testbed: &Testbed) {
    testbed.api().act("/enforce/reconcile").expect("reconciled");
}

/// Waits for the last packets of a connection that went out directly: they are not the next cell's.
pub fn let_it_end(testbed: &Testbed) {
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

/// Packets of the cell's family left directly if they may, of the other family none.
pub fn assert_leaks(counts: &Counts, ipv6: bool, direct: bool, cell: &str) {
    let (leaked, other) = match ipv6 {
        true => (counts.leaked.v6, counts.leaked.v4),
        false => (counts.leaked.v4, counts.leaked.v6),
    };
    assert_eq!((leaked > 0, other, counts.missed), (direct, 0, 0), "{cell}: {counts}");
}
