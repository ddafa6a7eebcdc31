//! Block of records by columns, so that equal things are near each other and compress well.
//!
//! Each field has a column. Clients, destinations and decisions repeat: a column has their numbers, another one each of them
//! once. Times are differences. The same records come out, byte by byte.
//!
//! Decision 0208 says why.

mod totals;

use std::collections::HashMap;

use jiff::Timestamp;

use super::bytes::{Reader, put_address, put_number, put_signed, put_text};
use super::codec::{
    self, decision, encode, has, millis_since, parts_of, put_client, put_decision, texts, time_of, views,
};
use super::record::{Client, FlowEnd, FlowId, FlowPath, FlowRecord, MAX_NAMES, MAX_PATHS, Traffic};

pub use totals::{RecordSelection, add_columns};

/// Maximum length of the records that come out of columns.
const MAX_BYTES: usize = 16 << 20;
/// Bits of the hash of an id.
const HASH_MASK: u64 = (1 << 20) - 1;

/// Columns, in their order.
#[derive(Clone, Copy)]
enum Column {
    Parts,
    Written,
    Age,
    Hash,
    ClientIndex,
    Client,
    PortHigh,
    PortLow,
    DestinationIndex,
    Destination,
    Shape,
    PathTime,
    DecisionIndex,
    Decision,
    Packets,
    SentBytes,
    ReceivedBytes,
    Last,
    Ended,
    End,
}

const COLUMNS: usize = Column::End as usize + 1;

/// Values that were written before, with their numbers.
#[derive(Default)]
struct Numbers(HashMap<Vec<u8>, u64>);

#[derive(Default)]
struct Writer {
    columns: [Vec<u8>; COLUMNS],
    clients: Numbers,
    destinations: Numbers,
    decisions: Numbers,
    written: i64,
}

impl Writer {
    fn at(&mut self, column: Column) -> &mut Vec<u8> {
        &mut self.columns[column as usize]
    }

    /// Writes the number of a value; the value itself if it is new.
    fn refer(
        &mut self,
        index: Column,
        values: Column,
        numbers: fn(&mut Writer) -> &mut Numbers,
        value: Vec<u8>,
    ) {
        let known = &mut numbers(self).0;
        let next = known.len() as u64 + 1;
        if let Some(number) = known.get(&value) {
            let number = *number;
            put_number(self.at(index), number);
        } else {
            put_number(self.at(index), 0);
            self.at(values).extend_from_slice(&value);
            numbers(self).0.insert(value, next);
        }
    }

    fn add(&mut self, record: &FlowRecord) {
        let parts = parts_of(record);
        put_number(self.at(Column::Parts), parts.into());
        let written = i64::try_from(record.written_at.as_nanosecond()).unwrap_or(i64::MAX);
        let since = written.wrapping_sub(std::mem::replace(&mut self.written, written));
        put_signed(self.at(Column::Written), since);
        let age =
            record.written_at.as_millisecond().wrapping_sub(record.flow_id.start_millis().cast_signed());
        put_signed(self.at(Column::Age), age);
        let hash = record.flow_id.raw() & HASH_MASK;
        self.at(Column::Hash).extend_from_slice(&hash.to_le_bytes()[..3]);
        if let Some(client) = &record.client {
            self.add_client(client, parts);
        }
        self.refer(
            Column::DestinationIndex,
            Column::Destination,
            |w| &mut w.destinations,
            destination(record, parts),
        );
        self.add_paths(record);
        for (traffic, bytes) in [(record.sent, Column::SentBytes), (record.received, Column::ReceivedBytes)] {
            if let Some(traffic) = traffic {
                put_number(self.at(Column::Packets), traffic.packets);
                put_number(self.at(bytes), traffic.bytes);
            }
        }
        self.add_end(record);
    }

    fn add_client(&mut self, client: &Client, parts: u16) {
        let [high, low] = client.port.to_be_bytes();
        self.at(Column::PortHigh).push(high);
        self.at(Column::PortLow).push(low);
        let mut value = Vec::new();
        put_number(&mut value, parts.into());
        put_client(&mut value, &Client { port: 0, ..client.clone() });
        self.refer(Column::ClientIndex, Column::Client, |w| &mut w.clients, value);
    }

