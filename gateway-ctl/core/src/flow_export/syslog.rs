//! Messages of syslog (RFC 5424), framed by their length (RFC 5425, section 4.3).
//!
//! The text is the record as JSON behind the mark `@cee:`, which collectors parse into fields (rsyslog: `mmjsonparse`).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::json::fields;
use crate::flow_log::{Decision, FlowRecord};

/// Facility "local use 4", severities "informational" and "notice" (RFC 5424, section 6.2.1).
const FACILITY: u8 = 20;
const INFORMATIONAL: u8 = 6;
const NOTICE: u8 = 5;
/// Maximum length of a host name.
const MAX_HOST_NAME: usize = 255;

/// Appends the framed message about a record. Flows that were denied have the severity "notice".
pub fn append(out: &mut Vec<u8>, record: &FlowRecord, host_name: &str) {
    let is_denied = matches!(record.decision(), Some(Decision::Dropped | Decision::Rejected));
    let severity = if is_denied { NOTICE } else { INFORMATIONAL };
    let priority = FACILITY * 8 + severity;
    let time = timestamp(record.written_at);
    let host_name = printable(host_name);
    let json = Value::Object(fields(record));
    let message = format!("<{priority}>1 {time} {host_name} gatewayd - flow - @cee:{json}");
    out.extend(format!("{} {message}", message.len()).into_bytes());
}

/// Returns a time with microseconds, the most that RFC 5424 allows.
fn timestamp(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Returns a host name of printable characters, or the mark for none.
fn printable(name: &str) -> String {
    let name: String = name.chars().filter(char::is_ascii_graphic).take(MAX_HOST_NAME).collect();
    if name.is_empty() { "-".to_owned() } else { name }
}
