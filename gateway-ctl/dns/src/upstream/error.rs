//! Why one try at one upstream brought no answer.

use std::io::ErrorKind;
use std::sync::Arc;

/// Clones are handed to all who waited for the same connection.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("no answer in time")]
    Timeout,
    #[error("the connection was closed")]
    Closed,
    #[error("{0}")]
    Io(Arc<str>),
    #[error("an answer that cannot be read")]
    Broken,
    #[error("TLS: {0}")]
    Tls(Arc<str>),
    #[error("the proxy: {0}")]
    Proxy(Arc<str>),
    #[error("HTTP: {0}")]
    Http(Arc<str>),
    #[error("its address is not known: {0}")]
    Address(Arc<str>),
    #[error("the system gives no random numbers")]
    Random,
    #[error("the protocol {0} is not supported by this version")]
    Unsupported(&'static str),
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        match error.kind() {
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => Error::Closed,
            ErrorKind::TimedOut => Error::Timeout,
            _ => Error::Io(error.to_string().into()),
        }
    }
}

/// Bytes nobody can foretell.
pub fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Random)?;
    Ok(bytes)
}
