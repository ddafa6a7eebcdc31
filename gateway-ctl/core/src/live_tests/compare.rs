//! Comparison of the fates of packets with what a definition expects.

use std::collections::BTreeSet;

use gateway_model::kinds::test_definition::{DnsExpectation, TestDefinition};
use gateway_model::validated::{Endpoint, Host as Destination};

use super::fate::{Fate, is_blocked, shown};
use super::run::{LiveTests, canonical};
use crate::compile::{Compiled, Input, Leg};
use crate::leak_check::Wanted;
use crate::network_tests::{REPORTED, TestResult};

impl LiveTests {
    /// Returns the result of each definition.
    pub fn results(&self, input: &Input<'_>, compiled: &Compiled) -> Vec<TestResult> {
        let definitions = self.definitions.iter().enumerate();
        definitions.map(|(index, definition)| result(self, input, compiled, index, definition)).collect()
    }
}

fn result(
    tests: &LiveTests,
    input: &Input<'_>,
    compiled: &Compiled,
    index: usize,
    definition: &TestDefinition,
) -> TestResult {
    let mut comparison =
        Comparison { tests, input, compiled, definition, failures: Vec::new(), unknown: BTreeSet::new() };
    let mut sources = 0;
    for (source, _) in tests.sources.iter().enumerate().filter(|(_, source)| source.definition == index) {
        sources += 1;
        comparison.names(source);
        comparison.accept(source);
        comparison.deny(source);
    }
    let Comparison { mut failures, unknown, .. } = comparison;
    let more = failures.len().saturating_sub(REPORTED);
    if more > 0 {
        failures.truncate(REPORTED);
        failures.push(format!("and {more} more"));
    }
    let note = match (sources, unknown.len()) {
        (0, _) => Some("There is no device or LAN interface by which packets could enter.".to_owned()),
        (_, 0) => None,
        (_, number) => {
            let listed: Vec<String> = unknown.into_iter().take(REPORTED).collect();
            let rest =
                if number > REPORTED { format!("; and {} more", number - REPORTED) } else { String::new() };
            Some(format!("Not known: {}{rest}.", listed.join("; ")))
        }
    };
    let pass = match (failures.is_empty(), &note) {
        (false, _) => Some(false),
        (true, None) => Some(true),
        (true, Some(_)) => None,
    };
    TestResult {
        id: definition.meta.id.to_string(),
        name: definition.name.clone(),
        mode: definition.mode,
        gate: definition.is_gate(),
        pass,
        at: input.now,
        failures,
        note,
    }
}

struct Comparison<'a> {
    tests: &'a LiveTests,
    input: &'a Input<'a>,
    compiled: &'a Compiled,
    definition: &'a TestDefinition,
    failures: Vec<String>,
    /// Clauses about packets of which it is not known what became of them.
    unknown: BTreeSet<String>,
}

