//! Behaviour of the server.

mod property;
mod withholding;

use gateway_model::settings::groups::AddressRange;

use super::super::reply::Destination;
use super::*;

pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
pub(super) const LINK: u32 = 2;
pub(super) const LEASE_SEC: u32 = 600;

pub(super) fn host(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 1, number)
}

pub(super) fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_795_000_000_000 + millis).unwrap()
}

pub(super) fn scope(first: u8, last: u8) -> Scope {
    Scope {
        name: "lan0".into(),
        interface: "lan0".into(),
        index: LINK,
        mac: [2; 6],
        network: "192.168.1.0/24".parse().unwrap(),
        server: SERVER,
        on_link: true,
        range: AddressRange { first: host(first), last: host(last) },
        exclusions: Vec::new(),
        router: None,
        dns: vec![SERVER],
        domain: "lan".into(),
        lease_sec: LEASE_SEC,
        options: BTreeMap::new(),
        authoritative: true,
        probes: false,
    }
}

pub(super) fn config(scope: Scope) -> ServerConfig {
    ServerConfig { scopes: vec![scope], reservations: BTreeMap::new() }
}

pub(super) fn reserved(mut config: ServerConfig, mac: MacAddr, address: Ipv4Addr) -> ServerConfig {
    let hostname = Some("reserved".to_owned());
    config.reservations.insert(mac, Reservation { address, hostname });
    config
}

pub(super) fn server(config: ServerConfig) -> Server {
    let mut server = Server::default();
    server.configure(config, at(0));
    server
}

/// Returns a message of a client with these options.
pub(super) fn message(client: u8, kind: u8, options: &[&[u8]], change: impl FnOnce(&mut Vec<u8>)) -> Request {
    let mut bytes = super::super::message::discover(u32::from(client), mac(client).octets());
    bytes.truncate(super::super::message::HEADER);
    bytes[10] = 0;
    bytes.extend([53, 1, kind]);
    options.iter().for_each(|option| bytes.extend(*option));
    bytes.push(255);
    change(&mut bytes);
    Request::parse(&bytes).unwrap()
}

pub(super) fn discover(client: u8) -> Request {
    message(client, 1, &[], |_| {})
}

fn option(code: u8, address: Ipv4Addr) -> Vec<u8> {
    [&[code, 4][..], &address.octets()].concat()
}

/// Request for an offered address.
pub(super) fn select(client: u8, address: Ipv4Addr) -> Request {
    message(client, 3, &[&option(54, SERVER), &option(50, address)], |_| {})
}

/// Request for an address after a restart of the client.
pub(super) fn reboot(client: u8, address: Ipv4Addr) -> Request {
    message(client, 3, &[&option(50, address)], |_| {})
}

pub(super) fn renew(client: u8, address: Ipv4Addr) -> Request {
    message(client, 3, &[], |bytes| bytes[12..16].copy_from_slice(&address.octets()))
}

pub(super) fn release(client: u8, address: Ipv4Addr) -> Request {
    message(client, 7, &[&option(54, SERVER)], |bytes| bytes[12..16].copy_from_slice(&address.octets()))
}

pub(super) fn decline(client: u8, address: Ipv4Addr) -> Request {
    message(client, 4, &[&option(54, SERVER), &option(50, address)], |_| {})
}

/// Message of the server: its kind, the address, and all options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub kind: u8,
    pub address: Ipv4Addr,
    pub options: BTreeMap<u8, Vec<u8>>,
}

pub(super) fn read(reply: &Reply) -> Answer {
    let message = dhcproto::v4::borrowed::Message::new(&reply.message).unwrap();
    let options: BTreeMap<u8, Vec<u8>> =
        message.opts().map(|option| (option.code().into(), option.data().to_vec())).collect();
    Answer { kind: options[&53][0], address: message.yiaddr(), options }
}

/// Handles a request. Returns the replies, and applies nothing else.
pub(super) fn ask(server: &mut Server, request: Request, now: Timestamp) -> (Vec<Answer>, Output) {
    let mut output = Output::default();
    server.handle(request, LINK, now, &mut output);
    (output.replies.iter().chain(&output.stored_replies).map(read).collect(), output)
}

pub(super) fn one(server: &mut Server, request: Request, now: Timestamp) -> Answer {
    let (answers, output) = ask(server, request, now);
    let [answer] = &answers[..] else { panic!("{output:?}") };
    answer.clone()
}

