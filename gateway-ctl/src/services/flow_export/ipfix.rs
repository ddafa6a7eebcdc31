//! Session with a collector of IPFIX.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use gateway_core::flow_export::ipfix::Stream;
use gateway_core::flow_log::FlowRecord;
use gateway_model::settings::groups::{IpfixCollector, IpfixTransport};
use gateway_outbound::Resolver;
use gateway_outbound::causes::with_causes;
use jiff::Timestamp;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::Instant;

use super::connection::{check_open, confirmed, connect};

/// Interval at which templates are sent again over UDP (RFC 7011, section 8.4: at least three times in their lifetime,
/// which is 30 minutes by default).
const TEMPLATE_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum length of a message over TCP.
const LONG_MESSAGE: usize = 16_000;

pub(super) struct Session {
    stream: Stream,
    transport: Transport,
}

enum Transport {
    Udp { socket: UdpSocket, templates_at: Option<Instant> },
    Tcp { stream: TcpStream, has_templates: bool },
}

impl Session {
    pub(super) async fn open(config: &IpfixCollector, names: &Resolver) -> Result<Session, String> {
        let domain = config.observation_domain;
        match config.transport {
            IpfixTransport::Udp => {
                let socket = open_udp(config, names).await?;
                let transport = Transport::Udp { socket, templates_at: None };
                Ok(Session { stream: Stream::new(domain, Stream::DATAGRAM), transport })
            }
            IpfixTransport::Tcp => {
                let stream = connect(&config.host, config.port, names).await?;
                let transport = Transport::Tcp { stream, has_templates: false };
                Ok(Session { stream: Stream::new(domain, LONG_MESSAGE), transport })
            }
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.transport, Transport::Tcp { .. })
    }

    pub(super) async fn send(&mut self, records: &[FlowRecord], now: Timestamp) -> Result<(), String> {
        match &mut self.transport {
            Transport::Udp { socket, templates_at } => {
                if templates_at.is_none_or(|at| at.elapsed() >= TEMPLATE_INTERVAL) {
                    send_datagram(socket, &self.stream.templates(now)).await?;
                    *templates_at = Some(Instant::now());
                }
                for message in self.stream.messages(records, now) {
                    send_datagram(socket, &message).await?;
                }
                Ok(())
            }
            Transport::Tcp { stream, has_templates } => {
                let mut bytes = if *has_templates { Vec::new() } else { self.stream.templates(now) };
                *has_templates = true;
                bytes.extend(self.stream.messages(records, now).concat());
                if bytes.is_empty() {
                    return check_open(stream);
                }
                stream.write_all(&bytes).await.map_err(|error| error.to_string())?;
                confirmed(stream).await
            }
        }
    }
}

async fn open_udp(config: &IpfixCollector, names: &Resolver) -> Result<UdpSocket, String> {
    let host = &config.host;
    let is_ipv6 = host.parse::<Ipv6Addr>().is_ok();
    let endpoint =
        if is_ipv6 { format!("[{host}]:{}", config.port) } else { format!("{host}:{}", config.port) };
    let addresses = names.resolve(&endpoint, None).await.map_err(|error| with_causes(&error))?;
    let address = *addresses.first().ok_or("the name of the collector has no address")?;
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await.map_err(|error| error.to_string())?;
    socket.connect(address).await.map_err(|error| error.to_string())?;
    Ok(socket)
}

async fn send_datagram(socket: &UdpSocket, message: &[u8]) -> Result<(), String> {
    socket.send(message).await.map(drop).map_err(|error| error.to_string())
}
