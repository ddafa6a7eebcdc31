//! Encoding of records in the journal of the flow log.
//!
//! A record has its length, a fixed part and a variable part. Times are milliseconds from the start of the flow, which
//! its id has. Readers of later versions know an older one by the first bytes of its block.

use gateway_model::Id;
use gateway_model::id::MacAddr;
use jiff::Timestamp;

use super::bytes::{Reader, put_address, put_number, put_text};
use super::record::{Client, Decision, FlowEnd, FlowId, FlowPath, FlowRecord, MAX_NAMES, MAX_PATHS, Traffic};

/// Fixed part: time of the record, id, parts that follow, protocol, destination port.
const FIXED: usize = 8 + 8 + 2 + 1 + 2;

/// Parts that a record has.
pub(super) mod has {
    pub(in super::super) const V6: u16 = 1;
    pub(in super::super) const CLIENT: u16 = 1 << 1;
    pub(in super::super) const DEVICE: u16 = 1 << 2;
    pub(in super::super) const TRUST_CLASS: u16 = 1 << 3;
    pub(in super::super) const INTERFACE_NAME: u16 = 1 << 4;
    pub(in super::super) const SERVER_NAME: u16 = 1 << 5;
    pub(in super::super) const SENT: u16 = 1 << 6;
    pub(in super::super) const RECEIVED: u16 = 1 << 7;
    pub(in super::super) const LAST: u16 = 1 << 8;
    pub(in super::super) const ENDED: u16 = 1 << 9;
    pub(in super::super) const END: u16 = 1 << 10;
    pub(in super::super) const PART: u16 = 1 << 11;
    pub(in super::super) const ALL: u16 = (1 << 12) - 1;
}

/// Parts that a path has.
mod path_has {
    pub(super) const POLICY: u8 = 1;
    pub(super) const LEG: u8 = 1 << 1;
    pub(super) const EGRESS: u8 = 1 << 2;
    pub(super) const ALL: u8 = (1 << 3) - 1;
    pub(super) const DECISION_SHIFT: u8 = 6;
}

/// Maximum number of hops of a path that a record has.
const MAX_HOPS: usize = 16;

/// Appends a record. One that does not fit its length field, which none does, is left out.
pub fn encode(out: &mut Vec<u8>, record: &FlowRecord) {
    let start = out.len();
    out.extend([0; 2]);
    let written = i64::try_from(record.written_at.as_nanosecond()).unwrap_or(i64::MAX);
    out.extend(written.to_le_bytes());
    out.extend(record.flow_id.raw().to_le_bytes());
    out.extend(parts_of(record).to_le_bytes());
    out.push(record.protocol);
    out.extend(record.destination_port.to_le_bytes());
    put_address(out, record.destination);
    if let Some(client) = &record.client {
        put_client(out, client);
    }
    let names = &record.names[..record.names.len().min(MAX_NAMES)];
    out.push(names.len() as u8);
    names.iter().for_each(|name| put_text(out, name));
    if let Some(name) = &record.server_name {
        put_text(out, name);
    }
    for traffic in [record.sent, record.received].into_iter().flatten() {
        put_number(out, traffic.packets);
        put_number(out, traffic.bytes);
    }
    for time in [record.last_at, record.ended_at].into_iter().flatten() {
        put_number(out, millis_since(record.flow_id, time));
    }
    if let Some(end) = record.end {
        out.push(end as u8);
    }
    if record.part != 0 {
        put_number(out, record.part.into());
    }
    put_number(out, record.path_changes.into());
    let paths = &record.paths[..record.paths.len().min(MAX_PATHS)];
    out.push(paths.len() as u8);
    paths.iter().for_each(|path| put_path(out, record.flow_id, path));
    match u16::try_from(out.len() - start - 2) {
        Ok(length) => out[start..start + 2].copy_from_slice(&length.to_le_bytes()),
        Err(_) => out.truncate(start),
    }
}

