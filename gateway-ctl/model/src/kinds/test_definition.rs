//! Network tests: allowed and forbidden destinations of a source, and the expected egress.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::device_group::DeviceGroup;
use crate::edit::EditError;
use crate::id::Id;
use crate::id_or_name::{check_reference, keep_name, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{Cidr, Endpoint, Host, check_name, is_host_name, text_enum};

text_enum! {
    #[derive(Default)]
    pub enum TestProtocol {
        #[default]
        Tcp = "tcp",
        Udp = "udp",
    }
}

text_enum! {
    #[derive(Default)]
    pub enum TestMode {
        /// Evaluated by the policies, nothing is sent.
        #[default]
        Plan = "plan",
        /// Tried with packets that enter the LAN interface as if the source had sent them. It gates nothing.
        Live = "live",
    }
}

text_enum! {
    pub enum DnsExpectation {
        Resolve = "resolve",
        Blocked = "blocked",
    }
}

/// Source of a test; one of the three fields is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TestSource {
    /// Id of a device.
    pub device: Option<Id>,
    /// Id or name of a device group: it must hold for every member.
    pub group: Option<String>,
    /// A network of the LAN.
    pub cidr: Option<Cidr>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestDns {
    pub name: String,
    pub expect: DnsExpectation,
}

/// A test definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TestDefinition {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub enabled: bool,
    pub source: TestSource,
    pub proto: TestProtocol,
    /// Must be reachable while all tunnels work. In the mode live: packets must leave for it now.
    pub accept: Vec<Endpoint>,
    /// Must never be reachable, whether tunnels work or not. In the mode live: no packet may leave for it now.
    pub deny: Vec<Endpoint>,
    /// Expected egress while all tunnels work: the name of a tunnel or uplink, or `direct`; for a pool all names,
    /// separated by commas.
    pub expect_egress: Option<String>,
    /// Answer of the gateway's resolver to the source. Tested in the mode live only.
    pub dns: Option<TestDns>,
    pub mode: TestMode,
    /// As long as it fails, policies are not applied. Without effect in the mode live.
    pub gate: bool,
}

impl Default for TestDefinition {
    fn default() -> TestDefinition {
        TestDefinition {
            meta: Meta::default(),
            name: String::new(),
            enabled: true,
            source: TestSource::default(),
            proto: TestProtocol::Tcp,
            accept: Vec::new(),
            deny: Vec::new(),
            expect_egress: None,
            dns: None,
            mode: TestMode::Plan,
            gate: true,
        }
    }
}

impl TestDefinition {
    /// Reports whether an apply waits for the test.
    pub fn is_gate(&self) -> bool {
        self.enabled && self.gate && self.mode == TestMode::Plan
    }

    fn check_endpoints(&self, path: &str, endpoints: &[Endpoint], problems: &mut Problems) {
        if endpoints.len() > 64 {
            problems.add(code::RANGE, path, "At most 64 destinations.");
        }
        for (index, endpoint) in endpoints.iter().enumerate() {
            let path = format!("{path}[{index}]");
            if self.mode == TestMode::Plan && matches!(endpoint.host, Host::Name(_)) {
                problems.not_supported(&path, "A name as a destination in the mode plan");
            }
            if endpoints[..index].contains(endpoint) {
                problems.add(code::DUPLICATE, path, format!("{endpoint} is given twice."));
            }
        }
    }
}

impl TestSource {
    fn validate(&self, state: &State, problems: &mut Problems) {
        let given = [self.device.is_some(), self.group.is_some(), self.cidr.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            problems.add(code::REQUIRED, "source", "Give one of device, group and cidr.");
        }
        if let Some(id) = self.device.filter(|id| !state.devices.contains(*id)) {
            problems.add(code::UNKNOWN_REFERENCE, "source.device", format!("There is no device {id}."));
        }
        check_reference::<DeviceGroup>("source.group", &self.group, state, problems);
    }
}

impl Resource for TestDefinition {
    const NOUN: &'static str = "test_definition";
    const COLLECTION: &'static str = "test_definitions";
    const REQUIRED: &'static [&'static str] = &["name", "source"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        self.source.validate(state, problems);
        self.check_endpoints("accept", &self.accept, problems);
        self.check_endpoints("deny", &self.deny, problems);
        for (index, endpoint) in self.deny.iter().enumerate() {
            if self.accept.contains(endpoint) {
                let message = format!("{endpoint} is to be accepted and denied.");
                problems.add(code::CONFLICT, format!("deny[{index}]"), message);
            }
        }
        if let Some(egress) = &self.expect_egress
            && (egress.trim().is_empty() || egress.len() > 512)
        {
            problems.add(code::RANGE, "expect_egress", "Expected the name of a tunnel or uplink, or direct.");
        }
        if let Some(dns) = &self.dns {
            if !is_host_name(&dns.name) {
                problems.add(code::FORMAT, "dns.name", "Expected a domain.");
            }
            if self.mode == TestMode::Plan {
                problems.warn("dns", "Names are asked for in the mode live only.");
            }
        }
        let expects_name = self.dns.is_some() && self.mode == TestMode::Live;
        let expects_path = !self.accept.is_empty() || !self.deny.is_empty() || self.expect_egress.is_some();
        if !expects_name && !expects_path {
            problems.warn("", "It expects nothing that can be tested, so it never fails.");
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, false, state)
    }

    fn refs(&self) -> Vec<Ref> {
        let device = self.source.device.map(|id| Ref::new(Device::NOUN, id, "source.device", Hold::Firm));
        let group = reference::<DeviceGroup>("source.group", &self.source.group, Hold::Firm);
        device.into_iter().chain(group).collect()
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }
}
