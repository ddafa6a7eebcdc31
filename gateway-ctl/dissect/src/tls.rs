//! TLS records (RFC 8446, section 5.1), and the server name in a ClientHello (RFC 6066, section 3).

/// Length of the header of a record.
const HEADER: usize = 5;
/// Maximum length of a record of TLS 1.2, the longest (RFC 5246, section 6.2.3).
const MAX_RECORD: usize = (1 << 14) + 2048;
const CLIENT_HELLO: u8 = 1;
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
