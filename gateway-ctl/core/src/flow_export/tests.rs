//! Collectors read what the records have.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_model::Id;
use gateway_model::id::MacAddr;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::{Value, json};

use super::ipfix::Stream;
use super::otlp::{Resource, logs, metrics, samples};
use super::syslog;
use crate::flow_log::{Client, Decision, FlowEnd, FlowId, FlowPath, FlowRecord, Traffic};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + millis).expect("a time")
}

fn address(is_ipv6: bool, last: u8) -> IpAddr {
    if is_ipv6 {
        IpAddr::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
    } else {
        IpAddr::from([192, 0, 2, last])
    }
}

prop_compose! {
    fn record()(
        (is_ipv6, has_client, last, port, number) in any::<(bool, bool, u8, u16, u64)>(),
        decision in proptest::sample::select(Decision::ALL),
        end in proptest::option::of(proptest::sample::select(FlowEnd::ALL)),
        (sent, received) in any::<(Option<(u64, u64)>, Option<(u64, u64)>)>(),
        server_name in proptest::option::of("\\PC{0,20}"),
    ) -> FlowRecord {
        let traffic = |counts: Option<(u64, u64)>| counts.map(|(packets, bytes)| Traffic { packets, bytes });
        FlowRecord {
            flow_id: FlowId::new(at(0), &number.to_le_bytes()),
            part: 0,
            written_at: at(9_000),
            client: has_client.then(|| Client {
                mac: MacAddr([2, 0, 0, 0, 0, last]),
                address: address(is_ipv6, last),
                port,
                interface: 7,
                interface_name: Some("lan0".to_owned()),
                vlan: 12,
                device: Some(Id::from_u128(1)),
                trust_class: None,
            }),
            destination: address(is_ipv6, last.wrapping_add(1)),
            destination_port: port,
            protocol: 6,
            names: vec!["www.example.com".to_owned()],
            server_name,
            paths: vec![FlowPath {
                at: at(0),
                generation: 3,
                decision,
                reason: 0,
                policy: None,
                hops: Vec::new(),
                leg: Some(4),
                egress: Some("wg-a".to_owned()),
            }],
            path_changes: 0,
            sent: traffic(sent),
            received: traffic(received),
            last_at: Some(at(8_000)),
            ended_at: end.map(|_| at(8_500)),
            end,
        }
    }
}

/// Fields of a template: the element with its enterprise number, and the length.
type Templates = BTreeMap<u16, Vec<((u16, u32), usize)>>;
type Fields = BTreeMap<(u16, u32), Vec<u8>>;

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Splits off so many bytes.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn take_u16(bytes: &mut &[u8]) -> u16 {
    u16::try_from(number(take(bytes, 2))).expect("two bytes")
}

/// Reads a message as RFC 7011 describes it: learns its templates, and returns its sequence number and records.
fn read(message: &[u8], templates: &mut Templates) -> (u64, Vec<Fields>) {
    let mut rest = message;
    let header = take(&mut rest, 16);
    assert_eq!((number(&header[..2]), number(&header[2..4])), (10, message.len() as u64));
    let mut records = Vec::new();
    while !rest.is_empty() {
        let id = take_u16(&mut rest);
        let length = usize::from(take_u16(&mut rest)) - 4;
        let mut set = take(&mut rest, length);
        while !set.is_empty() {
            if id == 2 {
                let id = take_u16(&mut set);
                let fields = (0..take_u16(&mut set)).map(|_| field(&mut set)).collect();
                templates.insert(id, fields);
            } else {
                let fields = templates[&id]
                    .iter()
                    .map(|(element, length)| (*element, take(&mut set, *length).to_vec()));
                records.push(fields.collect());
            }
        }
    }
    (number(&header[8..12]), records)
}

fn field(set: &mut &[u8]) -> ((u16, u32), usize) {
    let (element, length) = (take_u16(set), usize::from(take_u16(set)));
    let enterprise = if element & 0x8000 == 0 { 0 } else { number(take(set, 4)) };
    ((element & 0x7fff, u32::try_from(enterprise).expect("four bytes")), length)
}