pub(super) fn silent(server: &mut Server, request: Request, now: Timestamp) {
    let (answers, _) = ask(server, request, now);
    assert_eq!(answers, []);
}

/// Gets an address for a client.
pub(super) fn lease(server: &mut Server, client: u8, now: Timestamp) -> Ipv4Addr {
    let offer = one(server, discover(client), now);
    assert_eq!(offer.kind, ReplyKind::Offer as u8);
    let ack = one(server, select(client, offer.address), now);
    assert_eq!((ack.kind, ack.address), (ReplyKind::Ack as u8, offer.address));
    ack.address
}

pub(super) const ACK: u8 = ReplyKind::Ack as u8;
pub(super) const NAK: u8 = ReplyKind::Nak as u8;

#[test]
fn client_gets_an_address_with_the_parameters_of_the_network() {
    let mut server = server(config(scope(100, 110)));
    let offer = one(&mut server, discover(1), at(0));
    let (_, output) = ask(&mut server, select(1, offer.address), at(1));
    assert!(output.replies.is_empty(), "an acknowledgement waits for its lease");
    let [lease] = &output.leases[..] else { panic!("{output:?}") };
    assert_eq!((lease.address, lease.mac), (host(100), mac(1)));
    // The lease ends no earlier than the client knows, which counts from within a second.
    assert!((0..=1).contains(&(lease.ends - lease.starts - i64::from(LEASE_SEC))));
    let reply = &output.stored_replies[0];
    assert_eq!(reply.to, Destination::Hardware(mac(1).octets(), host(100)));
    let ack = read(reply);
    let expected: [(u8, &[u8]); 9] = [
        (1, &[255, 255, 255, 0]),
        (3, &SERVER.octets()),
        (6, &SERVER.octets()),
        (15, b"lan"),
        (28, &[192, 168, 1, 255]),
        (51, &600u32.to_be_bytes()),
        (54, &SERVER.octets()),
        (58, &300u32.to_be_bytes()),
        (59, &525u32.to_be_bytes()),
    ];
    for (code, value) in expected {
        assert_eq!(ack.options[&code], value, "{code}");
    }
    assert_eq!((reply.message.len(), ack.kind), (300, ACK));
}

#[test]
fn options_follow_the_list_of_the_client() {
    let mut scope = scope(100, 110);
    let routes = vec![8, 10, 192, 168, 1, 2];
    scope.options =
        BTreeMap::from([(42, vec![192, 168, 1, 1]), (108, vec![0, 0, 7, 8]), (121, routes.clone())]);
    let mut server = server(config(scope));
    let ask_for = |server: &mut Server, list: &[u8]| {
        let list = [&[55, u8::try_from(list.len()).unwrap()], list].concat();
        one(server, message(1, 1, &[&list], |_| {}), at(0)).options
    };
    let options = ask_for(&mut server, &[121, 6, 108]);
    assert_eq!(options[&121], [&routes[..], &[0, 192, 168, 1, 1]].concat(), "with a default route");
    assert_eq!(options[&108], [0, 0, 7, 8]);
    assert!(!options.contains_key(&42) && !options.contains_key(&3));
    let all = one(&mut server, discover(1), at(0)).options;
    assert!(all.contains_key(&42) && !all.contains_key(&108), "only for clients that can do without IPv4");
}

#[test]
fn identifier_and_relay_information_come_back() {
    let mut server = server(config(scope(100, 110)));
    let information = [82u8, 4, 1, 2, 7, 7];
    let request = message(1, 1, &[&[61, 3, 0, 9, 9], &information], |bytes| {
        bytes[24..28].copy_from_slice(&host(2).octets());
    });
    let (answers, output) = ask(&mut server, request, at(0));
    assert_eq!(output.replies[0].to, Destination::Relay(host(2)));
    assert_eq!(
        (answers[0].options[&61].as_slice(), answers[0].options[&82].as_slice()),
        (&[0, 9, 9][..], &information[2..])
    );
}

#[test]
fn requests_of_unknown_networks_are_ignored() {
    let mut server = server(config(scope(100, 110)));
    let relayed = message(1, 1, &[], |bytes| bytes[24..28].copy_from_slice(&[10, 0, 0, 1]));
    silent(&mut server, relayed, at(0));
    let mut output = Output::default();
    server.handle(discover(1), LINK + 1, at(0), &mut output);
    assert_eq!((output, server.counters().ignored), (Output::default(), 2));
}

