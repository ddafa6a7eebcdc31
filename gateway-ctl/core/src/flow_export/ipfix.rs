//! Messages of IPFIX (RFC 7011) with flows of both directions (RFC 5103).
//!
//! A template exists for each set of fields that a record may have: whether its addresses are of IPv6, whether its client is
//! known, and which directions were counted.

use std::net::IpAddr;

use jiff::Timestamp;

use crate::flow_log::{Client, Decision, FlowEnd, FlowRecord, Traffic};

/// Version of the protocol.
const VERSION: u16 = 10;
const MESSAGE_HEADER: usize = 16;
const SET_HEADER: usize = 4;
/// Set that has templates.
const TEMPLATE_SET: u16 = 2;
/// Lowest id of a template for data.
const FIRST_TEMPLATE: u16 = 256;
/// Enterprise number of the counters of the reverse direction (RFC 5103, section 6.1).
const REVERSE: u32 = 29_305;
/// Bit of a field's id that says that an enterprise number follows.
const ENTERPRISE: u16 = 0x8000;

/// Information elements, by their numbers in the registry of IANA.
mod element {
    pub(super) const OCTETS: u16 = 1;
    pub(super) const PACKETS: u16 = 2;
    pub(super) const PROTOCOL: u16 = 4;
    pub(super) const SOURCE_PORT: u16 = 7;
    pub(super) const SOURCE_IPV4: u16 = 8;
    pub(super) const INGRESS_INTERFACE: u16 = 10;
    pub(super) const DESTINATION_PORT: u16 = 11;
    pub(super) const DESTINATION_IPV4: u16 = 12;
    pub(super) const SOURCE_IPV6: u16 = 27;
    pub(super) const DESTINATION_IPV6: u16 = 28;
    pub(super) const SOURCE_MAC: u16 = 56;
    pub(super) const VLAN: u16 = 58;
    pub(super) const FORWARDING_STATUS: u16 = 89;
    pub(super) const END_REASON: u16 = 136;
    pub(super) const FLOW_ID: u16 = 148;
    pub(super) const START_MILLISECONDS: u16 = 152;
    pub(super) const END_MILLISECONDS: u16 = 153;
    pub(super) const FIREWALL_EVENT: u16 = 233;
}

/// Set of the fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Template {
    is_ipv6: bool,
    has_client: bool,
    has_sent: bool,
    has_received: bool,
}

#[derive(Clone, Copy)]
struct Field {
    element: u16,
    length: u16,
    is_reverse: bool,
}

const fn field(element: u16, length: u16) -> Field {
    Field { element, length, is_reverse: false }
}

const fn reverse(element: u16, length: u16) -> Field {
    Field { element, length, is_reverse: true }
}

impl Template {
    fn all() -> impl Iterator<Item = Template> {
        (0..16_u16).map(|bits| Template {
            is_ipv6: bits & 1 != 0,
            has_client: bits & 2 != 0,
            has_sent: bits & 4 != 0,
            has_received: bits & 8 != 0,
        })
    }

    fn of(record: &FlowRecord) -> Template {
        Template {
            is_ipv6: record.destination.is_ipv6(),
            has_client: client(record).is_some(),
            has_sent: record.sent.is_some(),
            has_received: record.received.is_some(),
        }
    }

    fn id(self) -> u16 {
        FIRST_TEMPLATE
            + u16::from(self.is_ipv6)
            + 2 * u16::from(self.has_client)
            + 4 * u16::from(self.has_sent)
            + 8 * u16::from(self.has_received)
    }

    fn fields(self) -> Vec<Field> {
        let mut fields = vec![
            field(element::FLOW_ID, 8),
            field(element::START_MILLISECONDS, 8),
            field(element::END_MILLISECONDS, 8),
            field(element::PROTOCOL, 1),
            field(element::DESTINATION_PORT, 2),
            field(element::FORWARDING_STATUS, 1),
            field(element::FIREWALL_EVENT, 1),
            field(element::END_REASON, 1),
        ];
        let address = |v4: u16, v6: u16| if self.is_ipv6 { field(v6, 16) } else { field(v4, 4) };
        fields.push(address(element::DESTINATION_IPV4, element::DESTINATION_IPV6));
        if self.has_client {
            fields.push(address(element::SOURCE_IPV4, element::SOURCE_IPV6));
            fields.extend([
                field(element::SOURCE_PORT, 2),
                field(element::SOURCE_MAC, 6),
                field(element::VLAN, 2),
                field(element::INGRESS_INTERFACE, 4),
            ]);
        }
        if self.has_sent {
            fields.extend([field(element::OCTETS, 8), field(element::PACKETS, 8)]);
        }
        if self.has_received {
            fields.extend([reverse(element::OCTETS, 8), reverse(element::PACKETS, 8)]);
        }
        fields
    }

    /// Appends the definition of this template.
    fn define(self, out: &mut Vec<u8>) {
        let fields = self.fields();
        out.extend(self.id().to_be_bytes());
        out.extend(u16::try_from(fields.len()).unwrap_or(0).to_be_bytes());
        for field in fields {
            let bit = if field.is_reverse { ENTERPRISE } else { 0 };
            out.extend((field.element | bit).to_be_bytes());
            out.extend(field.length.to_be_bytes());
            if field.is_reverse {
                out.extend(REVERSE.to_be_bytes());
            }
        }
    }

    fn length(self) -> usize {
        self.fields().iter().map(|field| usize::from(field.length)).sum()
    }
}

/// Returns the client of a record if its address has the version of the destination's.
fn client(record: &FlowRecord) -> Option<&Client> {
    record.client.as_ref().filter(|client| client.address.is_ipv6() == record.destination.is_ipv6())
}

