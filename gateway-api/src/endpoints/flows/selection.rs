//! Selection of flows by query parameters.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_common::verdict::Reason;
use gateway_core::countries::CountryCode;
use gateway_core::flow_log::{
    ClientCondition, CountryCondition, Decision, DomainCondition, FlowFilter, FlowId,
};
use gateway_ctl::services::countries::CountryDatabase;
use gateway_model::Id;
use schemars::JsonSchema;
use serde::Deserialize;

use super::protocol;
use crate::error::ApiError;
use crate::query::parameters::Instant;

/// Selection of flows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct FlowSelection {
    /// Only this flow, by its flow_id.
    flow_id: Option<FlowId>,
    /// Only this client: its address, its MAC address, or the id of its device.
    client: Option<String>,
    /// Only this device, by id.
    device: Option<Id>,
    /// Only flows to this address.
    destination: Option<IpAddr>,
    /// Only flows to this port.
    port: Option<u16>,
    /// Only this protocol: tcp, udp, icmp, icmpv6, or its number.
    protocol: Option<String>,
    /// Only destinations with this text in a name by which the client asked; =example.com for that name and all below it.
    domain: Option<String>,
    /// Only destinations in this country: its code of two letters, by the database of `countries.database` as it is now.
    country: Option<CountryCode>,
    /// Only flows that took this policy or exception at a time, by id.
    policy: Option<Id>,
    /// Only flows that left by this tunnel, uplink or proxy at a time, or by auto.
    egress: Option<String>,
    /// Only flows with this last decision.
    verdict: Option<Decision>,
    /// Only flows with this reason of the last decision, such as no_policy.
    reason: Option<String>,
    /// Only flows with at least so many bytes in both directions.
    min_bytes: Option<u64>,
    /// Only flows that ended at this time or later (RFC 3339), or go on.
    since: Option<Instant>,
    /// Only flows that began before this time (RFC 3339).
    until: Option<Instant>,
}

impl FlowSelection {
    pub(super) fn filter(self, countries: &CountryDatabase) -> Result<FlowFilter, ApiError> {
        let client = self.client.as_deref().map(client).transpose()?;
        let device = self.device.map(ClientCondition::Device);
        if client.is_some() && device.is_some() {
            return Err(ApiError::invalid_parameter("device", "Give client or device, not both."));
        }
        Ok(FlowFilter {
            flow_id: self.flow_id,
            client: client.or(device),
            destination: self.destination,
            port: self.port,
            protocol: self.protocol.as_deref().map(protocol::number).transpose()?,
            domain: self.domain.as_deref().map(domain),
            country: self
                .country
                .map(|code| CountryCondition { code, countries: Arc::new(countries.clone()) }),
            policy: self.policy,
            egress: self.egress,
            decision: self.verdict,
            reason: self.reason.as_deref().map(reason).transpose()?,
            min_bytes: self.min_bytes,
            since: self.since.map(|since| since.0),
            begun_since: None,
            until: self.until.map(|until| until.0),
        })
    }
}

fn client(text: &str) -> Result<ClientCondition, ApiError> {
    let address = text.parse().ok().map(ClientCondition::Address);
    let device = || text.parse().ok().map(ClientCondition::Device);
    let mac = || text.parse().ok().map(ClientCondition::Mac);
    let message = "client is an address, a MAC address, or the id of a device.";
    address.or_else(device).or_else(mac).ok_or_else(|| ApiError::invalid_parameter("client", message))
}

fn domain(text: &str) -> DomainCondition {
    let text = text.to_ascii_lowercase();
    match text.strip_prefix('=') {
        None => DomainCondition::Contains(text),
        Some(domain) => DomainCondition::Within(domain.trim_matches('.').to_owned()),
    }
}

fn reason(text: &str) -> Result<u8, ApiError> {
    let all = (0..=u8::MAX).map_while(Reason::from_wire);
    let found = all.into_iter().find(|reason| reason.as_str() == text).map(|reason| reason as u8);
    found.ok_or_else(|| {
        ApiError::invalid_parameter("reason", "reason is that of a verdict, such as no_policy.")
    })
}