#[test]
fn relayed_network_gets_its_relay_as_the_router() {
    let relayed = Scope {
        name: "far".into(),
        network: "10.9.0.0/24".parse().unwrap(),
        on_link: false,
        range: AddressRange { first: Ipv4Addr::new(10, 9, 0, 10), last: Ipv4Addr::new(10, 9, 0, 20) },
        ..scope(1, 1)
    };
    let mut server =
        server(ServerConfig { scopes: vec![scope(100, 110), relayed], reservations: BTreeMap::new() });
    let through = |request: &[u8; 4], kind, options: &[&[u8]]| {
        let relay = *request;
        message(1, kind, options, |bytes| bytes[24..28].copy_from_slice(&relay))
    };
    let offer = one(&mut server, through(&[10, 9, 0, 1], 1, &[]), at(0));
    assert_eq!(
        (offer.address, offer.options[&3].as_slice()),
        (Ipv4Addr::new(10, 9, 0, 10), &[10, 9, 0, 1][..])
    );
    let request = through(&[10, 9, 0, 1], 3, &[&option(54, SERVER), &option(50, offer.address)]);
    assert_eq!(one(&mut server, request, at(0)).kind, ACK);
    let (answers, output) = ask(&mut server, renew(1, offer.address), at(1000));
    assert_eq!((answers[0].kind, output.stored_replies[0].to), (ACK, Destination::Client(offer.address)));
}

#[test]
fn wrong_network_is_refused() {
    let mut server = server(config(scope(100, 110)));
    let (answers, output) = ask(&mut server, reboot(1, Ipv4Addr::new(10, 0, 0, 5)), at(0));
    assert_eq!((answers[0].kind, output.replies[0].to), (NAK, Destination::Broadcast));
    assert_eq!(one(&mut server, renew(1, Ipv4Addr::new(10, 0, 0, 5)), at(0)).kind, NAK);
    server.configure(config(Scope { authoritative: false, ..scope(100, 110) }), at(0));
    silent(&mut server, reboot(1, Ipv4Addr::new(10, 0, 0, 5)), at(0));
}

#[test]
fn only_server_of_the_network_confirms_addresses_that_it_forgot() {
    let mut server = server(config(scope(100, 110)));
    assert_eq!(one(&mut server, reboot(1, host(105)), at(0)).kind, ACK);
    assert_eq!(one(&mut server, reboot(2, host(105)), at(0)).kind, NAK, "it is of another client now");
    assert_eq!(one(&mut server, reboot(2, host(50)), at(0)).kind, NAK, "out of the range");
    server.configure(config(Scope { authoritative: false, ..scope(100, 110) }), at(0));
    silent(&mut server, reboot(3, host(106)), at(0));
    assert_eq!(one(&mut server, reboot(1, host(105)), at(0)).kind, ACK);
}

#[test]
fn a_client_keeps_its_address() {
    let mut server = server(config(scope(100, 110)));
    let first = lease(&mut server, 1, at(0));
    lease(&mut server, 2, at(0));
    assert_eq!(lease(&mut server, 1, at(1000)), first);
    let renewed = one(&mut server, renew(1, first), at(300_000));
    assert_eq!((renewed.kind, renewed.address), (ACK, first));
    // Long after its end, while there are addresses that no one had.
    let mut output = Output::default();
    server.poll(at(10_000_000), &mut output);
    assert_eq!(lease(&mut server, 1, at(10_000_000)), first);
    ask(&mut server, release(1, first), at(10_000_001));
    assert_eq!(lease(&mut server, 1, at(10_000_002)), first);
}

#[test]
fn a_range_that_changes_keeps_the_leases() {
    let mut server = server(config(scope(100, 110)));
    let first = lease(&mut server, 1, at(0));
    server.configure(config(scope(150, 160)), at(0));
    assert_eq!(one(&mut server, renew(1, first), at(1000)).kind, ACK);
    assert_eq!(lease(&mut server, 2, at(1000)), host(150));
    let excluded = AddressRange { first, last: first };
    server.configure(config(Scope { exclusions: vec![excluded], ..scope(100, 110) }), at(2000));
    assert_eq!(one(&mut server, renew(1, first), at(3000)).kind, NAK, "excluded");
    assert_eq!(lease(&mut server, 1, at(3000)), host(101));
}

