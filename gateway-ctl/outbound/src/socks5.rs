//! SOCKS5 client: RFC 1928, and RFC 1929 for user name and password.
//!
//! It never reads beyond the end of a message, because the traffic follows on the same stream.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const VERSION: u8 = 5;
/// Version of the authentication subnegotiation (RFC 1929).
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const USERNAME_PASSWORD: u8 = 2;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;

const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// Request to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    Connect = 1,
    UdpAssociate = 3,
}

/// Destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Address(SocketAddr),
    /// Name that the proxy resolves; at most 255 bytes.
    Name(String, u16),
}

impl From<SocketAddr> for Destination {
    fn from(address: SocketAddr) -> Destination {
        Destination::Address(address)
    }
}

/// User name and password, each of 1 to 255 bytes; an empty password is sent unchanged.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    pub username: &'a str,
    pub password: &'a str,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("connection to the proxy failed: {0}")]
    Io(#[from] io::Error),
    #[error("not a SOCKS5 proxy")]
    NotSocks,
    #[error("SOCKS5 proxy requires a user name and password")]
    LoginWanted,
    #[error("SOCKS5 proxy rejected authentication: no acceptable method")]
    NoMethod,
    #[error("SOCKS5 proxy rejected the user name or password")]
    LoginRefused,
    #[error("SOCKS5 proxy refused: {}", refusal(*.0))]
    Refused(u8),
    #[error("a name for the proxy must have 1 to 255 bytes")]
    Name,
    #[error("SOCKS5 proxy returned no UDP relay address")]
    NoAddress,
}

/// Negotiates the authentication method, and authenticates.
pub async fn negotiate<S>(stream: &mut S, login: Option<Credentials<'_>>) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // With a login, no other method is offered: the proxy must not skip authentication.
    let method = if login.is_some() { USERNAME_PASSWORD } else { NO_LOGIN };
    stream.write_all(&[VERSION, 1, method]).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    match (answer, login) {
        ([VERSION, NO_LOGIN], None) => Ok(()),
        ([VERSION, USERNAME_PASSWORD], Some(login)) => sign_in(stream, login).await,
        ([VERSION, NO_ACCEPTABLE_METHOD], None) => Err(Error::LoginWanted),
        ([VERSION, NO_ACCEPTABLE_METHOD], Some(_)) => Err(Error::NoMethod),
        _ => Err(Error::NotSocks),
    }
}

async fn sign_in<S>(stream: &mut S, login: Credentials<'_>) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut message = zeroize::Zeroizing::new(Vec::with_capacity(3 + 2 * 255));
    message.push(LOGIN_VERSION);
    for text in [login.username, login.password] {
        message.push(u8::try_from(text.len()).map_err(|_| Error::Name)?);
        message.extend_from_slice(text.as_bytes());
    }
    stream.write_all(&message).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    // Some servers reply with the SOCKS version instead of the subnegotiation version.
    if answer[1] == 0 { Ok(()) } else { Err(Error::LoginRefused) }
}

/// Requests a connection. Traffic to the destination follows on the stream.
pub async fn connect<S>(stream: &mut S, to: &Destination) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    ask(stream, Command::Connect, to).await.map(drop)
}

/// Requests an association. Returns the relay address for datagrams, which is valid as long as the stream stays open.
/// `from` is the source of the datagrams, unspecified if unknown.
pub async fn associate<S>(stream: &mut S, from: SocketAddr) -> Result<SocketAddr, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match ask(stream, Command::UdpAssociate, &Destination::Address(from)).await? {
        Destination::Address(at) => Ok(SocketAddr::new(at.ip().to_canonical(), at.port())),
        Destination::Name(..) => Err(Error::NoAddress),
    }
}

/// Sends a request, and returns the address in the reply.
pub async fn ask<S>(stream: &mut S, command: Command, to: &Destination) -> Result<Destination, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut message = vec![VERSION, command as u8, 0];
    put(&mut message, to)?;
    stream.write_all(&message).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    if head[0] != VERSION {
        return Err(Error::NotSocks);
    }
    if head[1] != 0 {
        return Err(Error::Refused(head[1]));
    }
    let bound = match head[3] {
        IPV4 => {
            let mut octets = [0; 4];
            stream.read_exact(&mut octets).await?;
            Destination::Address((Ipv4Addr::from(octets), stream.read_u16().await?).into())
        }
        IPV6 => {
            let mut octets = [0; 16];
            stream.read_exact(&mut octets).await?;
            Destination::Address((Ipv6Addr::from(octets), stream.read_u16().await?).into())
        }
        DOMAIN => {
            let mut name = vec![0; usize::from(stream.read_u8().await?)];
            stream.read_exact(&mut name).await?;
            let name = String::from_utf8(name).map_err(|_| Error::NotSocks)?;
            Destination::Name(name, stream.read_u16().await?)
        }
        _ => return Err(Error::NotSocks),
    };
    Ok(bound)
}

