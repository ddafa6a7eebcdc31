//! STUN and TURN (RFC 8489, RFC 8656).

const HEADER: usize = 20;
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// Returns the text about a datagram. One without the magic cookie (RFC 3489) counts at a port of STUN only.
pub(crate) fn read(payload: &[u8], at_port: bool) -> Option<String> {
    let header = payload.first_chunk::<HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let has_cookie = header[4..8] == MAGIC_COOKIE;
    if header[0] & 0xc0 != 0 || !(has_cookie || at_port) || HEADER + length > payload.len() {
        return None;
    }
    let kind = u16::from_be_bytes([header[0], header[1]]);
    let method = kind & 0xf | kind >> 1 & 0x70 | kind >> 2 & 0xf80;
    if !(has_cookie || method == 1 && HEADER + length == payload.len()) {
        return None;
    }
    let class = ["request", "indication", "success", "error"][usize::from(kind >> 4 & 1 | kind >> 7 & 2)];
    let name = match method {
        1 => "binding",
        3 => "allocate",
        4 => "refresh",
        6 => "send",
        7 => "data",
        8 => "create permission",
        9 => "channel bind",
        10 => "connect",
        11 => "connection bind",
        12 => "connection attempt",
        other => return Some(format!("method {other:#x} {class}")),
    };
    Some(format!("{name} {class}"))
}

/// Returns the text about a TCP segment that begins with a message, also behind the framing of RFC 4571.
pub(crate) fn read_framed(payload: &[u8]) -> Option<String> {
    read(payload, false).or_else(|| read(payload.get(2..)?, false))
}