#[test]
fn reservations_are_for_their_client_only() {
    let mut server = server(reserved(config(scope(100, 101)), mac(9), host(100)));
    assert_eq!(lease(&mut server, 1, at(0)), host(101), "the other address is skipped");
    silent(&mut server, discover(2), at(0));
    assert_eq!(one(&mut server, reboot(2, host(100)), at(0)).kind, NAK);
    let offer = one(&mut server, message(9, 1, &[&[61, 3, 0, 1, 2]], |_| {}), at(0));
    assert_eq!(offer.address, host(100));
    let ack = one(&mut server, select(9, host(100)), at(0));
    assert_eq!(
        (ack.kind, server.leases(at(0)).filter(|(lease, _)| server.is_reserved(lease)).count()),
        (ACK, 1)
    );
    assert_eq!(
        one(&mut server, reboot(9, host(101)), at(0)).kind,
        NAK,
        "another address than the reserved one"
    );
}

#[test]
fn changed_reservation_is_refused_at_the_next_renewal() {
    let mut server = server(config(scope(100, 110)));
    let before = lease(&mut server, 1, at(0));
    server.configure(reserved(config(scope(100, 110)), mac(1), host(50)), at(0));
    assert_eq!(one(&mut server, renew(1, before), at(1000)).kind, NAK);
    assert_eq!(lease(&mut server, 1, at(2000)), host(50));
    let status = server.leases(at(2000)).find(|(lease, _)| lease.address == before).unwrap().1;
    assert_eq!(status, LeaseStatus::Released, "a client has one address in a network");
    // The address of a client becomes reserved for another one, which gets it when it is free.
    server.configure(reserved(config(scope(100, 110)), mac(2), host(50)), at(3000));
    assert_ne!(lease(&mut server, 2, at(3000)), host(50));
    assert_eq!(one(&mut server, renew(1, host(50)), at(4000)).kind, NAK);
    let mut output = Output::default();
    server.poll(at(700_000), &mut output);
    assert_eq!(lease(&mut server, 2, at(700_000)), host(50));
}

#[test]
fn declined_address_is_not_given_out_for_a_time() {
    let mut server = server(config(scope(100, 101)));
    let first = lease(&mut server, 1, at(0));
    ask(&mut server, decline(2, first), at(1));
    assert_eq!(server.pools()[0].declined, 0, "of another client");
    let (_, output) = ask(&mut server, decline(1, first), at(1));
    assert_eq!(output.leases[0].state, LeaseState::Declined);
    assert_eq!(lease(&mut server, 1, at(2)), host(101));
    silent(&mut server, discover(2), at(3));
    assert_eq!(one(&mut server, reboot(2, first), at(3)).kind, NAK);
    let later = at(QUARANTINE_SEC * 1000 + 1000);
    server.poll(later, &mut Output::default());
    assert_eq!((lease(&mut server, 2, later), server.pools()[0].declined), (first, 0));
}

#[test]
fn address_is_probed_before_it_is_offered() {
    let mut server = server(config(Scope { probes: true, ..scope(100, 110) }));
    let (answers, output) = ask(&mut server, discover(1), at(0));
    let probe = Probe { address: host(100), interface: LINK, server: SERVER, on_link: true };
    assert_eq!((answers.len(), output.probes.as_slice()), (0, &[probe][..]));
    let (answers, output) = ask(&mut server, discover(1), at(100));
    assert_eq!((answers.len(), output.probes.len()), (0, 0), "it repeats itself");
    let mut output = Output::default();
    server.handle_probe_answer(host(100), Some(mac(1)), at(150), &mut output);
    assert_eq!(output, Output::default(), "the client has the address itself");
    server.handle_probe_answer(host(100), Some(mac(77)), at(200), &mut output);
    assert_eq!((output.leases[0].state, output.leases[0].mac), (LeaseState::Declined, mac(77)));
    assert_eq!(output.probes[0].address, host(101));
    let mut output = Output::default();
    let deadline = server.next_deadline().unwrap();
    server.poll(deadline, &mut output);
    assert_eq!(output.replies.iter().map(read).map(|offer| offer.address).collect::<Vec<_>>(), [host(101)]);
    assert_eq!(one(&mut server, discover(1), deadline).address, host(101), "a second probe is not needed");
    assert_eq!(one(&mut server, select(1, host(101)), deadline).kind, ACK);
    assert_eq!(one(&mut server, discover(1), deadline).address, host(101), "nor one for the own address");
}