pub(super) fn parts_of(record: &FlowRecord) -> u16 {
    let client = record.client.as_ref();
    let bits = [
        (has::V6, record.destination.is_ipv6()),
        (has::CLIENT, client.is_some()),
        (has::DEVICE, client.is_some_and(|client| client.device.is_some())),
        (has::TRUST_CLASS, client.is_some_and(|client| client.trust_class.is_some())),
        (has::INTERFACE_NAME, client.is_some_and(|client| client.interface_name.is_some())),
        (has::SERVER_NAME, record.server_name.is_some()),
        (has::SENT, record.sent.is_some()),
        (has::RECEIVED, record.received.is_some()),
        (has::LAST, record.last_at.is_some()),
        (has::ENDED, record.ended_at.is_some()),
        (has::END, record.end.is_some()),
        (has::PART, record.part != 0),
    ];
    bits.into_iter().filter(|(_, there)| *there).map(|(bit, _)| bit).sum()
}

pub(super) fn put_client(out: &mut Vec<u8>, client: &Client) {
    let Client { mac, address, port, interface, interface_name, vlan, device, trust_class } = client;
    out.extend(mac.octets());
    put_address(out, *address);
    out.extend(port.to_le_bytes());
    put_number(out, (*interface).into());
    put_number(out, (*vlan).into());
    if let Some(device) = device {
        out.extend(device.as_bytes());
    }
    for text in [trust_class, interface_name].into_iter().flatten() {
        put_text(out, text);
    }
}

fn put_path(out: &mut Vec<u8>, flow: FlowId, path: &FlowPath) {
    put_number(out, millis_since(flow, path.at));
    put_decision(out, path);
}

/// Writes a path without its time.
pub(super) fn put_decision(out: &mut Vec<u8>, path: &FlowPath) {
    let FlowPath { at: _, generation, decision, reason, policy, hops, leg, egress } = path;
    put_number(out, (*generation).into());
    let policy_bit = if policy.is_some() { path_has::POLICY } else { 0 };
    let leg_bit = if leg.is_some() { path_has::LEG } else { 0 };
    let egress_bit = if egress.is_some() { path_has::EGRESS } else { 0 };
    out.push((*decision as u8) << path_has::DECISION_SHIFT | policy_bit | leg_bit | egress_bit);
    out.push(*reason);
    if let Some(policy) = policy {
        out.extend(policy.as_bytes());
    }
    out.extend(leg);
    if let Some(egress) = egress {
        put_text(out, egress);
    }
    let hops = &hops[..hops.len().min(MAX_HOPS)];
    out.push(hops.len() as u8);
    hops.iter().for_each(|hop| put_text(out, hop));
}

/// Milliseconds from the start of a flow. Times before it, which a clock that was set back gives, count as the start.
pub(super) fn millis_since(flow: FlowId, time: Timestamp) -> u64 {
    let millis = u64::try_from(time.as_millisecond()).unwrap_or(0);
    millis.saturating_sub(flow.start_millis())
}

pub(super) fn time_of(flow: FlowId, millis: u64) -> Option<Timestamp> {
    let millis = flow.start_millis().checked_add(millis)?;
    Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()
}

/// Encoded record, read in place.
#[derive(Clone, Copy, Debug)]
pub struct FlowView<'a>(&'a [u8]);

/// Splits bytes into records. Ends before bytes that are no record.
pub fn views(bytes: &[u8]) -> impl Iterator<Item = FlowView<'_>> {
    let mut rest = Reader(bytes);
    std::iter::from_fn(move || {
        let length = usize::from(rest.u16()?);
        rest.take(length).filter(|record| record.len() >= FIXED).map(FlowView)
    })
}

impl<'a> FlowView<'a> {
    /// Nanoseconds since 1970.
    pub fn time(&self) -> i64 {
        Reader(self.0).array().map_or(0, i64::from_le_bytes)
    }

    /// Bytes that it takes in a block.
    pub fn length(&self) -> usize {
        2 + self.0.len()
    }

    pub fn flow_id(&self) -> Option<FlowId> {
        Reader(self.0.get(8..)?).array().map(u64::from_le_bytes).map(FlowId::from_raw)
    }