    fn add_paths(&mut self, record: &FlowRecord) {
        let shape = self.at(Column::Shape);
        put_number(shape, record.paths.len() as u64);
        put_number(shape, record.path_changes.into());
        if record.part != 0 {
            put_number(shape, record.part.into());
        }
        for path in &record.paths {
            put_number(self.at(Column::PathTime), millis_since(record.flow_id, path.at));
            let mut value = Vec::new();
            put_decision(&mut value, path);
            self.refer(Column::DecisionIndex, Column::Decision, |w| &mut w.decisions, value);
        }
    }

    fn add_end(&mut self, record: &FlowRecord) {
        let millis = |time: Timestamp| millis_since(record.flow_id, time).cast_signed();
        let last = record.last_at.map(millis);
        if let Some(last) = last {
            put_signed(self.at(Column::Last), last);
        }
        if let Some(ended) = record.ended_at.map(millis) {
            put_signed(self.at(Column::Ended), ended.wrapping_sub(last.unwrap_or(0)));
        }
        if let Some(end) = record.end {
            self.at(Column::End).push(end as u8);
        }
    }
}

fn destination(record: &FlowRecord, parts: u16) -> Vec<u8> {
    let mut value = Vec::new();
    put_number(&mut value, parts.into());
    value.push(record.protocol);
    value.extend(record.destination_port.to_le_bytes());
    put_address(&mut value, record.destination);
    value.push(record.names.len() as u8);
    record.names.iter().for_each(|name| put_text(&mut value, name));
    if let Some(name) = &record.server_name {
        put_text(&mut value, name);
    }
    value
}

/// Returns encoded records by columns. `None` if the bytes are not records only.
pub fn to_columns(records: &[u8]) -> Option<Vec<u8>> {
    let mut writer = Writer::default();
    let (mut count, mut length) = (0u64, 0);
    for view in views(records) {
        writer.add(&view.record()?);
        count += 1;
        length += view.length();
    }
    if length != records.len() {
        return None;
    }
    let mut out = Vec::with_capacity(records.len() / 2);
    put_number(&mut out, count);
    writer.columns.iter().for_each(|column| put_number(&mut out, column.len() as u64));
    writer.columns.iter().for_each(|column| out.extend_from_slice(column));
    Some(out)
}

/// Destination of records.
#[derive(Clone)]
struct Destination {
    protocol: u8,
    port: u16,
    address: std::net::IpAddr,
    names: Vec<String>,
    server_name: Option<String>,
}

impl Destination {
    fn read(values: &mut Reader<'_>) -> Option<Destination> {
        let parts = values.number()?;
        let is = |part: u16| parts & u64::from(part) != 0;
        Some(Destination {
            protocol: values.byte()?,
            port: values.u16()?,
            address: values.address(is(has::V6))?,
            names: texts(values, MAX_NAMES)?,
            server_name: if is(has::SERVER_NAME) { Some(values.text()?.to_owned()) } else { None },
        })
    }
}

/// Reads a client without its port.
fn read_client(values: &mut Reader<'_>) -> Option<Client> {
    let parts = u16::try_from(values.number()?).ok()?;
    codec::client(values, parts)
}

struct Columns<'a> {
    columns: [Reader<'a>; COLUMNS],
    clients: Vec<Client>,
    destinations: Vec<Destination>,
    decisions: Vec<FlowPath>,
    written: i64,
}

/// Returns the index of the value of the next number: one that was read before, or the next one.
fn resolve_index<T>(
    index: &mut Reader<'_>,
    known: &mut Vec<T>,
    read: impl FnOnce() -> Option<T>,
) -> Option<usize> {
    match usize::try_from(index.number()?).ok()?.checked_sub(1) {
        Some(index) => (index < known.len()).then_some(index),
        None => {
            known.push(read()?);
            Some(known.len() - 1)
        }
    }
}

/// Like [`resolve_index`], with the value.
fn resolve<'b, T>(
    index: &mut Reader<'_>,
    known: &'b mut Vec<T>,
    read: impl FnOnce() -> Option<T>,
) -> Option<&'b T> {
    let index = resolve_index(index, known, read)?;
    known.get(index)
}

impl<'a> Columns<'a> {
    fn open(from: &mut Reader<'a>) -> Option<Columns<'a>> {
        let mut lengths = [0; COLUMNS];
        for length in &mut lengths {
            *length = usize::try_from(from.number()?).ok()?;
        }
        let mut columns = [Reader(&[]); COLUMNS];
        for (column, length) in columns.iter_mut().zip(lengths) {
            *column = Reader(from.take(length)?);
        }
        let (clients, destinations, decisions) = (Vec::new(), Vec::new(), Vec::new());
        Some(Columns { columns, clients, destinations, decisions, written: 0 })
    }

    fn at(&mut self, column: Column) -> &mut Reader<'a> {
        &mut self.columns[column as usize]
    }

