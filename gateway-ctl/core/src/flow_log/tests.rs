//! Records survive their encoding, and damaged ones are no records.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::Id;
use gateway_model::id::MacAddr;
use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::countries::{Countries, CountryCode};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + millis).expect("a time")
}

fn path() -> impl Strategy<Value = FlowPath> {
    let ids = proptest::option::of(any::<u128>().prop_map(Id::from_u128));
    let hops = proptest::collection::vec("[a-z:-]{1,12}", 0..4);
    let egress = proptest::option::of("[a-z0-9-]{1,15}");
    let decision = proptest::sample::select(Decision::ALL);
    (0i64..1_000_000, any::<u32>(), decision, any::<u8>(), ids, hops, any::<Option<u8>>(), egress).prop_map(
        |(millis, generation, decision, reason, policy, hops, leg, egress)| FlowPath {
            at: at(millis),
            generation,
            decision,
            reason,
            policy,
            hops,
            leg,
            egress,
        },
    )
}

/// Two addresses of one family.
fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
        any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
    ]
}

fn client(address: IpAddr) -> impl Strategy<Value = Client> {
    let device = proptest::option::of(any::<u128>().prop_map(Id::from_u128));
    let text = || proptest::option::of("[a-z0-9.-]{1,15}");
    (any::<[u8; 6]>(), any::<u16>(), any::<u32>(), text(), any::<u16>(), device, text()).prop_map(
        move |(mac, port, interface, interface_name, vlan, device, trust_class)| Client {
            mac: MacAddr(mac),
            address,
            port,
            interface,
            interface_name,
            vlan,
            device,
            trust_class,
        },
    )
}

fn traffic() -> impl Strategy<Value = Option<Traffic>> {
    proptest::option::of(any::<(u64, u64)>().prop_map(|(packets, bytes)| Traffic { packets, bytes }))
}

prop_compose! {
    pub(super) fn record()((source, destination) in addresses())(
        client in proptest::option::of(client(source)),
        destination in Just(destination),
        (destination_port, protocol, part, path_changes) in any::<(u16, u8, u32, u32)>(),
        names in proptest::collection::vec("[a-z0-9.-]{1,40}", 0..=MAX_NAMES),
        server_name in proptest::option::of("[a-z0-9.-]{1,40}"),
        paths in proptest::collection::vec(path(), 1..=MAX_PATHS),
        (sent, received) in (traffic(), traffic()),
        (last, ended) in any::<(Option<u16>, Option<u16>)>(),
        end in proptest::option::of(proptest::sample::select(FlowEnd::ALL)),
        distinction in any::<u64>(),
    ) -> FlowRecord {
        FlowRecord {
            flow_id: FlowId::new(at(0), &distinction.to_le_bytes()),
            part,
            written_at: at(2_000_000),
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
            last_at: last.map(|millis| at(millis.into())),
            ended_at: ended.map(|millis| at(millis.into())),
            end,
        }
    }
}

fn plain() -> FlowRecord {
    let path = |at, egress: &str| FlowPath {
        at,
        generation: 7,
        decision: Decision::Permitted,
        reason: 10,
        policy: Some(Id::from_u128(1)),
        hops: vec!["vpn:wg-a".into()],
        leg: Some(16),
        egress: Some(egress.into()),
    };
    FlowRecord {
        flow_id: FlowId::new(at(0), b"a flow"),
        part: 0,
        written_at: at(5000),
        client: Some(Client {
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            address: "10.0.0.2".parse().expect("an address"),
            port: 50_000,
            interface: 3,
            interface_name: Some("lan0".into()),
            vlan: 0,
            device: Some(Id::from_u128(9)),
            trust_class: None,
        }),
        destination: "192.0.2.1".parse().expect("an address"),
        destination_port: 443,
        protocol: 6,
        names: vec!["www.example".into()],
        server_name: None,
        paths: vec![path(at(0), "wg-a")],
        path_changes: 0,
        sent: Some(Traffic { packets: 3, bytes: 300 }),
        received: None,
        last_at: None,
        ended_at: None,
        end: None,
    }
}

