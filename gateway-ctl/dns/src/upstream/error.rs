//! Reasons why one attempt at one upstream returned no answer.

use std::io::ErrorKind;
use std::sync::Arc;

use gateway_outbound::EgressError;

/// Error of one attempt. All queries that waited for the same connection get a clone.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("no answer in time")]
    Timeout,
    #[error("the connection was closed")]
    Closed,
    #[error("{0}")]
    Io(Arc<str>),
    #[error("malformed reply")]
    Broken,
    #[error("TLS: {0}")]
    Tls(Arc<str>),
    #[error("{0}")]
    Proxy(Arc<str>),
    #[error("HTTP: {0}")]
    Http(Arc<str>),
    #[error("QUIC: {0}")]
    Quic(Arc<str>),
    #[error("address is not known: {0}")]
    Address(Arc<str>),
    #[error("getrandom failed")]
    Random,
    #[error("no free sockets")]
    Exhausted,
}

const EXHAUSTED: [i32; 5] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EADDRNOTAVAIL];

impl Error {
    /// Reports whether the error says nothing about the upstream.
    pub fn is_ours(&self) -> bool {
        matches!(self, Error::Random | Error::Exhausted)
    }
}

impl From<EgressError> for Error {
    fn from(error: EgressError) -> Error {
        match error {
            EgressError::Connect(error) => error.into(),
            EgressError::ProxyConnect(error) => Error::Proxy(format!("the proxy: {error}").into()),
            error => Error::Proxy(error.to_string().into()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        match error.kind() {
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => Error::Closed,
            ErrorKind::TimedOut => Error::Timeout,
            _ if error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code)) => Error::Exhausted,
            _ => Error::Io(error.to_string().into()),
        }
    }
}

/// Returns unpredictable bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Random)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_system_resources_do_not_count_as_upstream_failures() {
        let error = |code: i32| Error::from(std::io::Error::from_raw_os_error(code));
        assert!(error(libc::EMFILE).is_ours() && error(libc::ENOBUFS).is_ours());
        assert!(!error(libc::ECONNREFUSED).is_ours() && !error(libc::ENETUNREACH).is_ours());
        assert!(matches!(error(libc::ECONNRESET), Error::Closed));
    }
}