    /// Returns the record. `None` if the bytes are none.
    pub fn record(&self) -> Option<FlowRecord> {
        let mut from = Reader(self.0);
        let written = i64::from_le_bytes(from.array()?);
        let written_at = Timestamp::from_nanosecond(written.into()).ok()?;
        let flow_id = FlowId::from_raw(u64::from_le_bytes(from.array()?));
        let parts = from.u16()?;
        if parts & !has::ALL != 0 {
            return None;
        }
        let is = |part: u16| parts & part != 0;
        let protocol = from.byte()?;
        let destination_port = from.u16()?;
        let destination = from.address(is(has::V6))?;
        let client = if is(has::CLIENT) { Some(client(&mut from, parts)?) } else { None };
        let names = texts(&mut from, MAX_NAMES)?;
        let server_name = if is(has::SERVER_NAME) { Some(from.text()?.to_owned()) } else { None };
        let sent = if is(has::SENT) { Some(traffic(&mut from)?) } else { None };
        let received = if is(has::RECEIVED) { Some(traffic(&mut from)?) } else { None };
        let last_at = if is(has::LAST) { Some(time_of(flow_id, from.number()?)?) } else { None };
        let ended_at = if is(has::ENDED) { Some(time_of(flow_id, from.number()?)?) } else { None };
        let end = if is(has::END) { Some(*FlowEnd::ALL.get(usize::from(from.byte()?))?) } else { None };
        let part = if is(has::PART) { from.number32()? } else { 0 };
        let path_changes = from.number32()?;
        let count = usize::from(from.byte()?);
        if count > MAX_PATHS {
            return None;
        }
        let paths = (0..count).map(|_| path(&mut from, flow_id)).collect::<Option<Vec<_>>>()?;
        Some(FlowRecord {
            flow_id,
            part,
            written_at,
            client,
            destination,
            destination_port,
            protocol,
            names,
            server_name,
            paths,
            path_changes,
            sent,
            received,
            last_at,
            ended_at,
            end,
        })
    }
}

pub(super) fn client(from: &mut Reader<'_>, parts: u16) -> Option<Client> {
    let is = |part: u16| parts & part != 0;
    Some(Client {
        mac: MacAddr(from.array()?),
        address: from.address(is(has::V6))?,
        port: from.u16()?,
        interface: from.number32()?,
        vlan: u16::try_from(from.number()?).ok()?,
        device: if is(has::DEVICE) { Some(Id::from_bytes(from.array()?)) } else { None },
        trust_class: if is(has::TRUST_CLASS) { Some(from.text()?.to_owned()) } else { None },
        interface_name: if is(has::INTERFACE_NAME) { Some(from.text()?.to_owned()) } else { None },
    })
}

fn traffic(from: &mut Reader<'_>) -> Option<Traffic> {
    Some(Traffic { packets: from.number()?, bytes: from.number()? })
}

pub(super) fn texts(from: &mut Reader<'_>, most: usize) -> Option<Vec<String>> {
    let count = usize::from(from.byte()?);
    if count > most {
        return None;
    }
    (0..count).map(|_| from.text().map(str::to_owned)).collect()
}

fn path(from: &mut Reader<'_>, flow: FlowId) -> Option<FlowPath> {
    let at = time_of(flow, from.number()?)?;
    decision(from, at)
}

/// Reads a path without its time.
pub(super) fn decision(from: &mut Reader<'_>, at: Timestamp) -> Option<FlowPath> {
    let generation = from.number32()?;
    let bits = from.byte()?;
    let decision = *Decision::ALL.get(usize::from(bits >> path_has::DECISION_SHIFT))?;
    let parts = bits & ((1 << path_has::DECISION_SHIFT) - 1);
    if parts & !path_has::ALL != 0 {
        return None;
    }
    Some(FlowPath {
        at,
        generation,
        decision,
        reason: from.byte()?,
        policy: if parts & path_has::POLICY != 0 { Some(Id::from_bytes(from.array()?)) } else { None },
        leg: if parts & path_has::LEG != 0 { Some(from.byte()?) } else { None },
        egress: if parts & path_has::EGRESS != 0 { Some(from.text()?.to_owned()) } else { None },
        hops: texts(from, MAX_HOPS)?,
    })
}
