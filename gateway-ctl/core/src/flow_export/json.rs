//! Record as one flat object, for collectors that take JSON.

use serde_json::{Map, Value, json};

use crate::flow_log::{FlowRecord, Traffic};

/// Returns the fields that the record has.
pub(super) fn fields(record: &FlowRecord) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    };
    put("flow_id", Some(json!(record.flow_id)));
    put("part", Some(json!(record.part)));
    put("started_at", Some(json!(record.flow_id.start())));
    put("last_at", record.last_at.map(|time| json!(time)));
    put("ended_at", record.ended_at.map(|time| json!(time)));
    put("end", record.end.map(|end| json!(end)));
    if let Some(client) = &record.client {
        put("device_id", client.device.map(|id| json!(id)));
        put("trust_class", client.trust_class.as_ref().map(|name| json!(name)));
        put("mac", Some(json!(client.mac)));
        put("interface", client.interface_name.as_ref().map(|name| json!(name)));
        put("vlan", (client.vlan != 0).then(|| json!(client.vlan)));
        put("source", Some(json!(client.address)));
        put("source_port", Some(json!(client.port)));
    }
    put("destination", Some(json!(record.destination)));
    put("destination_port", Some(json!(record.destination_port)));
    put("protocol", Some(json!(record.protocol)));
    put("names", (!record.names.is_empty()).then(|| json!(record.names)));
    put("server_name", record.server_name.as_ref().map(|name| json!(name)));
    if let Some(path) = record.path() {
        put("decision", Some(json!(path.decision)));
        put("reason", path.reason_text().map(|text| json!(text)));
        put("policy_id", path.policy.map(|id| json!(id)));
        put("hops", (!path.hops.is_empty()).then(|| json!(path.hops)));
        put("egress", path.egress.as_ref().map(|name| json!(name)));
        put("generation", Some(json!(path.generation)));
        put("path_changes", Some(json!(record.path_changes)));
    }
    for (direction, traffic) in [("sent", record.sent), ("received", record.received)] {
        if let Some(Traffic { packets, bytes }) = traffic {
            object.insert(format!("{direction}_packets"), json!(packets));
            object.insert(format!("{direction}_bytes"), json!(bytes));
        }
    }
    object
}

/// Returns the transport by the name that collectors know, or its number.
pub(super) fn transport(protocol: u8) -> String {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    match protocol {
        TCP => "tcp".to_owned(),
        UDP => "udp".to_owned(),
        number => number.to_string(),
    }
}