proptest! {
    #[test]
    fn records_survive_their_encoding(records in proptest::collection::vec(record(), 1..4)) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(&mut bytes, record));
        let read: Vec<FlowRecord> = views(&bytes).filter_map(|view| view.record()).collect();
        prop_assert_eq!(&read, &records);
        prop_assert_eq!(views(&bytes).map(|view| view.length()).sum::<usize>(), bytes.len());
        for (view, record) in views(&bytes).zip(&records) {
            prop_assert_eq!(view.flow_id(), Some(record.flow_id));
            prop_assert_eq!(i128::from(view.time()), record.written_at.as_nanosecond());
        }
    }

    #[test]
    fn a_record_that_is_cut_is_no_record(record in record(), part in 0.0..1.0) {
        let mut bytes = Vec::new();
        encode(&mut bytes, &record);
        let length = (bytes.len() as f64 * part) as usize;
        prop_assert_eq!(views(&bytes[..length]).count(), 0);
        // Nor is one whose length is that of a part.
        let mut short = bytes[..length].to_vec();
        if let (Some(head), Ok(length)) = (short.first_chunk_mut(), u16::try_from(length.saturating_sub(2))) {
            *head = length.to_le_bytes();
        }
        prop_assert!(views(&short).all(|view| view.record().is_none()));
    }

    #[test]
    fn ids_of_flows_are_read_as_they_are_shown(start in 0i64..1 << 43, distinction in any::<[u8; 8]>()) {
        let start = Timestamp::from_millisecond(start).expect("a time");
        let id = FlowId::new(start, &distinction);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert_eq!(id.start(), start);
    }
}

#[test]
fn only_a_flow_id_is_read_as_one() {
    for text in ["", "1", "+000000000000000", "00000000000000000", "000000000000000g"] {
        assert!(text.parse::<FlowId>().is_err(), "{text}");
    }
}

#[test]
fn first_path_and_newest_ones_are_kept() {
    let mut record = plain();
    let first = record.paths[0].clone();
    assert!(!record.change_path(FlowPath { at: at(1), generation: 8, ..first.clone() }), "the same path");
    for number in 1..=20u8 {
        let egress = Some(format!("wg-{number}"));
        assert!(record.change_path(FlowPath { at: at(i64::from(number)), egress, ..first.clone() }));
    }
    assert_eq!((record.path_changes, record.paths.len()), (20, MAX_PATHS));
    let egresses: Vec<&str> = record.paths.iter().filter_map(|path| path.egress.as_deref()).collect();
    assert_eq!(egresses, ["wg-a", "wg-14", "wg-15", "wg-16", "wg-17", "wg-18", "wg-19", "wg-20"]);
}

#[test]
fn conditions_of_a_filter_hold_together() {
    let record = plain();
    let matches = |filter: FlowFilter| filter.is_match(&record);
    let all = FlowFilter {
        flow_id: Some(record.flow_id),
        client: Some(ClientCondition::Device(Id::from_u128(9))),
        destination: Some(record.destination),
        port: Some(443),
        protocol: Some(6),
        domain: Some(DomainCondition::Within("example".into())),
        country: Some(in_country("DE")),
        policy: Some(Id::from_u128(1)),
        egress: Some("wg-a".into()),
        decision: Some(Decision::Permitted),
        reason: Some(10),
        min_bytes: Some(300),
        since: Some(at(5000)),
        begun_since: None,
        until: Some(at(1)),
    };
    assert!(matches(all.clone()) && matches(FlowFilter::default()));
    for broken in [
        FlowFilter { flow_id: Some(FlowId::from_raw(1)), ..all.clone() },
        FlowFilter { client: Some(ClientCondition::Mac(MacAddr([2; 6]))), ..all.clone() },
        FlowFilter { destination: Some("192.0.2.2".parse().expect("an address")), ..all.clone() },
        FlowFilter { port: Some(80), ..all.clone() },
        FlowFilter { protocol: Some(17), ..all.clone() },
        FlowFilter { domain: Some(DomainCondition::Within("ample".into())), ..all.clone() },
        FlowFilter { domain: Some(DomainCondition::Contains("wwww".into())), ..all.clone() },
        FlowFilter { country: Some(in_country("FR")), ..all.clone() },
        FlowFilter { policy: Some(Id::from_u128(2)), ..all.clone() },
        FlowFilter { egress: Some("wg-b".into()), ..all.clone() },
        FlowFilter { decision: Some(Decision::Dropped), ..all.clone() },
        FlowFilter { reason: Some(12), ..all.clone() },
        FlowFilter { min_bytes: Some(301), ..all.clone() },
        FlowFilter { since: Some(at(5001)), ..all.clone() },
        FlowFilter { until: Some(at(0)), ..all.clone() },
    ] {
        assert!(!matches(broken.clone()), "{broken:?}");
    }
    let uncounted = FlowRecord { sent: None, ..record.clone() };
    assert_eq!(uncounted.bytes(), None);
    assert!(!FlowFilter { min_bytes: Some(0), ..FlowFilter::default() }.is_match(&uncounted), "unknown");
}

