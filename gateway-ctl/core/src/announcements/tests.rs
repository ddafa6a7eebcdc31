//! Packets of announcements, well-formed and damaged.

use proptest::prelude::*;

use super::*;

fn ipv4(source: [u8; 4], from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 255, UDP, 0, 0];
    packet.extend(source);
    packet.extend([224, 0, 0, 251]);
    packet.extend([from.to_be_bytes(), to.to_be_bytes(), [0; 2], [0; 2]].concat());
    packet.extend(payload);
    packet
}

/// Response with one question-less answer section: a PTR record, then the A record of the host with a pointer.
fn response(host: &str, address: [u8; 4]) -> Vec<u8> {
    let mut message = vec![0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    let owner = message.len();
    message.push(host.len() as u8);
    message.extend(host.as_bytes());
    message.extend(b"\x05local\0");
    // Some other record, of type TXT.
    message.extend([0, 16, 0x80, 1, 0, 0, 0, 120, 0, 1, 0]);
    message.extend([0xc0, owner as u8]);
    message.extend([0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4]);
    message.extend(address);
    message
}

const HOST: [u8; 4] = [192, 168, 1, 7];

#[test]
fn a_host_announces_its_name_by_multicast_dns() {
    let packet = ipv4(HOST, MDNS_PORT, MDNS_PORT, &response("Annas-iPhone", HOST));
    let expected = Announcement { address: HOST.into(), name: "Annas-iPhone".into(), from: NameSource::Mdns };
    assert_eq!(parse(&packet), Some(expected));
}

#[test]
fn names_of_other_hosts_and_queries_do_not_count() {
    let other = ipv4(HOST, MDNS_PORT, MDNS_PORT, &response("printer", [192, 168, 1, 8]));
    assert_eq!(parse(&other), None);
    let mut query = response("printer", HOST);
    query[2] = 0;
    assert_eq!(parse(&ipv4(HOST, MDNS_PORT, MDNS_PORT, &query)), None);
    let unicast = ipv4(HOST, 40_000, MDNS_PORT, &response("printer", HOST));
    assert_eq!(parse(&unicast), None);
}

#[test]
fn a_product_is_announced_by_ssdp() {
    let text =
        "NOTIFY * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nSERVER: Linux/4.4 UPnP/1.0 Sonos/70.3\r\n\r\n";
    let announcement = parse(&ipv4(HOST, 40_000, SSDP_PORT, text.as_bytes())).expect("a product");
    assert_eq!((announcement.name.as_str(), announcement.from), ("Sonos/70.3", NameSource::Ssdp));
    let search = text.replace("NOTIFY", "M-SEARCH");
    assert_eq!(parse(&ipv4(HOST, 40_000, SSDP_PORT, search.as_bytes())), None);
}

#[test]
fn pointers_in_circles_and_cut_packets_end() {
    let mut circle = response("a", HOST);
    let at = circle.len() - 16;
    circle[at..at + 2].copy_from_slice(&[0xc0, at as u8]);
    assert_eq!(parse(&ipv4(HOST, MDNS_PORT, MDNS_PORT, &circle)), None);
    let whole = ipv4(HOST, MDNS_PORT, MDNS_PORT, &response("host", HOST));
    for length in 0..whole.len() {
        assert_eq!(parse(&whole[..length]), None, "{length}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_a_bounded_name(
        payload in proptest::collection::vec(any::<u8>(), 0..600),
        is_ssdp in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let port = if is_ssdp { SSDP_PORT } else { MDNS_PORT };
        let mut changed = response("some-host", HOST);
        for (index, byte) in changes {
            let index = index.index(changed.len());
            changed[index] = byte;
        }
        for payload in [&payload, &changed] {
            let name = parse(&ipv4(HOST, MDNS_PORT, port, payload)).map(|one| one.name);
            prop_assert!(name.is_none_or(|name| name.len() <= 4 * MAX_NAME_LENGTH && !name.is_empty()));
        }
    }
}