/// Returns the header of a datagram to a destination (RFC 1928, section 7).
pub fn datagram_header(to: &Destination) -> Result<Vec<u8>, Error> {
    let mut header = vec![0, 0, 0];
    put(&mut header, to)?;
    Ok(header)
}

/// Returns the sender of a datagram from the proxy (none if it is a name), and the offset of its payload. Fragments are
/// dropped: no known server sends them, and the RFC permits it.
pub fn read_datagram(datagram: &[u8]) -> Option<(Option<SocketAddr>, usize)> {
    let [_, _, 0, kind, rest @ ..] = datagram else { return None };
    let (address, length): (Option<IpAddr>, usize) = match *kind {
        IPV4 => (Some(<[u8; 4]>::try_from(rest.get(..4)?).ok()?.into()), 4),
        IPV6 => (Some(<[u8; 16]>::try_from(rest.get(..16)?).ok()?.into()), 16),
        DOMAIN => (None, 1 + usize::from(*rest.first()?)),
        _ => return None,
    };
    let port = u16::from_be_bytes(rest.get(length..length + 2)?.try_into().ok()?);
    Some((address.map(|address| SocketAddr::new(address.to_canonical(), port)), 4 + length + 2))
}

/// Returns the payload of a datagram from the proxy, regardless of its sender.
pub fn payload(datagram: &[u8]) -> Option<&[u8]> {
    datagram.get(read_datagram(datagram)?.1..)
}

fn put(message: &mut Vec<u8>, to: &Destination) -> Result<(), Error> {
    let port = match to {
        Destination::Address(SocketAddr::V4(address)) => {
            message.push(IPV4);
            message.extend_from_slice(&address.ip().octets());
            address.port()
        }
        Destination::Address(SocketAddr::V6(address)) => {
            message.push(IPV6);
            message.extend_from_slice(&address.ip().octets());
            address.port()
        }
        Destination::Name(name, port) => {
            let length = u8::try_from(name.len()).ok().filter(|length| *length > 0).ok_or(Error::Name)?;
            message.extend_from_slice(&[DOMAIN, length]);
            message.extend_from_slice(name.as_bytes());
            *port
        }
    };
    message.extend_from_slice(&port.to_be_bytes());
    Ok(())
}

