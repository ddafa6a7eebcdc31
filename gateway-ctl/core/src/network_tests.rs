//! Network tests: expectations that are evaluated by the policies.
//!
//! Nothing is sent. Allowed destinations are evaluated with all tunnels working; forbidden ones with all of them and
//! with none. So a test depends on the policies and not on the present state.
//!
//! A gating test that used the present state of the tunnels would refuse the apply that repairs an outage. A test that
//! fails refuses the apply inside the transaction that would freeze the policies.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_model::id::MacAddr;
use gateway_model::kinds::device_group::DeviceGroup;
use gateway_model::kinds::test_definition::{TestDefinition, TestMode, TestProtocol};
use gateway_model::validated::{Endpoint, Host};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::Input;
use crate::evaluate::{Decision, FamilyVerdict, Protocol, Request, verdicts};
use crate::matrix::{Scenario, up_and_down};

/// Maximum number of reported failures of one definition.
pub(crate) const REPORTED: usize = 20;

/// Result of a test definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TestResult {
    pub id: String,
    pub name: String,
    pub mode: TestMode,
    pub gate: bool,
    /// Null if the test was not run; `note` has the reason.
    pub pass: Option<bool>,
    pub at: Timestamp,
    pub failures: Vec<String>,
    pub note: Option<String>,
}

/// Runs definitions of the mode plan. Those of the mode live come back as not run.
pub fn run(input: &Input<'_>, definitions: &[&TestDefinition]) -> Vec<TestResult> {
    if definitions.is_empty() {
        return Vec::new();
    }
    let worlds = up_and_down(input);
    definitions.iter().map(|definition| result(input, &worlds, definition)).collect()
}

/// The gating definitions that fail, so that the policies may not be applied.
pub fn failing_gates(input: &Input<'_>) -> Vec<TestResult> {
    let gates: Vec<&TestDefinition> =
        input.state.test_definitions.iter().filter(|test| test.is_gate()).collect();
    run(input, &gates).into_iter().filter(|result| result.pass == Some(false)).collect()
}

fn result(input: &Input<'_>, worlds: &[Scenario; 2], definition: &TestDefinition) -> TestResult {
    let mut result = TestResult {
        id: definition.meta.id.to_string(),
        name: definition.name.clone(),
        mode: definition.mode,
        gate: definition.gate,
        pass: None,
        at: input.now,
        failures: Vec::new(),
        note: None,
    };
    if definition.mode == TestMode::Live {
        result.note = Some("It is tried with packets, and not by the plan.".to_owned());
        return result;
    }
    if definition.dns.is_some() {
        result.note =
            Some("What it expects of DNS was not tested: names are asked for in live tests only.".to_owned());
    }
    let sources = sources(input, definition);
    if sources.is_empty() {
        result.note = Some("There is no device that it would apply to.".to_owned());
    }
    let [up, down] = worlds;
    for source in &sources {
        let mut test = Test { input, definition, source, failures: &mut result.failures };
        test.accept(up);
        test.egress(up);
        test.deny(up, "while all tunnels work");
        test.deny(down, "while no tunnel works");
    }
    let more = result.failures.len().saturating_sub(REPORTED);
    if more > 0 {
        result.failures.truncate(REPORTED);
        result.failures.push(format!("and {more} more"));
    }
    result.pass = Some(result.failures.is_empty());
    result
}

/// Source of a test: a display name and the source fields of a request.
struct Source {
    label: String,
    request: Request,
}

fn sources(input: &Input<'_>, definition: &TestDefinition) -> Vec<Source> {
    let state = input.state;
    let (source, protocol) = (&definition.source, protocol(definition.proto));
    let device = |id| {
        let label = state.devices.get(id).map_or_else(|| id.to_string(), |device| device.name.clone());
        Source { label, request: Request { device_id: Some(id), protocol, ..Request::default() } }
    };
    let members = state.referred::<DeviceGroup>(&source.group).map(|group| group.members.clone());
    let mut sources: Vec<Source> =
        source.device.into_iter().chain(members.unwrap_or_default()).map(device).collect();
    if let Some(cidr) = source.cidr {
        // Of no device: the address of all zeroes belongs to none.
        let net = cidr.net();
        let host: Option<IpAddr> = net.hosts().next();
        let request = Request { mac: Some(MacAddr([0; 6])), source: host, protocol, ..Request::default() };
        sources.push(Source { label: net.to_string(), request });
    }
    sources
}

