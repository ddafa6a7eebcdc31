//! Connections and datagrams through a SOCKS5 proxy: RFC 1928, and RFC 1929 for user name and password.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

use crate::seam::Login;

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const USERNAME_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const ASSOCIATE: u8 = 3;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("what answers there does not speak SOCKS5")]
    NotSocks,
    #[error("it does not let us in without a user name and a password, or by those")]
    Login,
    #[error("user name and password have at most 255 bytes")]
    LongLogin,
    #[error("it refused with code {0}")]
    Refused(u8),
    #[error("it does not say where it takes datagrams")]
    NoAddress,
}

/// Asks the proxy at the other end for a connection; what follows on the stream is between us and `to`.
pub async fn connect<S>(stream: &mut S, login: Option<&Login>, to: SocketAddr) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    greet(stream, login).await?;
    ask(stream, CONNECT, to).await.map(drop)
}

/// Asks for an association: where the proxy takes datagrams, for as long as the stream stays open. `from`: where ours
/// come from, unspecified if that is not known.
pub async fn associate<S>(
    stream: &mut S,
    login: Option<&Login>,
    from: SocketAddr,
) -> Result<SocketAddr, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    greet(stream, login).await?;
    ask(stream, ASSOCIATE, from).await?.ok_or(Error::NoAddress)
}

async fn greet<S>(stream: &mut S, login: Option<&Login>) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // With a login it is offered alone: whoever has one means to use it.
    let method = if login.is_some() { USERNAME_PASSWORD } else { NO_LOGIN };
    stream.write_all(&[VERSION, 1, method]).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    match (answer, login) {
        ([VERSION, NO_LOGIN], None) => Ok(()),
        ([VERSION, USERNAME_PASSWORD], Some(login)) => sign_in(stream, login).await,
        ([VERSION, 0xff], _) => Err(Error::Login),
        _ => Err(Error::NotSocks),
    }
}

/// The address in the answer, unless it is a name.
async fn ask<S>(stream: &mut S, command: u8, to: SocketAddr) -> Result<Option<SocketAddr>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut message = vec![VERSION, command, 0];
    put(&mut message, to);
    stream.write_all(&message).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    match head {
        [VERSION, 0, ..] => {}
        [VERSION, code, ..] => return Err(Error::Refused(code)),
        _ => return Err(Error::NotSocks),
    }
    let ip = match head[3] {
        IPV4 => {
            let mut octets = [0; 4];
            stream.read_exact(&mut octets).await?;
            Some(IpAddr::from(octets))
        }
        IPV6 => {
            let mut octets = [0; 16];
            stream.read_exact(&mut octets).await?;
            Some(IpAddr::from(octets).to_canonical())
        }
        NAME => {
            let length = usize::from(stream.read_u8().await?);
            stream.read_exact(&mut vec![0; length]).await?;
            None
        }
        _ => return Err(Error::NotSocks),
    };
    let port = stream.read_u16().await?;
    Ok(ip.map(|ip| SocketAddr::new(ip, port)))
}

fn put(message: &mut Vec<u8>, to: SocketAddr) {
    match to {
        SocketAddr::V4(to) => {
            message.push(IPV4);
            message.extend_from_slice(&to.ip().octets());
        }
        SocketAddr::V6(to) => {
            message.push(IPV6);
            message.extend_from_slice(&to.ip().octets());
        }
    }
    message.extend_from_slice(&to.port().to_be_bytes());
}

/// What stands before each datagram to the proxy.
pub fn header(to: SocketAddr) -> Vec<u8> {
    let mut header = vec![0; 3];
    put(&mut header, to);
    header
}

/// What a datagram from the proxy carries, whoever sent it; none for a fragment.
pub fn payload(datagram: &[u8]) -> Option<&[u8]> {
    let address = match datagram.get(..5)? {
        [_, _, 0, IPV4, _] => 4,
        [_, _, 0, IPV6, _] => 16,
        [_, _, 0, NAME, length] => 1 + usize::from(*length),
        _ => return None,
    };
    datagram.get(4 + address + 2..)
}