#[test]
fn clients_that_only_discover_lock_no_one_out() {
    let mut server = server(config(scope(100, 109)));
    let active = lease(&mut server, 1, at(0));
    for client in 2..=200 {
        ask(&mut server, discover(client), at(i64::from(client)));
    }
    let [usage] = &server.pools()[..] else { panic!() };
    assert_eq!((usage.active, usage.offered, usage.free), (1, 9, 0));
    assert!(usage.percent() > 99.9 && server.counters().evicted_offers > 100);
    // A client that completes gets an address although its offer was withdrawn, and no one loses a lease.
    let offer = one(&mut server, discover(201), at(300)).address;
    (202..=230).for_each(|client| drop(ask(&mut server, discover(client), at(301))));
    assert_eq!(one(&mut server, select(201, offer), at(302)).kind, ACK);
    assert_eq!(one(&mut server, renew(1, active), at(303)).kind, ACK);
    server.poll(at(60_000), &mut Output::default());
    assert_eq!(server.pools()[0].offered, 0, "offers end");
}

#[test]
fn full_pool_is_counted() {
    let mut server = server(config(scope(100, 101)));
    lease(&mut server, 1, at(0));
    lease(&mut server, 2, at(0));
    silent(&mut server, discover(3), at(1));
    assert_eq!((server.counters().without_address, server.pools()[0].free), (1, 0));
    server.poll(at(700_000), &mut Output::default());
    assert_eq!(lease(&mut server, 3, at(700_000)), host(100), "the address whose lease ended first");
}

#[test]
fn client_that_chooses_another_server_shows_it() {
    let mut server = server(config(scope(100, 101)));
    let offer = one(&mut server, discover(1), at(0)).address;
    let request = message(1, 3, &[&option(54, host(66)), &option(50, offer)], |_| {});
    let (answers, output) = ask(&mut server, request, at(1));
    assert_eq!((answers.len(), output.foreign_servers.as_slice()), (0, &[(LINK, host(66))][..]));
    assert_eq!(server.pools()[0].offered, 0);
}

#[test]
fn configured_host_gets_parameters_without_a_lease() {
    let mut server = server(config(scope(100, 101)));
    let inform = message(1, 8, &[], |bytes| bytes[12..16].copy_from_slice(&host(30).octets()));
    let (answers, output) = ask(&mut server, inform, at(0));
    assert_eq!((answers[0].kind, answers[0].address), (ACK, Ipv4Addr::UNSPECIFIED));
    assert!(!answers[0].options.contains_key(&51) && output.leases.is_empty());
    assert_eq!(output.replies[0].to, Destination::Client(host(30)));
}

#[test]
fn reply_is_not_longer_than_the_client_accepts() {
    let mut scope = scope(100, 101);
    scope.options = (200..230).map(|code| (code, vec![7; 12])).collect();
    let mut server = server(config(scope));
    let information = [&[82, 200][..], &[9; 200]].concat();
    let mut output = Output::default();
    server.handle(message(1, 1, &[&information], |_| {}), LINK, at(0), &mut output);
    let length = output.replies[0].message.len();
    assert!((400..=548).contains(&length), "{length}");
    let options = read(&output.replies[0]).options;
    assert!(options.contains_key(&82) && options.contains_key(&3) && options.contains_key(&200));
    let big = message(1, 1, &[&[57, 2, 5, 220]], |_| {});
    let (answers, _) = ask(&mut server, big, at(0));
    assert!(answers[0].options.len() > options.len());
}

#[test]
fn release_counts_only_if_no_host_answers_for_the_address() {
    let mut server = server(config(Scope { probes: true, ..scope(100, 110) }));
    ask(&mut server, discover(1), at(0));
    server.poll(at(500), &mut Output::default());
    let (_, output) = ask(&mut server, select(1, host(100)), at(600));
    let is_active = |server: &Server, time| {
        server.leases(time).any(|(lease, status)| lease.address == host(100) && status == LeaseStatus::Active)
    };
    assert!(is_active(&server, at(700)), "{output:?}");
    // Another host writes the message; the client is there and answers.
    let (_, output) = ask(&mut server, release(1, host(100)), at(1000));
    let probe = Probe { address: host(100), interface: LINK, server: SERVER, on_link: true };
    assert_eq!((output.leases.len(), output.probes.as_slice()), (0, &[probe][..]));
    server.handle_probe_answer(host(100), Some(mac(1)), at(1100), &mut Output::default());
    server.poll(at(3000), &mut Output::default());
    assert!(is_active(&server, at(3000)), "the release was forged");
    // The client has gone.
    ask(&mut server, release(1, host(100)), at(4000));
    assert!(server.next_deadline().is_some_and(|at_last| at_last <= at(4500)));
    let mut output = Output::default();
    server.poll(at(4500), &mut output);
    assert_eq!(output.leases.first().map(|lease| lease.state), Some(LeaseState::Released));
    assert!(!is_active(&server, at(4500)));
}