    fn record(&mut self) -> Option<FlowRecord> {
        let parts = u16::try_from(self.at(Column::Parts).number()?).ok()?;
        let is = |part: u16| parts & part != 0;
        self.written = self.written.wrapping_add(self.at(Column::Written).signed()?);
        let written_at = Timestamp::from_nanosecond(self.written.into()).ok()?;
        let start = written_at.as_millisecond().wrapping_sub(self.at(Column::Age).signed()?).cast_unsigned();
        let [a, b, c] = self.at(Column::Hash).array()?;
        let hash = u64::from(u32::from_le_bytes([a, b, c, 0])) & HASH_MASK;
        let flow_id = FlowId::from_raw(start << HASH_MASK.count_ones() | hash);
        let client = if is(has::CLIENT) { Some(self.client()?) } else { None };
        let Destination { protocol, port, address, names, server_name } = self.destination()?;
        let (count, path_changes) = (self.at(Column::Shape).number()?, self.at(Column::Shape).number32()?);
        let part = if is(has::PART) { self.at(Column::Shape).number32()? } else { 0 };
        let count = usize::try_from(count).ok().filter(|count| *count <= MAX_PATHS)?;
        let paths = (0..count).map(|_| self.path(flow_id)).collect::<Option<Vec<_>>>()?;
        let sent = if is(has::SENT) { Some(self.traffic(Column::SentBytes)?) } else { None };
        let received = if is(has::RECEIVED) { Some(self.traffic(Column::ReceivedBytes)?) } else { None };
        let last = if is(has::LAST) { Some(self.at(Column::Last).signed()?) } else { None };
        let ended = if is(has::ENDED) {
            Some(self.at(Column::Ended).signed()?.wrapping_add(last.unwrap_or(0)))
        } else {
            None
        };
        let end = if is(has::END) {
            Some(*FlowEnd::ALL.get(usize::from(self.at(Column::End).byte()?))?)
        } else {
            None
        };
        let time = |millis: i64| time_of(flow_id, u64::try_from(millis).ok()?);
        let last_at = if let Some(last) = last { Some(time(last)?) } else { None };
        let ended_at = if let Some(ended) = ended { Some(time(ended)?) } else { None };
        Some(FlowRecord {
            flow_id,
            part,
            written_at,
            client,
            destination: address,
            destination_port: port,
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

    fn client(&mut self) -> Option<Client> {
        let port = u16::from_be_bytes([self.at(Column::PortHigh).byte()?, self.at(Column::PortLow).byte()?]);
        let Columns { columns, clients, .. } = self;
        let [index, values] =
            columns.get_disjoint_mut([Column::ClientIndex as usize, Column::Client as usize]).ok()?;
        let client = resolve(index, clients, || read_client(values))?;
        Some(Client { port, ..client.clone() })
    }

    fn destination(&mut self) -> Option<Destination> {
        let Columns { columns, destinations, .. } = self;
        let places = [Column::DestinationIndex as usize, Column::Destination as usize];
        let [index, values] = columns.get_disjoint_mut(places).ok()?;
        resolve(index, destinations, || Destination::read(values)).cloned()
    }

    fn path(&mut self, flow: FlowId) -> Option<FlowPath> {
        let at = time_of(flow, self.at(Column::PathTime).number()?)?;
        let Columns { columns, decisions, .. } = self;
        let places = [Column::DecisionIndex as usize, Column::Decision as usize];
        let [index, values] = columns.get_disjoint_mut(places).ok()?;
        let found = resolve(index, decisions, || decision(values, at))?;
        Some(FlowPath { at, ..found.clone() })
    }

    fn traffic(&mut self, bytes: Column) -> Option<Traffic> {
        Some(Traffic { packets: self.at(Column::Packets).number()?, bytes: self.at(bytes).number()? })
    }
}

/// Returns the encoded records of columns. `None` if the bytes are none.
pub fn from_columns(columns: &[u8]) -> Option<Vec<u8>> {
    let mut from = Reader(columns);
    let count = from.number()?;
    let mut columns = Columns::open(&mut from)?;
    let mut out = Vec::new();
    for _ in 0..count {
        encode(&mut out, &columns.record()?);
        if out.len() > MAX_BYTES {
            return None;
        }
    }
    Some(out)
}