async fn sign_in<S>(stream: &mut S, login: &Login) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut message = Zeroizing::new(Vec::with_capacity(3 + 2 * 255));
    message.push(LOGIN_VERSION);
    for text in [login.user.as_str(), login.password.as_str()] {
        message.push(u8::try_from(text.len()).map_err(|_| Error::LongLogin)?);
        message.extend_from_slice(text.as_bytes());
    }
    stream.write_all(&message).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    if answer[1] == 0 { Ok(()) } else { Err(Error::Login) }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn talk(login: Option<&Login>, to: &str, talk: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        let server = async {
            for (expected, answer) in talk {
                let mut message = vec![0; expected.len()];
                theirs.read_exact(&mut message).await.unwrap();
                assert_eq!(message, *expected);
                theirs.write_all(answer).await.unwrap();
            }
            drop(theirs);
        };
        let client = connect(&mut ours, login, to.parse().unwrap());
        tokio::join!(client, server).0
    }

    #[tokio::test]
    async fn a_connection_is_asked_for_with_or_without_a_login() {
        let ask: (&[u8], &[u8]) = (&[5, 1, 0, 1, 192, 0, 2, 1, 3, 85], &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        talk(None, "192.0.2.1:853", &[(&[5, 1, 0], &[5, 0]), ask]).await.unwrap();
        let login = Login { user: "anna".into(), password: "secret".to_owned().into() };
        let sign_in: (&[u8], &[u8]) = (b"\x01\x04anna\x06secret", &[1, 0]);
        talk(Some(&login), "192.0.2.1:853", &[(&[5, 1, 2], &[5, 2]), sign_in, ask]).await.unwrap();
    }

    #[tokio::test]
    async fn an_association_is_where_the_proxy_says() {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        let server = async {
            let mut message = [0; 3];
            theirs.read_exact(&mut message).await.unwrap();
            theirs.write_all(&[5, 0]).await.unwrap();
            let mut message = [0; 10];
            theirs.read_exact(&mut message).await.unwrap();
            assert_eq!(message, [5, 3, 0, 1, 0, 0, 0, 0, 0, 0]);
            theirs.write_all(&[5, 0, 0, 1, 192, 0, 2, 7, 4, 56]).await.unwrap();
        };
        let client = associate(&mut ours, None, "0.0.0.0:0".parse().unwrap());
        let (at, ()) = tokio::join!(client, server);
        assert_eq!(at.unwrap(), "192.0.2.7:1080".parse().unwrap());
    }

    #[test]
    fn datagrams_are_wrapped_and_unwrapped() {
        for to in ["192.0.2.1:853", "[2001:db8::1]:853"] {
            let mut datagram = header(to.parse().unwrap());
            datagram.extend_from_slice(b"inside");
            assert_eq!(payload(&datagram), Some(&b"inside"[..]));
            datagram[2] = 1;
            assert_eq!(payload(&datagram), None, "a fragment");
        }
        assert_eq!(payload(b"\0\0\0\x03\x03a.bXYinside"), Some(&b"inside"[..]));
        for short in 0..10 {
            assert_eq!(payload(&header("192.0.2.1:853".parse().unwrap())[..short]), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_datagram_is_unwrapped_or_passed_over(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64)) {
            if let Some(inside) = payload(&bytes) {
                proptest::prop_assert!(bytes.ends_with(inside) && bytes.len() >= inside.len() + 7);
            }
        }
    }

    #[tokio::test]
    async fn refusals_are_told_and_a_login_is_never_left_out() {
        let refused: (&[u8], &[u8]) = (&[5, 1, 0, 1, 192, 0, 2, 1, 0, 53], &[5, 5, 0, 1]);
        let error = talk(None, "192.0.2.1:53", &[(&[5, 1, 0], &[5, 0]), refused]).await.unwrap_err();
        assert!(matches!(error, Error::Refused(5)), "{error}");
        let login = Login { user: "anna".into(), password: "secret".to_owned().into() };
        let error = talk(Some(&login), "192.0.2.1:53", &[(&[5, 1, 2], &[5, 0])]).await.unwrap_err();
        assert!(matches!(error, Error::NotSocks), "{error}");
        let wrong: (&[u8], &[u8]) = (b"\x01\x04anna\x06secret", &[1, 1]);
        let error = talk(Some(&login), "192.0.2.1:53", &[(&[5, 1, 2], &[5, 2]), wrong]).await.unwrap_err();
        assert!(matches!(error, Error::Login) && !error.to_string().contains("secret"));
    }
}
