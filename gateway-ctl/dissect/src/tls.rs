//! TLS records (RFC 8446, section 5.1), and the server name in a ClientHello (RFC 6066, section 3).

/// Length of the header of a record.
const HEADER: usize = 5;
/// Maximum length of a record of TLS 1.2, the longest (RFC 5246, section 6.2.3).
const MAX_RECORD: usize = (1 << 14) + 2048;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// Maximum length of a host name in text (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Returns the text about a segment that begins with a record.
pub(crate) fn read(payload: &[u8]) -> Option<String> {
    let header = payload.first_chunk::<HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if !(20..=24).contains(&header[0])
        || header[1] != 3
        || header[2] > 4
        || !(1..=MAX_RECORD).contains(&length)
    {
        return None;
    }
    let fragment = &payload[HEADER..];
    Some(match header[0] {
        20 => "ChangeCipherSpec".to_owned(),
        21 => "alert".to_owned(),
        23 => format!("application data, {length} bytes"),
        24 => "heartbeat".to_owned(),
        _ => handshake(fragment),
    })
}

/// Returns the text about handshake messages.
pub(crate) fn handshake(bytes: &[u8]) -> String {
    let name = match bytes.first() {
        Some(&CLIENT_HELLO) => {
            return match client_hello(bytes.get(4..).unwrap_or_default()) {
                Hello { server_name: Some(name), encrypted } => {
                    let encrypted = if encrypted { ", encrypted ClientHello" } else { "" };
                    format!("ClientHello for {name}{encrypted}")
                }
                Hello { server_name: None, .. } => "ClientHello without a server name".to_owned(),
            };
        }
        Some(2) => "ServerHello",
        Some(4) => "NewSessionTicket",
        Some(8) => "EncryptedExtensions",
        Some(11) => "Certificate",
        Some(12) => "ServerKeyExchange",
        Some(14) => "ServerHelloDone",
        Some(16) => "ClientKeyExchange",
        _ => "handshake",
    };
    name.to_owned()
}

/// Returns the server name in the ClientHello with which the records of a connection begin, as far as they are there, in lower
/// case. `None` if the bytes have none, or one that is no host name.
pub fn requested_server_name(records: &[u8]) -> Option<String> {
    let [HANDSHAKE, 3, 0..=4, _, _, message @ ..] = records else { return None };
    message_server_name(message)
}

/// Like [`requested_server_name`], of handshake messages without records, as QUIC has them.
pub fn message_server_name(messages: &[u8]) -> Option<String> {
    let [CLIENT_HELLO, _, _, _, message @ ..] = messages else { return None };
    let name = client_hello(message).server_name?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_name = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_host);
    is_name.then(|| name.to_ascii_lowercase())
}

/// Content of a ClientHello.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    pub server_name: Option<String>,
    pub encrypted: bool,
}

/// Reads a ClientHello behind the header of its message, as far as it goes.
pub(crate) fn client_hello(bytes: &[u8]) -> Hello {
    let mut hello = Hello::default();
    // The extensions that are there count, also if more should follow.
    let _ = read_extensions(bytes, &mut hello);
    hello
}

fn read_extensions(bytes: &[u8], hello: &mut Hello) -> Option<()> {
    // Version and random.
    let mut rest = bytes.get(34..)?;
    skip(&mut rest, 1)?;
    skip(&mut rest, 2)?;
    skip(&mut rest, 1)?;
    let length = take_number(&mut rest, 2)?;
    let mut extensions = rest.get(..length).unwrap_or(rest);
    while !extensions.is_empty() {
        let kind = u16::try_from(take_number(&mut extensions, 2)?).ok()?;
        let length = take_number(&mut extensions, 2)?;
        let content = extensions.get(..length)?;
        extensions = &extensions[length..];
        match kind {
            SERVER_NAME => hello.server_name = server_name(content),
            ENCRYPTED_CLIENT_HELLO => hello.encrypted = true,
            _ => {}
        }
    }
    Some(())
}

fn server_name(mut content: &[u8]) -> Option<String> {
    take_number(&mut content, 2)?;
    let is_host = take_number(&mut content, 1)? == 0;
    let length = take_number(&mut content, 2)?;
    let name = content.get(..length).filter(|_| is_host)?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Leaves out a vector with a length of so many bytes.
fn skip(rest: &mut &[u8], length_bytes: usize) -> Option<()> {
    let length = take_number(rest, length_bytes)?;
    *rest = rest.get(length..)?;
    Some(())
}

fn take_number(rest: &mut &[u8], bytes: usize) -> Option<usize> {
    let (number, tail) = rest.split_at_checked(bytes)?;
    *rest = tail;
    Some(number.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record with a ClientHello for a name.
    fn hello(name: &str) -> Vec<u8> {
        let sized = |length_bytes: usize, content: &[u8]| {
            let length = (content.len() as u32).to_be_bytes();
            [&length[4 - length_bytes..], content].concat()
        };
        let names = sized(2, &[&[0][..], &sized(2, name.as_bytes())].concat());
        let extensions = [&[0, 0][..], &sized(2, &names)].concat();
        let random = [7; 32];
        let suites = sized(2, &[0x13, 0x01]);
        let body = [&[3, 3][..], &random, &[0], &suites, &[1, 0], &sized(2, &extensions)].concat();
        let message = [&[CLIENT_HELLO][..], &sized(3, &body)].concat();
        [&[HANDSHAKE, 3, 1][..], &sized(2, &message)].concat()
    }

    #[test]
    fn host_name_of_a_client_hello_is_read_in_lower_case() {
        assert_eq!(requested_server_name(&hello("Shop.Example.net")).as_deref(), Some("shop.example.net"));
        let whole = hello("a.example");
        let rest_follows = whole.iter().copied().chain([0; 20]).collect::<Vec<u8>>();
        assert_eq!(requested_server_name(&rest_follows).as_deref(), Some("a.example"));
        for length in 0..whole.len() {
            assert_eq!(requested_server_name(&whole[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn other_names_and_other_bytes_have_none() {
        for name in ["", "a b", "a\nb", "\u{fc}.example", &"a".repeat(254)] {
            assert_eq!(requested_server_name(&hello(name)), None, "{name:?}");
        }
        assert_eq!(requested_server_name(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"), None);
    }
}
