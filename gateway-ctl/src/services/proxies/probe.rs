//! Single probe of a proxy: tests the connection, the authentication and the required function.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use gateway_core::indexes::LegId;
use gateway_core::plan::ProxyLogin;
use gateway_model::kinds::proxy::{ProxyCheck, ProxyCheckType};
use gateway_outbound::KernelSockets;
use gateway_outbound::socks5::{self, Command, Credentials, Destination, ask};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::secrets;

/// Parameters of a probe: target, egress and checks.
#[derive(Clone, Debug)]
pub(super) struct ProbeParameters {
    pub address: SocketAddr,
    pub login: Option<ProxyLogin>,
    /// Leg to the proxy; 0 is the default route.
    pub leg: Option<LegId>,
    /// Request to probe UDP relaying as well.
    pub udp: bool,
    pub check: ProxyCheck,
}

/// Result of a successful probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeResult {
    /// Time until the proxy accepted the authentication.
    pub latency: Duration,
    /// UDP support of the proxy; `None` if it was not probed or the proxy gave no clear reply.
    pub udp: Option<bool>,
}

/// Probes a proxy. The error is the human-readable reason why the proxy is unusable.
pub(super) async fn probe(question: &ProbeParameters) -> Result<ProbeResult, String> {
    let timeout = Duration::from_secs(u64::from(question.check.timeout_sec));
    match tokio::time::timeout(timeout, run_probe(question)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {} s", timeout.as_secs())),
    }
}

async fn run_probe(question: &ProbeParameters) -> Result<ProbeResult, String> {
    let started = Instant::now();
    let mut stream = enter(question).await?;
    let latency = started.elapsed();
    match question.check.r#type {
        ProxyCheckType::Connect => {}
        ProxyCheckType::Http => http(&mut stream, target(&question.check)?).await?,
        ProxyCheckType::Dns => dns(&mut stream, target(&question.check)?).await?,
    }
    let udp = if question.udp { associates(question).await } else { None };
    Ok(ProbeResult { latency, udp })
}

async fn enter(question: &ProbeParameters) -> Result<TcpStream, String> {
    let login = async {
        let login = question.login.as_ref()?;
        Some(Credentials { username: &login.username, password: secrets::open(&login.password).await })
    };
    let mark = Some(LegId::host_mark(question.leg));
    let entered = gateway_outbound::open(&KernelSockets::PATIENT, question.address, mark, login).await;
    entered.map_err(|error| error.to_string())
}

/// Reports whether the proxy opens a UDP association.
async fn associates(question: &ProbeParameters) -> Option<bool> {
    let mut stream = enter(question).await.ok()?;
    let anywhere = Destination::Address((Ipv4Addr::UNSPECIFIED, 0).into());
    match ask(&mut stream, Command::UdpAssociate, &anywhere).await {
        Ok(_) => Some(true),
        Err(socks5::Error::Refused(_) | socks5::Error::NotSocks) => Some(false),
        // Some proxies close the connection instead of refusing. The check before showed that the proxy works.
        Err(socks5::Error::Io(_)) => Some(false),
        Err(_) => None,
    }
}

fn target(check: &ProxyCheck) -> Result<&str, String> {
    check.target.as_deref().ok_or_else(|| "its check has no target".to_owned())
}

async fn connect_through(stream: &mut TcpStream, host: &str, port: u16) -> Result<(), String> {
    let to = match host.trim_matches(['[', ']']).parse() {
        Ok(address) => Destination::Address(SocketAddr::new(address, port)),
        Err(_) => Destination::Name(host.to_owned(), port),
    };
    ask(stream, Command::Connect, &to).await.map(drop).map_err(|error| format!("{host}: {error}"))
}

/// Sends an HTTP request; any reply in the form of HTTP is a success.
async fn http(stream: &mut TcpStream, target: &str) -> Result<(), String> {
    let (host, port, path) = url(target).ok_or_else(|| format!("{target} is no URL of http"))?;
    connect_through(stream, host, port).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut start = [0; 7];
    match stream.read_exact(&mut start).await {
        Ok(_) if &start == b"HTTP/1." => Ok(()),
        Ok(_) => Err(format!("{host} does not speak HTTP")),
        Err(error) => Err(format!("{host}: {error}")),
    }
}

/// Splits `http://host[:port][/path]` into host, port and path.
fn url(text: &str) -> Option<(&str, u16, &str)> {
    let rest = text.strip_prefix("http://")?;
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, "/"),
    };
    let (host, port) = host_and_port(authority, 80)?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    (plain(host) && plain(path)).then_some((host, port, path))
}

fn host_and_port(text: &str, default: u16) -> Option<(&str, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (text, default),
    };
    (!host.is_empty()).then_some((host, port))
}

/// Sends a query for the root name servers over TCP. Any name server answers it somehow.
async fn dns(stream: &mut TcpStream, target: &str) -> Result<(), String> {
    const QUESTION: [u8; 19] = [0, 17, 0x47, 0x57, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];
    let (host, port) = host_and_port(target, 53).ok_or_else(|| format!("{target} is no name server"))?;
    connect_through(stream, host, port).await?;
    stream.write_all(&QUESTION).await.map_err(|error| error.to_string())?;
    let mut answer = [0; 5];
    match stream.read_exact(&mut answer).await {
        Ok(_) if answer[2..4] == QUESTION[2..4] && answer[4] & 0x80 != 0 => Ok(()),
        Ok(_) => Err(format!("{host} does not speak DNS")),
        Err(error) => Err(format!("{host}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gateway_model::Secret;
    use gateway_model::secret::Open;
    use zeroize::Zeroizing;

    use super::*;

    struct NoSecrets;

    impl Open for NoSecrets {
        fn open(&self, _: &str) -> Option<Zeroizing<String>> {
            panic!("a password was opened that no proxy asked for");
        }
    }

    #[tokio::test]
    async fn password_stays_sealed_while_the_proxy_takes_no_connection() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let password = Secret::sealed("sealed", Arc::new(NoSecrets));
        let login = Some(ProxyLogin { username: "u".into(), password: password.clone() });
        let question =
            ProbeParameters { address, login, leg: None, udp: false, check: ProxyCheck::default() };
        assert!(probe(&question).await.is_err());
        assert!(!password.is_opened());
    }

    #[test]
    fn targets_are_distinguished() {
        assert_eq!(url("http://example.org"), Some(("example.org", 80, "/")));
        assert_eq!(url("http://[2001:db8::1]:8080/x?y"), Some(("[2001:db8::1]", 8080, "/x?y")));
        assert_eq!(url("http://[2001:db8::1]/"), Some(("[2001:db8::1]", 80, "/")));
        for wrong in ["https://example.org", "http://", "http://a:b/", "http://a/\r\nX: y", "ftp://x"] {
            assert_eq!(url(wrong), None, "{wrong}");
        }
        assert_eq!(host_and_port("9.9.9.9", 53), Some(("9.9.9.9", 53)));
    }
}
