//! Protocols above TCP and UDP, distinguished by their content first and by their ports otherwise.

use crate::connections::Dissector;
use crate::{Endpoints, Protocol, Summary, dhcp, dns, quic, stun, tls, wireguard};

const DNS: u16 = 53;
const MDNS: u16 = 5353;
const DHCP: [u16; 2] = [67, 68];
const DHCPV6: [u16; 2] = [546, 547];
/// Ports of TLS: HTTPS, SMTP, DNS, LDAP, IMAP and POP.
const TLS: [u16; 7] = [443, 465, 853, 636, 993, 995, 8443];
/// Ports of QUIC: HTTP/3 and DNS (RFC 9250, and the port of its drafts).
const QUIC: [u16; 4] = [443, 784, 853, 8853];
/// Ports of protocols with the messages of DNS: NetBIOS name service (RFC 1002), LLMNR (RFC 4795).
const OTHER_NAMES: [u16; 2] = [137, 5355];
/// Ports of STUN and TURN.
const STUN: [u16; 2] = [3478, 3479];

/// Reads the payload of a TCP segment.
pub(crate) fn read_stream(
    dissector: &mut Dissector,
    endpoints: &Endpoints,
    payload: &[u8],
    summary: &mut Summary,
) {
    let found = if endpoints.has_port(DNS) {
        // A message may begin in an earlier segment.
        let info = payload.get(2..).map_or_else(|| "part of a message".to_owned(), dns::read);
        Some((Protocol::Dns, info))
    } else if let Some(info) = tls::read(payload) {
        dissector.tls.add(endpoints);
        Some((Protocol::Tls, info))
    } else if dissector.tls.contains(endpoints) || TLS.iter().any(|port| endpoints.has_port(*port)) {
        Some((Protocol::Tls, format!("part of a record, {} bytes", payload.len())))
    } else if let Some(info) = stun::read_framed(payload) {
        dissector.stun.add(endpoints);
        Some((Protocol::Stun, info))
    } else {
        None
    };
    set(found, summary);
}

/// Reads the payload of a UDP datagram.
pub(crate) fn read_datagram(
    dissector: &mut Dissector,
    endpoints: &Endpoints,
    payload: &[u8],
    summary: &mut Summary,
) {
    let between = |ports: &[u16]| ports.iter().any(|port| endpoints.has_port(*port));
    let found = if endpoints.has_port(MDNS) {
        Some((Protocol::Mdns, dns::read(payload)))
    } else if endpoints.has_port(DNS) {
        Some((Protocol::Dns, dns::read(payload)))
    } else if between(&DHCP) {
        Some((Protocol::Dhcp, dhcp::read_v4(payload)))
    } else if between(&DHCPV6) {
        Some((Protocol::Dhcpv6, dhcp::read_v6(payload)))
    } else if let Some(info) = stun::read(payload, between(&STUN)) {
        dissector.stun.add(endpoints);
        Some((Protocol::Stun, info))
    } else if let Some(info) = quic::read_long(payload) {
        dissector.quic.add(endpoints);
        Some((Protocol::Quic, info))
    } else if let Some(info) = wireguard::read(payload) {
        Some((Protocol::Wireguard, info))
    } else if (dissector.quic.contains(endpoints) || between(&QUIC)) && quic::is_short(payload) {
        Some((Protocol::Quic, format!("protected payload, {} bytes", payload.len())))
    } else if between(&OTHER_NAMES) {
        None
    } else {
        dns::read_question(payload).map(|info| (Protocol::Dns, info))
    };
    set(found, summary);
}

fn set(found: Option<(Protocol, String)>, summary: &mut Summary) {
    if let Some((protocol, info)) = found {
        summary.protocol = protocol;
        summary.info = info;
    }
}
