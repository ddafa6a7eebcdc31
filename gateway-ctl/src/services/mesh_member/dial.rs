//! Connections to coordinators and relays, over TLS or not.

use std::time::Duration;

use gateway_outbound::causes::with_causes;
use gateway_outbound::{Dialer, KernelSockets, Resolver};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use url::Url;

use crate::tls::{Client, with_authorities};

const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Server of a coordinator or a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Name or address that the certificate has to have.
    pub host: String,
    /// Address to connect to instead of those of the name.
    pub address: Option<String>,
    pub port: u16,
    pub is_secure: bool,
}

impl Target {
    /// Reads the URL of a coordinator: `http` or `https`, without a path.
    pub(super) fn of_url(text: &str) -> Option<Target> {
        let url = Url::parse(text).ok()?;
        let is_secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let is_plain = matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let host = url.host_str().filter(|host| is_plain && !host.is_empty())?;
        Some(Target { host: host.to_owned(), address: None, port: url.port_or_known_default()?, is_secure })
    }

    /// Host and port as HTTP names them.
    pub(super) fn authority(&self) -> String {
        let standard = if self.is_secure { 443 } else { 80 };
        if self.port == standard { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }
}

/// Makes connections by the default route.
pub(super) struct Connector {
    tls: Client,
    names: Resolver,
}

impl Connector {
    pub(super) fn new(tls: Client, names: Resolver) -> Connector {
        Connector { tls, names }
    }

    pub(super) fn tls(&self) -> Client {
        self.tls.clone()
    }

    pub(super) fn names(&self) -> &Resolver {
        &self.names
    }

    /// Connects. These authorities take the place of those of the system, if there are any.
    pub(super) async fn connect(
        &self,
        target: &Target,
        authorities: &str,
    ) -> Result<Box<dyn Stream>, String> {
        let dialer = Dialer::by_default_route(&KernelSockets::PATIENT, &self.names, TIMEOUT);
        let host = target.address.as_deref().unwrap_or(&target.host);
        let stream = dialer.connect(host, target.port).await.map_err(|error| with_causes(&error))?;
        if !target.is_secure {
            return Ok(Box::new(stream));
        }
        let tls = with_authorities(&self.tls, authorities)?;
        let name = target.host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|_| "the host is not valid".to_owned())?;
        match timeout(TIMEOUT, tls.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(with_causes(&error)),
            Err(_) => Err(format!("no TLS session within {} s", TIMEOUT.as_secs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_coordinators_have_a_host_and_no_more() {
        let authority = |text: &str| Target::of_url(text).map(|target| target.authority());
        assert_eq!(authority("https://gw.example.net:8443").as_deref(), Some("gw.example.net:8443"));
        assert_eq!(authority("https://gw.example.net/").as_deref(), Some("gw.example.net"));
        assert_eq!(authority("http://[2001:db8::1]:80").as_deref(), Some("[2001:db8::1]"));
        for text in
            ["", "gw.example.net", "ftp://gw.example.net", "https://a@b", "https://a/b", "https://a?b"]
        {
            assert_eq!(Target::of_url(text), None, "{text}");
        }
    }
}
