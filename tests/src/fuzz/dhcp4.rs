//! Target: messages of DHCP for IPv4.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use gateway_core::state_machines::dhcp::{
    Datagram, Lease, LeaseStatus, Output, Reply, Request, Scope, Server, ServerConfig, ServerReply, append,
    recover,
};
use gateway_model::MacAddr;
use gateway_model::settings::groups::AddressRange;
use jiff::{SignedDuration, Timestamp};

const LINK: u32 = 2;
/// Length of a message up to the options.
const HEADER: usize = 240;
/// Smallest and largest limit of a reply (RFC 2131, section 2).
const SIZES: std::ops::RangeInclusive<usize> = 300..=1472;

/// Reads the bytes as a message, and as a sequence of messages: each behind its length (two bytes), with the client, its
/// address, flags and the seconds before it (one byte each), and options. Checks that a reply fits, that what it promises
/// is stored before, now or earlier, and that no address has two clients.
pub fn dhcp4(data: &[u8]) {
    let _ = Request::parse(data);
    let _ = ServerReply::parse(data);
    let _ = Datagram::parse(data);
    let _ = recover(data);
    let mut server = Server::default();
    let mut now = Timestamp::UNIX_EPOCH;
    server.configure(ServerConfig { scopes: vec![scope()], reservations: BTreeMap::new() }, now);
    let mut stored = BTreeMap::new();
    let mut left = data;
    while let Some((length, rest)) = left.split_first_chunk::<2>() {
        let (piece, rest) = rest.split_at(rest.len().min(u16::from_be_bytes(*length).into()));
        left = rest;
        let Some((head, options)) = piece.split_first_chunk::<4>() else { continue };
        now += SignedDuration::from_secs(head[3].into());
        let mut output = Output::default();
        server.poll(now, &mut output);
        if let Ok(request) = Request::parse(&message(*head, options)) {
            server.handle(request, LINK, now, &mut output);
        }
        check(&server, &output, &mut stored, now);
    }
}

fn message([client, address, flags, _]: [u8; 4], options: &[u8]) -> Vec<u8> {
    let mut message = vec![0; HEADER];
    message[..3].copy_from_slice(&[1, 1, 6]);
    message[10] = flags & 0x80;
    if flags & 1 != 0 {
        message[12..16].copy_from_slice(&[192, 168, 1, address]);
    }
    if flags & 2 != 0 {
        message[24..28].copy_from_slice(&[192, 168, 1, 2]);
    }
    message[28..34].copy_from_slice(&[2, 0, 0, 0, 0, client & 7]);
    message[236..].copy_from_slice(&[99, 130, 83, 99]);
    message.extend(options);
    message
}

fn scope() -> Scope {
    let host = |number| Ipv4Addr::new(192, 168, 1, number);
    Scope {
        name: "lan0".into(),
        interface: "lan0".into(),
        index: LINK,
        mac: [2; 6],
        network: "192.168.1.0/24".parse().expect("a network"),
        server: host(1),
        on_link: true,
        range: AddressRange { first: host(100), last: host(103) },
        exclusions: Vec::new(),
        router: None,
        dns: vec![host(1)],
        domain: "lan".into(),
        lease_sec: 600,
        options: BTreeMap::from([(121, vec![8, 10, 192, 168, 1, 2]), (200, vec![7; 300])]),
        authoritative: true,
        probes: false,
    }
}

fn check(server: &Server, output: &Output, stored: &mut BTreeMap<Ipv4Addr, Lease>, now: Timestamp) {
    stored.extend(output.leases.iter().map(|lease| (lease.address, lease.clone())));
    for reply in output.replies.iter().chain(&output.stored_replies) {
        assert!(SIZES.contains(&reply.message.len()), "{}", reply.message.len());
        let address = Ipv4Addr::from(*reply.message[16..].first_chunk::<4>().expect("a header"));
        assert!(address.is_unspecified() || server.config().scopes[0].has_host(address), "{address}");
    }
    for reply in &output.stored_replies {
        let promised = ServerReply::parse(&reply.message).expect("an acknowledgement").offered;
        let lease = promised.and_then(|address| stored.get(&address)).expect("a stored lease");
        assert!(lease.is_active(now.as_second()) && lease.mac == client(reply));
    }
    let mut journal = Vec::new();
    output.leases.iter().for_each(|lease| append(&mut journal, lease));
    let expected: BTreeMap<Ipv4Addr, Lease> =
        output.leases.iter().map(|lease| (lease.address, lease.clone())).collect();
    assert_eq!(recover(&journal).leases, expected, "a lease changes on the disk");
    let usage = &server.pools()[0];
    assert_eq!(usage.size, usage.active + usage.offered + usage.declined + usage.free);
    let active = server.leases(now).filter(|(_, status)| *status == LeaseStatus::Active);
    let clients: Vec<_> = active.map(|(lease, _)| (lease.mac, lease.client_id.clone())).collect();
    assert!(
        clients.iter().enumerate().all(|(index, client)| !clients[..index].contains(client)),
        "{clients:?}"
    );
}

fn client(reply: &Reply) -> MacAddr {
    MacAddr(*reply.message[28..].first_chunk().expect("a header"))
}
