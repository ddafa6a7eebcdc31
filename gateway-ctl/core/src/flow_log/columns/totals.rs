//! Totals over the records of columns. Conditions and properties are evaluated once for each client, destination and decision of
//! a block, and no record is made, so that a week is added up in seconds.

use jiff::Timestamp;

use super::super::bytes::Reader;
use super::super::codec::{decision, has};
use super::super::filter::FlowFilter;
use super::super::record::{Client, FlowId, FlowPath, MAX_PATHS, Traffic};
use super::super::top::{TopKey, TopTable, TopValue, Totals, id, text};
use super::{Column, Columns, Destination, HASH_MASK, read_client, resolve_index};
use crate::countries::Countries;

/// Records of columns that are added up.
#[derive(Clone, Copy)]
pub struct RecordSelection<'a> {
    /// Conditions, of which `since` is not looked at.
    pub filter: &'a FlowFilter,
    /// Reports whether a record is wanted, by its index in the columns and its time in nanoseconds since 1970.
    pub is_wanted: &'a dyn Fn(u64, i64) -> bool,
    pub countries: &'a dyn Countries,
}

/// Value that several records have.
struct Shared<T> {
    value: T,
    /// Meets the conditions on such values.
    is_match: bool,
    /// Totals of the records with the value, if they are added up by it.
    totals: Totals,
}

impl<T> Shared<T> {
    fn new(value: T, is_match: impl FnOnce(&T) -> bool) -> Shared<T> {
        let is_match = is_match(&value);
        Shared { value, is_match, totals: Totals::default() }
    }
}

/// Paths of a record, as far as totals need them.
struct Paths {
    /// Index of the last decision.
    last: Option<usize>,
    part: u32,
    is_match: bool,
}

struct Adder<'a> {
    columns: Columns<'a>,
    filter: &'a FlowFilter,
    by: TopKey,
    clients: Vec<Shared<Client>>,
    destinations: Vec<Shared<Destination>>,
    decisions: Vec<Shared<FlowPath>>,
    /// Totals of the records without the property.
    absent: Totals,
}

/// Adds the records of columns that match to a table. Adds nothing and returns `None` if the bytes are none.
pub fn add_columns(columns: &[u8], selection: RecordSelection<'_>, table: &mut TopTable) -> Option<()> {
    let mut from = Reader(columns);
    let count = from.number()?;
    let mut adder = Adder {
        columns: Columns::open(&mut from)?,
        filter: selection.filter,
        by: table.by(),
        clients: Vec::new(),
        destinations: Vec::new(),
        decisions: Vec::new(),
        absent: Totals::default(),
    };
    (0..count).try_for_each(|index| adder.add(index, selection.is_wanted))?;
    adder.finish(table, selection.countries);
    Some(())
}

