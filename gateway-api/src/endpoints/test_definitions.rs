//! Network tests: their definitions, and running them: by the plan, or with packets.

use std::sync::Arc;

use gateway_core::live_tests::LiveTests;
use gateway_core::network_tests::{self, TestResult};
use gateway_ctl::reconcile::Reason;
use gateway_model::kinds::TestDefinition;
use gateway_model::kinds::test_definition::TestMode;
use gateway_model::{Id, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Collection, Effect, Ops, Table};

use super::privacy::leak_check::is_same_plan;

pub(super) fn rows(t: &mut Table) {
    t.collection::<TestDefinition>(Collection {
        path: "/test-definitions",
        item: "/test-definitions/{id}",
        actions: ["create_test_definition", "replace_test_definition", "delete_test_definition"],
        ops: Ops::ALL,
        live: None,
    });
    t.action("/test-definitions/run", "run_test_definitions", Effect::Acts(AUDIT), run)
        .summary("Run test definitions: by the policies, or with packets")
        .doc(DOC)
        .access(Access::Diagnose)
        .answers(&[Code::NotFound]);
}

const AUDIT: Audit = Audit { action: "run_test_definitions", resource_type: "test_definition" };

const DOC: &str = "Tests of the mode `plan` send no packet: the kernel's decision function evaluates them. Those that \
    expect a connection assume that all tunnels are up; those that expect none are also evaluated with all tunnels down. \
    Tests of the mode `live` are tried under the policies that are applied: one packet for each destination enters the LAN \
    interface with the addresses of the source, and is observed at the interfaces behind the egress guard. It has a hop \
    limit of 2, so the next router discards it: the remote end sees nothing, and whether it would answer is not tested. The \
    source asks the gateway for names; at most four IPv4 addresses of a name are tried. At most 2 048 packets are sent.";

/// Tests to run, and the policies to test.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Run {
    /// Ids of the tests; null: all enabled tests.
    ids: Option<Vec<Id>>,
    /// For tests of the mode plan.
    policies: Policies,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Policies {
    /// Stored policies, as they would steer traffic after an apply. The default.
    #[default]
    Stored,
    /// Applied policies, which steer traffic now.
    Applied,
}

/// Results of the tests.
#[derive(Debug, Serialize, JsonSchema)]
struct Report {
    /// No test failed.
    pass: bool,
    policies: Policies,
    results: Vec<TestResult>,
}

async fn run(cx: Cx, request: Req<Run>) -> Result<WithHeaders<Report>, ApiError> {
    let open = cx.open()?;
    let mut world = open.world();
    let tests = chosen(&world.state, request.input.ids.as_deref())?;
    let policies = request.input.policies;
    let (live, planned): (Vec<_>, Vec<_>) =
        tests.iter().cloned().partition(|test| test.mode == TestMode::Live);
    let mut results = blocking(move || {
        if policies == Policies::Stored {
            world.state = super::routing::views::with_stored_policies(&world);
        }
        let tests: Vec<&TestDefinition> = planned.iter().map(AsRef::as_ref).collect();
        network_tests::run(&world.input(), &tests)
    })
    .await?;
    if !live.is_empty() {
        results.extend(try_out(&cx, &live).await?);
    }
    let place = |result: &TestResult| tests.iter().position(|test| test.meta.id.to_string() == result.id);
    results.sort_by_key(place);
    let report = Report { pass: results.iter().all(|result| result.pass != Some(false)), policies, results };
    let mut answer = WithHeaders::new(report);
    answer.total = Some(answer.data.results.len());
    Ok(answer)
}

/// Sends the packets of live tests. If the plan changes meanwhile, it is not known by which plan they were treated.
async fn try_out(cx: &Cx, tests: &[Arc<TestDefinition>]) -> Result<Vec<TestResult>, ApiError> {
    let open = cx.open()?;
    // Changes that were stored just now are in force first.
    let _ = open.enforcement.reconcile(Reason::Manual).await;
    let before = open.world();
    let random = Id::mint(open.now(), 0).as_bytes()[8..].try_into().map_or(0, u64::from_be_bytes);
    let mut live = LiveTests::new(&before.input(), tests, random);
    loop {
        let world = before.clone();
        let (moved, plan) = blocking(move || {
            let plan = live.next(&world.input(), world.live());
            (live, plan)
        })
        .await?;
        live = moved;
        let Some(plan) = plan.map(Arc::new) else { break };
        let run = open.enforcement.send_probes(plan.clone()).await;
        live.take(&plan, &run);
    }
    let mut results = live.results(&before.input(), before.live());
    if !is_same_plan(&before, &open.world()) {
        for result in &mut results {
            result.pass = None;
            result.failures.clear();
            result.note =
                Some("The plan changed while the packets were sent. Run the test again.".to_owned());
        }
    }
    Ok(results)
}

fn chosen(state: &State, ids: Option<&[Id]>) -> Result<Vec<Arc<TestDefinition>>, ApiError> {
    let Some(ids) = ids else {
        return Ok(state.test_definitions.arcs().filter(|test| test.enabled).cloned().collect());
    };
    let mut tests = Vec::new();
    for id in ids {
        let test = state.test_definitions.get(*id);
        let test = test.ok_or_else(|| super::by_id::not_found::<TestDefinition>(&id.to_string()))?;
        tests.push(test.clone());
    }
    Ok(tests)
}
