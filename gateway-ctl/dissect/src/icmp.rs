//! ICMP (RFC 792) and ICMPv6 (RFC 4443, RFC 4861).

use std::net::Ipv6Addr;

use etherparse::{Icmpv4Slice, Icmpv6Slice};

use crate::{Protocol, Summary};

pub(crate) fn read_v4(bytes: &[u8], summary: &mut Summary) {
    summary.protocol = Protocol::Icmp;
    let Ok(message) = Icmpv4Slice::from_slice(bytes) else {
        "malformed or cut off".clone_into(&mut summary.info);
        return;
    };
    let (kind, code) = (message.type_u8(), message.code_u8());
    summary.info = match kind {
        0 => echo("echo reply", message.bytes5to8()),
        8 => echo("echo request", message.bytes5to8()),
        3 => format!("destination unreachable: {}", unreachable_v4(code)),
        5 => "redirect".to_owned(),
        11 if code == 0 => "time to live exceeded".to_owned(),
        11 => "fragment reassembly time exceeded".to_owned(),
        12 => "parameter problem".to_owned(),
        _ => format!("type {kind}, code {code}"),
    };
}

pub(crate) fn read_v6(bytes: &[u8], summary: &mut Summary) {
    summary.protocol = Protocol::Icmpv6;
    let Ok(message) = Icmpv6Slice::from_slice(bytes) else {
        "malformed or cut off".clone_into(&mut summary.info);
        return;
    };
    let (kind, code) = (message.type_u8(), message.code_u8());
    let target = bytes.get(8..).and_then(<[u8]>::first_chunk::<16>).map(|octets| Ipv6Addr::from(*octets));
    let of = |text: &str| target.map_or_else(|| text.to_owned(), |target| format!("{text} {target}"));
    summary.info = match kind {
        1 => format!("destination unreachable: {}", unreachable_v6(code)),
        2 => format!("packet too big, MTU {}", u32::from_be_bytes(message.bytes5to8())),
        3 => "time exceeded".to_owned(),
        4 => "parameter problem".to_owned(),
        128 => echo("echo request", message.bytes5to8()),
        129 => echo("echo reply", message.bytes5to8()),
        130 => "multicast listener query".to_owned(),
        131 | 143 => "multicast listener report".to_owned(),
        132 => "multicast listener done".to_owned(),
        133 => "router solicitation".to_owned(),
        134 => "router advertisement".to_owned(),
        135 => of("neighbour solicitation for"),
        136 => of("neighbour advertisement of"),
        137 => "redirect".to_owned(),
        _ => format!("type {kind}, code {code}"),
    };
}

fn echo(kind: &str, rest: [u8; 4]) -> String {
    let [a, b, c, d] = rest;
    format!("{kind}, id {}, sequence {}", u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

fn unreachable_v4(code: u8) -> &'static str {
    match code {
        0 => "network",
        1 => "host",
        2 => "protocol",
        3 => "port",
        4 => "fragmentation needed",
        9 | 10 | 13 => "administratively prohibited",
        _ => "other",
    }
}

fn unreachable_v6(code: u8) -> &'static str {
    match code {
        0 => "no route",
        1 => "administratively prohibited",
        3 => "address",
        4 => "port",
        _ => "other",
    }
}
