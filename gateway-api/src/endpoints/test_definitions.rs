//! Network tests: their definitions, and running them against the policies.

use gateway_core::network_tests::{self, TestResult};
use gateway_model::capability::Capability;
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
use crate::table::{Collection, Ops, Table};

pub(super) fn rows(t: &mut Table) {
    t.collection::<TestDefinition>(Collection {
        path: "/test-definitions",
        item: "/test-definitions/{id}",
        actions: ["create_test_definition", "replace_test_definition", "delete_test_definition"],
        ops: Ops::ALL,
        live: None,
    });
    t.question("/test-definitions/run", "run_test_definitions", run)
        .summary("Evaluate test definitions by the policies")
        .doc("Sends no packet: the kernel's decision function evaluates each test. Tests that expect a connection assume that all tunnels are up; tests that expect none are also evaluated with all tunnels down.")
        .access(Access::Diagnose)
        .answers(&[Code::NotFound, Code::NotSupported]);
}

/// Tests to run, and the policies to test.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Run {
    /// Ids of the tests; null: all enabled tests.
    ids: Option<Vec<Id>>,
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
    let report = blocking(move || {
        if policies == Policies::Stored {
            world.state = super::routing::views::with_stored_policies(&world);
        }
        let tests: Vec<&TestDefinition> = tests.iter().map(AsRef::as_ref).collect();
        let results = network_tests::run(&world.input(), &tests);
        Report { pass: results.iter().all(|result| result.pass != Some(false)), policies, results }
    })
    .await?;
    let mut answer = WithHeaders::new(report);
    answer.total = Some(answer.data.results.len());
    Ok(answer)
}

fn chosen(state: &State, ids: Option<&[Id]>) -> Result<Vec<std::sync::Arc<TestDefinition>>, ApiError> {
    let Some(ids) = ids else {
        return Ok(state.test_definitions.arcs().filter(|test| test.enabled).cloned().collect());
    };
    let mut tests = Vec::new();
    for id in ids {
        let test = state.test_definitions.get(*id);
        let test = test.ok_or_else(|| super::by_id::not_found::<TestDefinition>(&id.to_string()))?;
        if test.mode == TestMode::Live {
            let needs = format!("{} ({:?} is one)", Capability::LiveTests.needs(), test.name);
            return Err(ApiError::not_supported(&needs));
        }
        tests.push(test.clone());
    }
    Ok(tests)
}
