//! Names of protocols.

use gateway_common::classify::{ICMP, ICMPV6, TCP, UDP};

use crate::error::ApiError;

/// Protocols with names.
const PROTOCOLS: [(&str, u8); 4] = [("tcp", TCP), ("udp", UDP), ("icmp", ICMP), ("icmpv6", ICMPV6)];

/// Returns the number of a protocol.
pub(super) fn number(text: &str) -> Result<u8, ApiError> {
    let named = PROTOCOLS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let message = "protocol is tcp, udp, icmp, icmpv6, or a number from 0 to 255.";
    named.or_else(|| text.parse().ok()).ok_or_else(|| ApiError::invalid_parameter("protocol", message))
}

/// Returns the name of a protocol, or its number.
pub(super) fn name(number: u8) -> String {
    let named = PROTOCOLS.iter().find(|(_, known)| *known == number);
    named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}
