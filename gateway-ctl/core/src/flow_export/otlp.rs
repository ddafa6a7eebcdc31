//! Requests of the OpenTelemetry protocol over HTTP with JSON: logs, one for each record, and metrics.
//!
//! 64-bit numbers are strings, as the JSON form of Protocol Buffers has them.

use serde_json::{Value, json};

use super::json::{fields, transport};
use crate::flow_log::{Decision, FlowRecord};

/// Severities of the log data model.
const INFO: u8 = 9;
const WARN: u8 = 13;
/// Sums that count from the start of the daemon.
const CUMULATIVE: u8 = 2;

/// Gateway that the data is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource<'a> {
    pub node_id: &'a str,
    pub host_name: &'a str,
    pub version: &'a str,
}

impl Resource<'_> {
    fn json(&self) -> Value {
        let attributes = [
            ("service.name", "gatewayd"),
            ("service.instance.id", self.node_id),
            ("service.version", self.version),
            ("host.name", self.host_name),
        ];
        let attributes: Vec<Value> =
            attributes.iter().map(|(name, value)| attribute(name, &json!(value))).collect();
        json!({ "attributes": attributes })
    }
}

/// Returns the body of a request for `/v1/logs`.
pub fn logs(resource: &Resource<'_>, records: &[FlowRecord]) -> Value {
    let records: Vec<Value> = records.iter().map(log_record).collect();
    json!({"resourceLogs": [{
        "resource": resource.json(),
        "scopeLogs": [{"scope": {"name": "gatewayd.flows"}, "logRecords": records}],
    }]})
}

fn log_record(record: &FlowRecord) -> Value {
    let is_denied = matches!(record.decision(), Some(Decision::Dropped | Decision::Rejected));
    let (number, text) = if is_denied { (WARN, "WARN") } else { (INFO, "INFO") };
    let mut attributes = vec![attribute("network.transport", &json!(transport(record.protocol)))];
    attributes.extend(fields(record).iter().map(|(name, value)| attribute(attribute_name(name), value)));
    json!({
        "timeUnixNano": nanoseconds(record.flow_id.start().as_nanosecond()),
        "observedTimeUnixNano": nanoseconds(record.written_at.as_nanosecond()),
        "severityNumber": number,
        "severityText": text,
        "eventName": "gateway.flow",
        "body": {"stringValue": sentence(record)},
        "attributes": attributes,
    })
}

fn nanoseconds(time: i128) -> String {
    time.max(0).to_string()
}

/// Returns the attribute's name: that of the semantic conventions where they have one.
fn attribute_name(field: &str) -> &str {
    match field {
        "source" => "source.address",
        "source_port" => "source.port",
        "destination" => "destination.address",
        "destination_port" => "destination.port",
        "mac" => "source.mac",
        "server_name" => "tls.client.server_name",
        field => field,
    }
}

fn attribute(name: &str, value: &Value) -> Value {
    let value = any_value(value);
    json!({"key": name, "value": value})
}

fn any_value(value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) => match number.as_u64() {
            Some(number) => json!({"intValue": number.to_string()}),
            None => json!({"doubleValue": number.as_f64()}),
        },
        Value::Array(values) => {
            let values: Vec<Value> = values.iter().map(any_value).collect();
            json!({"arrayValue": {"values": values}})
        }
        Value::String(text) => json!({"stringValue": text}),
        Value::Null | Value::Object(_) => json!({"stringValue": value.to_string()}),
    }
}

/// Says in words what became of the flow.
fn sentence(record: &FlowRecord) -> String {
    let name = record.server_name.as_ref().or(record.names.first());
    let destination = name.map_or_else(|| record.destination.to_string(), Clone::clone);
    let client = match &record.client {
        Some(client) => client.address.to_string(),
        None => "an anonymous client".to_owned(),
    };
    let egress = record.path().and_then(|path| path.egress.as_deref());
    let outcome = match (record.decision(), egress) {
        (Some(Decision::Permitted), Some(egress)) => format!("left by {egress}"),
        (Some(Decision::Permitted), None) => "was permitted".to_owned(),
        (Some(Decision::Dropped), _) => "was dropped".to_owned(),
        (Some(Decision::Rejected), _) => "was rejected".to_owned(),
        (None, _) => "was not decided".to_owned(),
    };
    format!("{client} to {destination} by {} {outcome}", transport(record.protocol))
}

/// Sample of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
    /// True if the value only grows until the daemon starts again.
    pub is_counter: bool,
}

/// Reads the samples of a page in the OpenMetrics text format, which the daemon wrote itself. Lines that are no samples
/// are left out.
pub fn samples(page: &str) -> Vec<Sample> {
    let mut counter = String::new();
    let mut samples = Vec::new();
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
            counter = format!("{name}_total");
        }
        if line.starts_with('#') {
            continue;
        }
        if let Some((name, labels, value)) = sample(line) {
            let is_counter = counter == name;
            samples.push(Sample { name, labels, value, is_counter });
        }
    }
    samples
}

/// Name, labels and value of a sample.
type Parsed = (String, Vec<(String, String)>, f64);

fn sample(line: &str) -> Option<Parsed> {
    let (name, mut rest) = line.split_at(line.find(['{', ' '])?);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((label.to_owned(), value));
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some((name.to_owned(), labels, value))
}

/// Returns the text before the closing quote, without its escapes, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// Returns the body of a request for `/v1/metrics`. Times are nanoseconds since 1970.
pub fn metrics(resource: &Resource<'_>, samples: &[Sample], started: i128, now: i128) -> Value {
    let metric = |group: &[Sample]| {
        let points: Vec<Value> =
            group.iter().filter(|s| s.value.is_finite()).map(|s| point(s, started, now)).collect();
        let (name, is_counter) = (&group[0].name, group[0].is_counter);
        if is_counter {
            let sum =
                json!({"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points});
            json!({"name": name, "sum": sum})
        } else {
            json!({"name": name, "gauge": {"dataPoints": points}})
        }
    };
    let metrics: Vec<Value> = samples.chunk_by(|a, b| a.name == b.name).map(metric).collect();
    json!({"resourceMetrics": [{
        "resource": resource.json(),
        "scopeMetrics": [{"scope": {"name": "gatewayd"}, "metrics": metrics}],
    }]})
}

fn point(sample: &Sample, started: i128, now: i128) -> Value {
    let attributes: Vec<Value> =
        sample.labels.iter().map(|(name, value)| attribute(name, &json!(value))).collect();
    let mut point = json!({
        "attributes": attributes,
        "timeUnixNano": nanoseconds(now),
        "asDouble": sample.value,
    });
    if sample.is_counter {
        point["startTimeUnixNano"] = json!(nanoseconds(started));
    }
    point
}