/// Condition by a database in which all addresses of IPv4 are in Germany.
fn in_country(code: &str) -> CountryCondition {
    let countries = Arc::new(OneCountry("DE".parse().expect("a code")));
    CountryCondition { code: code.parse().expect("a code"), countries }
}

fn shown_totals(row: &TopRow) -> (Option<&str>, u64, u64, u64) {
    let Totals { flows, denied, received, .. } = row.totals;
    (row.name.as_deref(), flows, received.bytes, denied)
}

#[test]
fn totals_are_ordered_by_bytes_and_count_a_flow_once() {
    let mut table = TopTable::new(TopKey::Egress);
    let small = plain();
    table.add(&small, &());
    let mut large = plain();
    large.paths[0].egress = Some("wg-b".into());
    large.received = Some(Traffic { packets: 9, bytes: 9000 });
    table.add(&large, &());
    table.add(&FlowRecord { part: 1, ..large.clone() }, &());
    let mut denied = plain();
    (denied.paths[0].egress, denied.sent) = (None, None);
    denied.paths[0].decision = Decision::Dropped;
    table.add(&denied, &());
    let (rows, others) = table.rows(10);
    let shown: Vec<_> = rows.iter().map(shown_totals).collect();
    assert_eq!(shown, [(Some("wg-b"), 1, 18_000, 0), (Some("wg-a"), 1, 0, 0), (None, 1, 0, 1)]);
    assert_eq!((rows[2].totals.uncounted, others), (1, 0));
}

/// Database in which all addresses of IPv4 are in one country.
pub(super) struct OneCountry(pub CountryCode);

impl Countries for OneCountry {
    fn country(&self, address: IpAddr) -> Option<CountryCode> {
        address.is_ipv4().then_some(self.0)
    }
}

#[test]
fn totals_by_country_have_one_row_for_destinations_of_unknown_countries() {
    let countries = OneCountry("DE".parse().expect("a code"));
    let mut table = TopTable::new(TopKey::Country);
    let four = FlowRecord { destination: [203, 0, 113, 7].into(), ..plain() };
    let six = FlowRecord { destination: "2001:db8::7".parse().expect("an address"), ..plain() };
    [&four, &four, &six].into_iter().for_each(|record| table.add(record, &countries));
    let (rows, _) = table.rows(10);
    let shown: Vec<_> = rows.iter().map(|row| (row.name.as_deref(), row.totals.flows)).collect();
    assert_eq!(shown, [(Some("DE"), 2), (None, 1)]);
}

proptest! {
    #[test]
    fn records_come_out_of_columns_as_they_went_in(records in proptest::collection::vec(record(), 0..20)) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(&mut bytes, record));
        let columns = to_columns(&bytes).expect("records");
        prop_assert_eq!(from_columns(&columns), Some(bytes.clone()));
        bytes.push(0);
        prop_assert_eq!(to_columns(&bytes), None, "more than records");
    }
}

#[test]
fn equal_clients_destinations_and_decisions_are_written_once() {
    let mut bytes = Vec::new();
    (0..1000).for_each(|_| encode(&mut bytes, &plain()));
    let columns = to_columns(&bytes).expect("records");
    assert!(columns.len() * 5 < bytes.len(), "{} of {} bytes", columns.len(), bytes.len());
    for length in 0..columns.len().min(200) {
        assert_eq!(from_columns(&columns[..length]), None);
    }
}