impl Comparison<'_> {
    fn label(&self, source: usize) -> &str {
        &self.tests.sources[source].label
    }

    fn fate(&self, source: usize, wanted: &Wanted) -> Fate {
        let fate = self.tests.fates.get(&(source, wanted.clone())).cloned();
        fate.unwrap_or_else(|| Fate::Unknown("the packet was one too many, so it was not sent".to_owned()))
    }

    fn names(&mut self, source: usize) {
        let Some(dns) = &self.definition.dns else { return };
        let (name, label) = (canonical(&dns.name), self.label(source).to_owned());
        match self.fate(source, &Wanted::Name(name.clone())) {
            Fate::Answered(answer) => {
                let resolves = !is_blocked(&answer) && answer.rcode == 0 && !answer.addresses.is_empty();
                match dns.expect {
                    DnsExpectation::Resolve if !resolves => {
                        self.failures
                            .push(format!("{label} must resolve {name}, but got {}", shown(&answer)));
                    }
                    DnsExpectation::Blocked if !is_blocked(&answer) => {
                        self.failures
                            .push(format!("{label} must not resolve {name}, but got {}", shown(&answer)));
                    }
                    DnsExpectation::Resolve | DnsExpectation::Blocked => {}
                }
            }
            Fate::Stopped(reason) => {
                self.failures.push(format!("{label} cannot ask the gateway for {name}: {reason}"));
            }
            other => drop(self.unknown.insert(format!("{label} asks for {name}: {}", other.clause()))),
        }
    }

    fn accept(&mut self, source: usize) {
        let label = self.label(source).to_owned();
        for endpoint in &self.definition.accept {
            for (to, fate) in self.fates(source, endpoint) {
                match &fate {
                    Fate::Stopped(reason) => {
                        self.failures
                            .push(format!("{label} must reach {to}, but no packet leaves: {reason}"));
                    }
                    Fate::Unknown(_) | Fate::Answered(_) => {
                        self.unknown.insert(format!("{label} to {to}: {}", fate.clause()));
                    }
                    Fate::Left(_) | Fate::Proxied(_) | Fate::Local => self.egress(source, &to, &fate),
                }
            }
        }
        if self.definition.accept.is_empty() && self.definition.expect_egress.is_some() {
            let wanted = self.tests.to_internet(self.compiled, source);
            let fate = self.fate(source, &wanted);
            match &fate {
                Fate::Unknown(_) | Fate::Answered(_) => {
                    self.unknown.insert(format!("{label} to the internet: {}", fate.clause()));
                }
                _ => self.egress(source, "the internet", &fate),
            }
        }
    }

    fn deny(&mut self, source: usize) {
        let label = self.label(source).to_owned();
        for endpoint in &self.definition.deny {
            for (to, fate) in self.fates(source, endpoint) {
                match &fate {
                    Fate::Stopped(_) => {}
                    Fate::Unknown(_) | Fate::Answered(_) => {
                        self.unknown.insert(format!("{label} to {to}: {}", fate.clause()));
                    }
                    Fate::Left(_) | Fate::Proxied(_) | Fate::Local => {
                        self.failures.push(format!("{label} must not reach {to}, but {}", fate.clause()));
                    }
                }
            }
        }
    }

    /// Fates of the packets to a destination, with its display name. A name that is blocked stops all packets to it.
    fn fates(&self, source: usize, endpoint: &Endpoint) -> Vec<(String, Fate)> {
        let packets = self.tests.packets(source, endpoint);
        let fates = packets.iter().map(|wanted| (endpoint.to_string(), self.fate(source, wanted)));
        match &endpoint.host {
            Destination::Name(name) if packets.is_empty() => {
                let fate = match self.fate(source, &Wanted::Name(canonical(name))) {
                    Fate::Answered(answer) => Fate::Stopped(format!("its name gets {}", shown(&answer))),
                    other => other,
                };
                vec![(endpoint.to_string(), fate)]
            }
            _ => fates.collect(),
        }
    }

    fn egress(&mut self, source: usize, to: &str, fate: &Fate) {
        let Some(expected) = &self.definition.expect_egress else { return };
        let expected: BTreeSet<&str> = expected.split(',').map(str::trim).collect();
        let names = self.egresses(fate);
        if !names.iter().any(|name| expected.contains(name.as_str())) {
            let all = expected.into_iter().collect::<Vec<_>>().join(", ");
            let text = format!("{} must leave by {all} for {to}, but {}", self.label(source), fate.clause());
            self.failures.push(text);
        }
    }

    /// Names of the egress by which a packet left.
    fn egresses(&self, fate: &Fate) -> Vec<String> {
        match fate {
            Fate::Left(interfaces) => {
                let legs = self.compiled.legs.by_number.values();
                let legs: Vec<&Leg> = legs.filter(|leg| interfaces.contains(&leg.interface)).collect();
                let direct = legs.iter().all(|leg| leg.is_uplink()).then(|| "direct".to_owned());
                legs.iter().map(|leg| leg.name(self.input.state).to_owned()).chain(direct).collect()
            }
            Fate::Proxied(proxy) => vec![proxy.clone()],
            Fate::Local => vec!["local".to_owned()],
            Fate::Stopped(_) => vec!["block".to_owned()],
            Fate::Answered(_) | Fate::Unknown(_) => Vec::new(),
        }
    }
}