proptest! {
    #[test]
    fn ipfix_messages_have_what_the_records_have(records in proptest::collection::vec(record(), 0..60)) {
        let mut stream = Stream::new(9, Stream::DATAGRAM);
        let mut templates = Templates::new();
        read(&stream.templates(at(0)), &mut templates);
        prop_assert_eq!(templates.len(), 16);
        let mut found: Vec<Fields> = Vec::new();
        for message in stream.messages(&records, at(10_000)) {
            prop_assert!(message.len() <= Stream::DATAGRAM);
            let (sequence, mut some) = read(&message, &mut templates);
            prop_assert_eq!(sequence, found.len() as u64);
            found.append(&mut some);
        }
        prop_assert_eq!(found.len(), records.len());
        for (fields, record) in found.iter().zip(&records) {
            let value = |element: u16, enterprise: u32| fields.get(&(element, enterprise)).map(|bytes| number(bytes));
            prop_assert_eq!(value(148, 0), Some(record.flow_id.raw()));
            prop_assert_eq!(value(11, 0), Some(record.destination_port.into()));
            prop_assert_eq!(value(7, 0), record.client.as_ref().map(|client| client.port.into()));
            prop_assert_eq!(value(1, 0), record.sent.map(|sent| sent.bytes));
            prop_assert_eq!(value(2, 0), record.sent.map(|sent| sent.packets));
            prop_assert_eq!(value(1, 29_305), record.received.map(|received| received.bytes));
            prop_assert_eq!(value(233, 0) == Some(3), record.decision() != Some(Decision::Permitted));
        }
    }

    #[test]
    fn frames_of_syslog_have_their_length_and_one_line(records in proptest::collection::vec(record(), 0..8)) {
        let mut out = Vec::new();
        records.iter().for_each(|record| syslog::append(&mut out, record, "gw \n1"));
        let mut rest = out.as_slice();
        for record in &records {
            let space = rest.iter().position(|byte| *byte == b' ').expect("a length");
            let length = std::str::from_utf8(&rest[..space]).expect("digits").parse().expect("a number");
            let message = std::str::from_utf8(take(&mut &rest[space + 1..], length)).expect("UTF-8");
            rest = &rest[space + 1 + length..];
            let (header, text) = message.split_once(" @cee:").expect("the mark");
            let priority = if record.decision() == Some(Decision::Permitted) { 166 } else { 165 };
            prop_assert_eq!(header, format!("<{priority}>1 2027-01-15T08:00:09.000000Z gw1 gatewayd - flow -"));
            let object: Value = serde_json::from_str(text).expect("JSON");
            prop_assert_eq!(&object["flow_id"], &json!(record.flow_id));
            prop_assert_eq!(object.get("sent_bytes").is_some(), record.sent.is_some());
            prop_assert!(!text.chars().any(char::is_control));
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn pages_of_metrics_are_read_back(name in "[a-z_]{1,12}", label in "\\PC{0,12}", value in -1e9..1e9f64) {
        let label = label.replace(['\\', '"', '\n'], "\\\\");
        let page = format!("# TYPE {name} counter\n{name}_total{{a=\"{label}\",b=\"x\"}} {value}\n# EOF\n");
        let found = samples(&page);
        prop_assert_eq!(found.len(), 1);
        prop_assert!(found[0].is_counter);
        prop_assert_eq!(found[0].value.to_bits(), value.to_bits());
        prop_assert_eq!(&found[0].labels[0].1, &label.replace("\\\\", "\\"));
    }
}

#[test]
fn logs_and_metrics_have_the_form_of_the_protocol() {
    let resource = Resource { node_id: "n1", host_name: "gw", version: "1" };
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let record = record().new_tree(&mut runner).expect("a record").current();
    let body = logs(&resource, std::slice::from_ref(&record));
    let log = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    assert_eq!(log["timeUnixNano"], "1800000000000000000");
    let attributes = log["attributes"].as_array().expect("attributes");
    let value =
        |name: &str| attributes.iter().find(|attribute| attribute["key"] == name).map(|a| &a["value"]);
    assert_eq!(value("destination.port"), Some(&json!({"intValue": record.destination_port.to_string()})));
    assert_eq!(
        value("names"),
        Some(&json!({"arrayValue": {"values": [{"stringValue": "www.example.com"}]}}))
    );
    assert_eq!(value("network.transport"), Some(&json!({"stringValue": "tcp"})));

    let page = "# TYPE up gauge\nup 1\n# TYPE bytes counter\nbytes_total{id=\"a\"} 5\nbytes_total{id=\"b\"} 6\nbad\n";
    let body = metrics(&resource, &samples(page), 1, 2);
    let found = &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert_eq!(found[0]["gauge"]["dataPoints"][0]["asDouble"], 1.0);
    assert_eq!(found[1]["sum"]["isMonotonic"], true);
    assert_eq!(found[1]["sum"]["dataPoints"].as_array().map(Vec::len), Some(2));
    assert_eq!(found[1]["sum"]["dataPoints"][0]["startTimeUnixNano"], "1");
}