/// Returns the text of a reply code (RFC 1928, section 6).
fn refusal(code: u8) -> String {
    let known = match code {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "time to live expired",
        7 => "it does not know this command",
        8 => "it does not know this kind of address",
        _ => return format!("code {code}"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a server that expects these messages in order and replies to each.
    async fn server(mut stream: tokio::io::DuplexStream, talk: &[(&[u8], &[u8])]) {
        for (expected, answer) in talk {
            let mut message = vec![0; expected.len()];
            stream.read_exact(&mut message).await.unwrap();
            assert_eq!(message, *expected);
            stream.write_all(answer).await.unwrap();
        }
    }

    const GREETING: (&[u8], &[u8]) = (&[5, 1, 0], &[5, 0]);

    #[tokio::test]
    async fn connect_requests_carry_an_address_or_a_name() {
        let (mut ours, theirs) = tokio::io::duplex(4096);
        let four: (&[u8], &[u8]) = (&[5, 1, 0, 1, 198, 18, 0, 1, 0, 80], &[5, 0, 0, 1, 10, 0, 0, 9, 4, 1]);
        let mut six_asked = vec![5, 1, 0, 4];
        six_asked.extend_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        six_asked.extend_from_slice(&[1, 187]);
        let mut six_answer = vec![5, 0, 0, 4];
        six_answer.extend_from_slice(&[0; 18]);
        let name: (&[u8], &[u8]) =
            (b"\x05\x01\x00\x03\x0bexample.org\x01\xbb", b"\x05\x00\x00\x03\x01x\x00\x07");
        let talk = [GREETING, four, (&six_asked, &six_answer), name];
        let client = async {
            negotiate(&mut ours, None).await.unwrap();
            let address = |text: &str| Destination::Address(text.parse().unwrap());
            let bound = ask(&mut ours, Command::Connect, &address("198.18.0.1:80")).await.unwrap();
            assert_eq!(bound, address("10.0.0.9:1025"));
            ask(&mut ours, Command::Connect, &address("[2001:db8::1]:443")).await.unwrap();
            let named = Destination::Name("example.org".into(), 443);
            let bound = ask(&mut ours, Command::Connect, &named).await.unwrap();
            assert_eq!(bound, Destination::Name("x".into(), 7));
        };
        tokio::join!(server(theirs, &talk), client);
    }

    #[tokio::test]
    async fn a_login_is_offered_alone_and_may_be_refused() {
        let login = Some(Credentials { username: "anna", password: "secret" });
        let sign_in = b"\x01\x04anna\x06secret".as_slice();
        for (answer, ok) in [([1, 0], true), ([5, 0], true), ([1, 1], false)] {
            let (mut ours, theirs) = tokio::io::duplex(4096);
            let talk: [(&[u8], &[u8]); 2] = [(&[5, 1, 2], &[5, 2]), (sign_in, &answer)];
            let (_, outcome) = tokio::join!(server(theirs, &talk), negotiate(&mut ours, login));
            assert_eq!(outcome.is_ok(), ok, "{outcome:?}");
            assert!(ok || matches!(outcome, Err(Error::LoginRefused)));
        }
    }

    #[tokio::test]
    async fn refusals_and_strangers_are_reported() {
        let login = Credentials { username: "a", password: "" };
        type Case<'a> = (Option<Credentials<'a>>, &'a [u8], fn(&Error) -> bool);
        let cases: [Case<'_>; 5] = [
            (None, &[5, 0xff], |e| matches!(e, Error::LoginWanted)),
            (Some(login), &[5, 0xff], |e| matches!(e, Error::NoMethod)),
            // The client must not continue without the configured login.
            (Some(login), &[5, 0], |e| matches!(e, Error::NotSocks)),
            (None, b"HTTP/1.1", |e| matches!(e, Error::NotSocks)),
            (None, &[5], |e| matches!(e, Error::Io(_))),
        ];
        for (login, answer, expected) in cases {
            let (mut ours, mut theirs) = tokio::io::duplex(4096);
            theirs.write_all(answer).await.unwrap();
            theirs.shutdown().await.unwrap();
            let error = negotiate(&mut ours, login).await.unwrap_err();
            assert!(expected(&error), "{answer:?}: {error}");
        }
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        theirs.write_all(&[5, 5, 0, 1]).await.unwrap();
        let to = Destination::Address("198.18.0.1:80".parse().unwrap());
        let error = ask(&mut ours, Command::Connect, &to).await.unwrap_err();
        assert_eq!(error.to_string(), "SOCKS5 proxy refused: connection refused");
    }

    #[test]
    fn datagrams_are_wrapped_and_unwrapped() {
        for text in ["198.18.0.1:53", "[2001:db8::1]:53"] {
            let to: SocketAddr = text.parse().unwrap();
            let mut datagram = datagram_header(&Destination::Address(to)).unwrap();
            let header = datagram.len();
            datagram.extend_from_slice(b"content");
            assert_eq!(read_datagram(&datagram), Some((Some(to), header)));
            assert_eq!(payload(&datagram), Some(&b"content"[..]));
            for length in 0..header {
                assert_eq!(read_datagram(&datagram[..length]), None);
            }
            datagram[2] = 1;
            assert_eq!(read_datagram(&datagram), None, "a piece");
        }
        assert_eq!(read_datagram(b"\0\0\0\x03\x01x\0\x35"), Some((None, 8)));
        assert_eq!(payload(b"\0\0\0\x03\x03a.bXYinside"), Some(&b"inside"[..]));
    }

    #[tokio::test]
    async fn association_is_at_the_address_that_the_proxy_names() {
        let none: SocketAddr = "0.0.0.0:0".parse().unwrap();
        let named: (&[u8], &[u8]) = (&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0], &[5, 0, 0, 1, 192, 0, 2, 7, 4, 56]);
        let (mut ours, theirs) = tokio::io::duplex(4096);
        let talk = [named];
        let (_, at) = tokio::join!(server(theirs, &talk), associate(&mut ours, none));
        assert_eq!(at.unwrap(), "192.0.2.7:1080".parse().unwrap());
        let (mut ours, theirs) = tokio::io::duplex(4096);
        let unnamed = (named.0, b"\x05\0\0\x03\x01x\0\x07".as_slice());
        let talk = [unnamed];
        let (_, at) = tokio::join!(server(theirs, &talk), associate(&mut ours, none));
        assert!(matches!(at, Err(Error::NoAddress)), "{at:?}");
    }

    proptest::proptest! {
        #[test]
        fn any_datagram_is_unwrapped_or_dropped(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64)) {
            if let Some(inside) = payload(&bytes) {
                proptest::prop_assert!(bytes.ends_with(inside) && bytes.len() >= inside.len() + 7);
            }
        }
    }
}