/// Returns the states of the leases, by the last octet of the address.
fn states(server: &Server, time: Timestamp) -> BTreeMap<u8, LeaseStatus> {
    server.leases(time).map(|(lease, status)| (lease.address.octets()[3], status)).collect()
}

#[test]
fn declined_address_is_kept_from_clients_only_if_another_host_answers_for_it() {
    let mut server = server(config(Scope { probes: true, ..scope(100, 110) }));
    let lease = |server: &mut Server, client: u8, time: i64| {
        let (_, output) = ask(server, discover(client), at(time));
        let address = output.probes[0].address;
        server.poll(at(time + 500), &mut Output::default());
        assert_eq!(one(server, select(client, address), at(time + 600)).kind, ACK);
        address
    };
    let first = lease(&mut server, 1, 0);
    // Another host writes the message; the client is there and answers.
    let (_, output) = ask(&mut server, decline(1, first), at(1000));
    let probe = Probe { address: first, interface: LINK, server: SERVER, on_link: true };
    assert_eq!((output.leases.len(), output.probes.as_slice()), (0, &[probe][..]));
    server.handle_probe_answer(first, Some(mac(1)), at(1100), &mut Output::default());
    server.poll(at(3000), &mut Output::default());
    assert_eq!(states(&server, at(3000)), [(100, LeaseStatus::Active)].into(), "the message was forged");
    // Another host has the address.
    ask(&mut server, decline(1, first), at(4000));
    let mut output = Output::default();
    server.handle_probe_answer(first, Some(mac(77)), at(4100), &mut output);
    assert_eq!((output.leases[0].state, output.leases[0].mac), (LeaseState::Declined, mac(77)));
    assert_eq!(states(&server, at(5000)), [(100, LeaseStatus::Declined)].into());
    // No host has it: made-up clients take no address out of the pool.
    for client in 2..60 {
        let time = 10_000 * i64::from(client);
        let address = lease(&mut server, client, time);
        ask(&mut server, decline(client, address), at(time + 700));
        server.poll(at(time + 2000), &mut Output::default());
    }
    let [usage] = &server.pools()[..] else { panic!() };
    assert_eq!((usage.active, usage.declined, usage.free), (0, 1, 10));
}

#[test]
fn clients_that_decline_leave_most_of_a_pool_that_is_not_probed() {
    let mut server = server(config(scope(100, 119)));
    for client in 1..100 {
        let address = lease(&mut server, client, at(i64::from(client)));
        ask(&mut server, decline(client, address), at(i64::from(client)));
    }
    let [usage] = &server.pools()[..] else { panic!() };
    assert_eq!((usage.active, usage.declined, usage.free), (0, 5, 15));
}

#[test]
fn boot_server_and_file_are_in_the_header_too() {
    let options = [(66, b"192.0.2.9".to_vec()), (67, b"pxelinux.0".to_vec())].into();
    let mut server = server(config(Scope { options, ..scope(100, 110) }));
    let (_, output) = ask(&mut server, discover(1), at(0));
    let message = &output.replies[0].message;
    assert_eq!(message[20..24], [192, 0, 2, 9]);
    assert!(message[44..].starts_with(b"192.0.2.9\0") && message[108..].starts_with(b"pxelinux.0\0"));
}

#[test]
fn renewals_of_a_young_lease_change_nothing_on_disk() {
    let mut server = server(config(scope(100, 110)));
    let address = lease(&mut server, 1, at(0));
    let ends = |server: &Server| server.stored().next().expect("a lease").ends;
    let (first, seconds) = (ends(&server), i64::from(scope(100, 110).lease_sec));
    let quarter = seconds * 1000 / 4;
    for ms in [1000, 2000, quarter] {
        let (replies, output) = ask(&mut server, renew(1, address), at(ms));
        assert_eq!((output.leases.len(), ends(&server)), (0, first), "after {ms} ms");
        let left = u32::try_from(seconds - ms / 1000).expect("seconds");
        assert_eq!((replies[0].kind, &replies[0].options[&51]), (ACK, &left.to_be_bytes().to_vec()));
    }
    let (_, output) = ask(&mut server, renew(1, address), at(quarter + 1000));
    assert_eq!((output.leases.len(), ends(&server) - first), (1, quarter / 1000 + 1));
}
