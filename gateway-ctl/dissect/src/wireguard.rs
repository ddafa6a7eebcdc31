//! WireGuard messages (the protocol's white paper, section 5.4).

/// Returns the text about a message. `None` if the datagram is none.
pub(crate) fn read(payload: &[u8]) -> Option<String> {
    let &[kind, 0, 0, 0, a, b, c, d] = payload.first_chunk::<8>()? else { return None };
    let index = u32::from_le_bytes([a, b, c, d]);
    match (kind, payload.len()) {
        (1, 148) => Some(format!("handshake initiation, sender {index:#010x}")),
        (2, 92) => Some(format!("handshake response, sender {index:#010x}")),
        (3, 64) => Some(format!("cookie reply, receiver {index:#010x}")),
        (4, 32) => Some(format!("keepalive, receiver {index:#010x}")),
        (4, length) if length > 32 && length.is_multiple_of(16) => {
            Some(format!("transport data, receiver {index:#010x}, {length} bytes"))
        }
        _ => None,
    }
}
