//! ARP (RFC 826).

use std::net::Ipv4Addr;

use etherparse::{ArpOperation, ArpPacketSlice};

use crate::text::mac;
use crate::{Protocol, Summary};

pub(crate) fn read(packet: &ArpPacketSlice<'_>, summary: &mut Summary) {
    summary.protocol = Protocol::Arp;
    let address = |bytes: &[u8]| {
        bytes.first_chunk::<4>().map_or_else(|| "?".to_owned(), |four| Ipv4Addr::from(*four).to_string())
    };
    let sender = address(packet.sender_protocol_addr());
    let target = address(packet.target_protocol_addr());
    summary.info = match packet.operation() {
        ArpOperation::REQUEST if sender == target => format!("announcement of {sender}"),
        ArpOperation::REQUEST => format!("who has {target}? tell {sender}"),
        ArpOperation::REPLY => format!("{sender} is at {}", mac(packet.sender_hw_addr())),
        ArpOperation(other) => format!("operation {other}"),
    };
}