fn protocol(protocol: TestProtocol) -> Option<Protocol> {
    Some(match protocol {
        TestProtocol::Tcp => Protocol::Tcp,
        TestProtocol::Udp => Protocol::Udp,
    })
}

/// One definition from one source.
struct Test<'a> {
    input: &'a Input<'a>,
    definition: &'a TestDefinition,
    source: &'a Source,
    failures: &'a mut Vec<String>,
}

impl Test<'_> {
    fn accept(&mut self, world: &Scenario) {
        for endpoint in &self.definition.accept {
            for verdict in self.ask(world, Some(endpoint)) {
                if verdict.decision == Decision::Block {
                    let label = &self.source.label;
                    self.failures
                        .push(format!("{label} must reach {endpoint}, but is blocked: {}", verdict.reason));
                }
            }
        }
    }

    fn deny(&mut self, world: &Scenario, when: &str) {
        for endpoint in &self.definition.deny {
            for verdict in self.ask(world, Some(endpoint)) {
                if verdict.decision != Decision::Block {
                    let (label, via) = (&self.source.label, verdict.via.as_deref().unwrap_or("?"));
                    let text = format!(
                        "{label} must not reach {endpoint}, but {when} leaves by {via}: {}",
                        verdict.reason
                    );
                    self.failures.push(text);
                }
            }
        }
    }

    fn egress(&mut self, world: &Scenario) {
        let Some(expected) = &self.definition.expect_egress else { return };
        let expected: BTreeSet<&str> = expected.split(',').map(str::trim).collect();
        let mut asked: Vec<(String, FamilyVerdict)> = Vec::new();
        if self.definition.accept.is_empty() {
            asked.extend(
                self.ask(world, None).into_iter().map(|verdict| (verdict.destination.clone(), verdict)),
            );
        }
        for endpoint in &self.definition.accept {
            asked.extend(
                self.ask(world, Some(endpoint)).into_iter().map(|verdict| (endpoint.to_string(), verdict)),
            );
        }
        // A blocked address family does not leave by another egress. If both are blocked there is no egress.
        let leaves = asked.iter().any(|(_, verdict)| verdict.decision != Decision::Block);
        for (destination, verdict) in asked {
            if leaves && verdict.decision == Decision::Block {
                continue;
            }
            let have = egresses(&verdict);
            if !have.iter().any(|egresses| egresses.iter().all(|names| expected.contains(names.as_str()))) {
                let (label, all) =
                    (&self.source.label, expected.iter().copied().collect::<Vec<_>>().join(", "));
                let have = have.first().map(|egresses| egresses.join(", ")).unwrap_or_default();
                let text = format!(
                    "{label} must leave by {all} for {destination}, but leaves by {have}: {}",
                    verdict.reason
                );
                self.failures.push(text);
            }
        }
    }

    /// Returns the verdicts for packets to the destination, or to the internet.
    fn ask(&mut self, world: &Scenario, endpoint: Option<&Endpoint>) -> Vec<FamilyVerdict> {
        let mut request = self.source.request.clone();
        match endpoint.map(|endpoint| (&endpoint.host, endpoint)) {
            None => {}
            Some((Host::Address(address), _))
                if request.source.is_some_and(|from| from.is_ipv6() != address.is_ipv6()) =>
            {
                // Such packets do not exist.
                return Vec::new();
            }
            Some((Host::Address(_), endpoint)) => request.destination = Some(endpoint.to_string()),
            Some((Host::Name(name), _)) => {
                self.failures.push(format!("{name} cannot be judged: names need the resolver"));
                return Vec::new();
            }
        }
        let input = Input { facts: &world.facts, ..*self.input };
        match verdicts(&input, &world.compiled, &request) {
            Ok(verdicts) => verdicts,
            Err(refusal) => {
                self.failures.push(format!("{}: {refusal}", self.source.label));
                Vec::new()
            }
        }
    }
}

/// Returns the names of a verdict, each with all of its egresses.
fn egresses(verdict: &FamilyVerdict) -> Vec<Vec<String>> {
    let name = |text: &str| vec![vec![text.to_owned()]];
    match verdict.decision {
        _ if verdict.local => name("local"),
        Decision::Block => name("block"),
        Decision::Tunnel => vec![verdict.ways.clone()],
        Decision::Direct if verdict.ways.is_empty() => name("direct"),
        Decision::Direct => vec![verdict.ways.clone(), vec!["direct".to_owned()]],
    }
}