impl Adder<'_> {
    /// Reads the next record, and adds it if it matches.
    fn add(&mut self, index: u64, is_wanted: &dyn Fn(u64, i64) -> bool) -> Option<()> {
        let parts = u16::try_from(self.columns.at(Column::Parts).number()?).ok()?;
        let is = |part: u16| parts & part != 0;
        let written = self.columns.at(Column::Written).signed()?;
        self.columns.written = self.columns.written.wrapping_add(written);
        let written = self.columns.written;
        let flow = self.flow_id(written)?;
        let client = if is(has::CLIENT) { Some(self.client()?) } else { None };
        let destination = self.destination()?;
        let paths = self.paths(is(has::PART))?;
        let sent = if is(has::SENT) { Some(self.columns.traffic(Column::SentBytes)?) } else { None };
        let received =
            if is(has::RECEIVED) { Some(self.columns.traffic(Column::ReceivedBytes)?) } else { None };
        let is_of_client =
            client.map_or(self.filter.client.is_none(), |client| self.clients[client].is_match);
        let is_match = is_of_client
            && self.destinations[destination].is_match
            && paths.is_match
            && self.has_rest(flow, paths.last, sent, received)
            && is_wanted(index, written);
        if is_match {
            let last = paths.last.map(|last| self.decisions[last].value.decision);
            self.count(client, destination, paths.last, Totals::of(paths.part, sent, received, last));
        }
        Some(())
    }

    fn has_rest(
        &self,
        flow: FlowId,
        last: Option<usize>,
        sent: Option<Traffic>,
        received: Option<Traffic>,
    ) -> bool {
        self.filter.has_id(flow)
            && self.filter.has_start(flow.start())
            && self.filter.has_decision(last.map(|last| &self.decisions[last].value))
            && self.filter.has_bytes(sent, received)
    }

    fn flow_id(&mut self, written: i64) -> Option<FlowId> {
        let written = Timestamp::from_nanosecond(written.into()).ok()?.as_millisecond();
        let start = written.wrapping_sub(self.columns.at(Column::Age).signed()?).cast_unsigned();
        let [a, b, c] = self.columns.at(Column::Hash).array()?;
        let hash = u64::from(u32::from_le_bytes([a, b, c, 0])) & HASH_MASK;
        Some(FlowId::from_raw(start << HASH_MASK.count_ones() | hash))
    }

    fn client(&mut self) -> Option<usize> {
        let Adder { columns, clients, filter, .. } = self;
        let places = [Column::ClientIndex as usize, Column::Client as usize];
        let [index, values] = columns.columns.get_disjoint_mut(places).ok()?;
        resolve_index(index, clients, || {
            let client = read_client(values)?;
            Some(Shared::new(client, |client| filter.has_client(Some(client))))
        })
    }

    fn destination(&mut self) -> Option<usize> {
        let Adder { columns, destinations, filter, .. } = self;
        let places = [Column::DestinationIndex as usize, Column::Destination as usize];
        let [index, values] = columns.columns.get_disjoint_mut(places).ok()?;
        resolve_index(index, destinations, || {
            Some(Shared::new(Destination::read(values)?, |to| {
                filter.has_destination(to.protocol, to.port, to.address)
                    && filter.has_name(&to.names, to.server_name.as_deref())
            }))
        })
    }

    fn paths(&mut self, has_part: bool) -> Option<Paths> {
        let shape = self.columns.at(Column::Shape);
        let count = usize::try_from(shape.number()?).ok().filter(|count| *count <= MAX_PATHS)?;
        shape.number()?;
        let part = if has_part { shape.number32()? } else { 0 };
        let Adder { columns, decisions, filter, .. } = self;
        let (mut last, mut has_policy, mut has_egress) =
            (None, filter.policy.is_none(), filter.egress.is_none());
        for _ in 0..count {
            let places = [Column::DecisionIndex as usize, Column::Decision as usize];
            let [index, values] = columns.columns.get_disjoint_mut(places).ok()?;
            let found = resolve_index(index, decisions, || {
                Some(Shared::new(decision(values, Timestamp::UNIX_EPOCH)?, |_| true))
            })?;
            has_policy = has_policy || filter.has_policy(&decisions[found].value);
            has_egress = has_egress || filter.has_egress(&decisions[found].value);
            last = Some(found);
        }
        Some(Paths { last, part, is_match: has_policy && has_egress })
    }

    /// Adds a record to the totals of its value.
    fn count(&mut self, client: Option<usize>, destination: usize, last: Option<usize>, totals: Totals) {
        let sum = match self.by {
            TopKey::Device => client.map(|client| &mut self.clients[client].totals),
            TopKey::Domain | TopKey::Country => Some(&mut self.destinations[destination].totals),
            TopKey::Policy | TopKey::Egress => last.map(|last| &mut self.decisions[last].totals),
        };
        sum.unwrap_or(&mut self.absent).add(totals);
    }

    fn finish(self, table: &mut TopTable, countries: &dyn Countries) {
        let Adder { by, clients, destinations, decisions, absent, .. } = self;
        let mut add = |value: TopValue<'_>, totals: Totals| {
            if totals.records > 0 {
                table.add_totals(value, totals);
            }
        };
        add(id(None), absent);
        clients.iter().for_each(|client| add(id(client.value.device), client.totals));
        for Shared { value: to, totals, .. } in &destinations {
            if by == TopKey::Country {
                let country = (totals.records > 0).then(|| countries.country(to.address)).flatten();
                add(text(country.as_ref().map(|code| code.as_str())), *totals);
            } else {
                add(text(to.names.first().or(to.server_name.as_ref()).map(String::as_str)), *totals);
            }
        }
        for Shared { value: path, totals, .. } in &decisions {
            let value = if by == TopKey::Policy { id(path.policy) } else { text(path.egress.as_deref()) };
            add(value, *totals);
        }
    }
}
