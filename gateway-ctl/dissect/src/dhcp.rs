//! DHCP (RFC 2131) and DHCPv6 (RFC 8415).

use dhcproto::v4::{self, DhcpOption, OptionCode};
use dhcproto::{Decodable as _, Decoder};

use crate::text::mac;

/// Returns the text about a message of DHCP.
pub fn read_v4(payload: &[u8]) -> String {
    let Ok(message) = v4::Message::decode(&mut Decoder::new(payload)) else {
        return "malformed or cut off".to_owned();
    };
    let options = message.opts();
    let kind = options.msg_type().map_or_else(|| "BOOTP".to_owned(), |kind| format!("{kind:?}"));
    let mut info = format!("{kind} of {}", mac(message.chaddr()));
    if !message.yiaddr().is_unspecified() {
        info.push_str(&format!(", {}", message.yiaddr()));
    }
    if let Some(DhcpOption::Hostname(name)) = options.get(OptionCode::Hostname) {
        info.push_str(&format!(", name {name}"));
    }
    info
}

/// Returns the text about a message of DHCPv6.
pub fn read_v6(payload: &[u8]) -> String {
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