/// Stream of messages of one exporter.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Number that tells this exporter from others at the same address.
    domain: u32,
    /// Number of records before the next message (RFC 7011, section 3.1).
    sequence: u32,
    /// Maximum length of a message in bytes.
    limit: usize,
}

impl Stream {
    /// Length of a message that a path with an MTU of 1 280 takes.
    pub const DATAGRAM: usize = 1_200;

    /// `limit` is the maximum length of a message in bytes: [`Stream::DATAGRAM`], or more over TCP.
    pub fn new(domain: u32, limit: usize) -> Stream {
        Stream { domain, sequence: 0, limit: limit.clamp(Stream::DATAGRAM, usize::from(u16::MAX)) }
    }

    /// Returns a message that defines all templates. Collectors need it first, and over UDP again and again.
    pub fn templates(&self, now: Timestamp) -> Vec<u8> {
        let mut set = Vec::new();
        for template in Template::all() {
            template.define(&mut set);
        }
        let mut message = self.begin(now);
        append_set(&mut message, TEMPLATE_SET, &set);
        finish(message)
    }

    /// Returns messages that have these records, in their order.
    pub fn messages(&mut self, records: &[FlowRecord], now: Timestamp) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let mut rest = records;
        while let Some(first) = rest.first() {
            let mut message = self.begin(now);
            let mut template = Template::of(first);
            let mut set = Vec::new();
            let mut count = 0;
            for record in rest {
                let own = Template::of(record);
                let new_set = if own == template { 0 } else { SET_HEADER };
                let length = message.len() + SET_HEADER + set.len() + new_set + own.length();
                if count > 0 && length > self.limit {
                    break;
                }
                if own != template {
                    append_set(&mut message, template.id(), &set);
                    set.clear();
                    template = own;
                }
                append_record(&mut set, record);
                count += 1;
            }
            append_set(&mut message, template.id(), &set);
            messages.push(finish(message));
            self.sequence = self.sequence.wrapping_add(u32::try_from(count).unwrap_or(0));
            rest = &rest[count..];
        }
        messages
    }

    fn begin(&self, now: Timestamp) -> Vec<u8> {
        let mut message = Vec::with_capacity(self.limit);
        message.extend(VERSION.to_be_bytes());
        // The length, which `finish` writes.
        message.extend([0, 0]);
        message.extend(u32::try_from(now.as_second()).unwrap_or(0).to_be_bytes());
        message.extend(self.sequence.to_be_bytes());
        message.extend(self.domain.to_be_bytes());
        debug_assert_eq!(message.len(), MESSAGE_HEADER);
        message
    }
}

fn append_set(message: &mut Vec<u8>, id: u16, content: &[u8]) {
    if content.is_empty() {
        return;
    }
    message.extend(id.to_be_bytes());
    message.extend(u16::try_from(SET_HEADER + content.len()).unwrap_or(u16::MAX).to_be_bytes());
    message.extend(content);
}

fn finish(mut message: Vec<u8>) -> Vec<u8> {
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// Appends the fields of a record, in the order of [`Template::fields`].
fn append_record(out: &mut Vec<u8>, record: &FlowRecord) {
    let end = record.ended_at.or(record.last_at).unwrap_or(record.written_at);
    out.extend(record.flow_id.raw().to_be_bytes());
    out.extend(record.flow_id.start_millis().to_be_bytes());
    out.extend(u64::try_from(end.as_millisecond()).unwrap_or(0).to_be_bytes());
    out.push(record.protocol);
    out.extend(record.destination_port.to_be_bytes());
    out.push(forwarding_status(record.decision()));
    out.push(firewall_event(record));
    out.push(end_reason(record.end));
    append_address(out, record.destination);
    if let Some(client) = client(record) {
        append_address(out, client.address);
        out.extend(client.port.to_be_bytes());
        out.extend(client.mac.octets());
        out.extend(client.vlan.to_be_bytes());
        out.extend(client.interface.to_be_bytes());
    }
    for Traffic { packets, bytes } in [record.sent, record.received].into_iter().flatten() {
        out.extend(bytes.to_be_bytes());
        out.extend(packets.to_be_bytes());
    }
}

fn append_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => out.extend(address.octets()),
        IpAddr::V6(address) => out.extend(address.octets()),
    }
}

/// Returns the status and the reason code of forwarding (RFC 7270, section 4.12).
const fn forwarding_status(decision: Option<Decision>) -> u8 {
    match decision {
        None => 0,
        // Forwarded.
        Some(Decision::Permitted) => 0b0100_0000,
        // Dropped by an access list.
        Some(Decision::Dropped | Decision::Rejected) => 0b1000_0001,
    }
}

/// Returns the event as firewalls report it (information element 233).
fn firewall_event(record: &FlowRecord) -> u8 {
    const CREATED: u8 = 1;
    const DELETED: u8 = 2;
    const DENIED: u8 = 3;
    const UPDATE: u8 = 5;
    match (record.decision(), record.end) {
        (Some(Decision::Dropped | Decision::Rejected), _) => DENIED,
        (_, Some(FlowEnd::Continued)) => UPDATE,
        (_, Some(_)) => DELETED,
        (_, None) => CREATED,
    }
}

/// Returns why the flow ended (information element 136).
const fn end_reason(end: Option<FlowEnd>) -> u8 {
    const IDLE: u8 = 1;
    const ACTIVE: u8 = 2;
    const DETECTED: u8 = 3;
    const FORCED: u8 = 4;
    match end {
        Some(FlowEnd::TimedOut | FlowEnd::Silent) => IDLE,
        Some(FlowEnd::Continued) | None => ACTIVE,
        Some(FlowEnd::Closed | FlowEnd::Reset) => DETECTED,
        Some(FlowEnd::Removed | FlowEnd::DaemonStopped | FlowEnd::Unreported) => FORCED,
    }
}
