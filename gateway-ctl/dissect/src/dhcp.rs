//! DHCP (RFC 2131) and DHCPv6 (RFC 8415).

use std::ops::Range;

use dhcproto::v4::borrowed::Message;
use dhcproto::v4::{MessageType, OptionCode};

use crate::text::mac;

/// Place of the hardware address in a message (RFC 2131, section 2).
const CHADDR: Range<usize> = 28..44;

/// Returns the text about a message of DHCP. The borrowed view of dhcproto reads options as bytes; its typed options panic
/// at some lengths.
pub(crate) fn read_v4(payload: &[u8]) -> String {
    let Ok(message) = Message::new(payload) else { return "malformed or cut off".to_owned() };
    let (mut kind, mut name) = ("BOOTP".to_owned(), String::new());
    for option in message.opts() {
        match (option.code(), option.data()) {
            (OptionCode::MessageType, [number]) => kind = format!("{:?}", MessageType::from(*number)),
            (OptionCode::Hostname, bytes) => name = format!(", name {}", bytes.escape_ascii()),
            _ => {}
        }
    }
    let address = CHADDR.start..CHADDR.start + usize::from(message.hlen()).min(CHADDR.len());
    let mut info = format!("{kind} of {}", mac(payload.get(address).unwrap_or_default()));
    if !message.yiaddr().is_unspecified() {
        info.push_str(&format!(", {}", message.yiaddr()));
    }
    info + &name
}

/// Returns the text about a message of DHCPv6.
pub(crate) fn read_v6(payload: &[u8]) -> String {
    let name = match payload.first() {
        Some(1) => "Solicit",
        Some(2) => "Advertise",
        Some(3) => "Request",
        Some(4) => "Confirm",
        Some(5) => "Renew",
        Some(6) => "Rebind",
        Some(7) => "Reply",
        Some(8) => "Release",
        Some(9) => "Decline",
        Some(10) => "Reconfigure",
        Some(11) => "Information-request",
        Some(12) => "Relay-forward",
        Some(13) => "Relay-reply",
        Some(other) => return format!("type {other}"),
        None => return "malformed or cut off".to_owned(),
    };
    name.to_owned()
}
