//! Probe of one target by one uplink.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gateway_core::state_machines::uplink_health::Outcome;
use gateway_model::kinds::tunnel_health::Probe;
use gateway_model::settings::uplink::{HttpTarget, ProbeMethod};
use gateway_outbound::SocketBinding;
use tokio::time::{Instant, timeout};

use crate::services::probe;

const DNS_PORT: u16 = 53;
const HTTPS_PORT: u16 = 443;
/// No content: the answer of servers for this purpose. A captive portal redirects, or answers with a page.
const NO_CONTENT: u16 = 204;

/// Target of probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Ping(IpAddr),
    Dns(SocketAddr),
    Http(HttpTarget),
    Tcp(SocketAddr),
}

impl Target {
    /// Parses a target of the configuration, which has been validated.
    pub(super) fn parse(method: ProbeMethod, text: &str) -> Option<Target> {
        let address = || text.parse::<IpAddr>().ok();
        match method {
            ProbeMethod::Icmp => address().map(Target::Ping),
            ProbeMethod::Dns => address().map(|address| Target::Dns(SocketAddr::new(address, DNS_PORT))),
            ProbeMethod::Http => HttpTarget::parse(text).map(Target::Http),
            ProbeMethod::Tcp => {
                let with_port = || address().map(|address| SocketAddr::new(address, HTTPS_PORT));
                text.parse().ok().or_else(with_port).map(Target::Tcp)
            }
        }
    }

    pub(super) fn address(&self) -> IpAddr {
        match self {
            Target::Ping(address) => *address,
            Target::Dns(server) | Target::Tcp(server) => server.ip(),
            Target::Http(target) => target.server.ip(),
        }
    }

    /// Sends a probe and waits for the answer.
    pub(super) async fn probe(&self, binding: &SocketBinding, limit: Duration) -> Outcome {
        let answered = |time: Option<Duration>| time.map_or(Outcome::Lost, Outcome::Answered);
        match self {
            Target::Ping(address) => answered(probe::send(&Probe::Ping(*address), binding, limit).await),
            Target::Dns(server) => answered(probe::send(&Probe::Dns(*server), binding, limit).await),
            Target::Tcp(server) => {
                let begun = Instant::now();
                match timeout(limit, binding.connect(*server)).await {
                    Ok(Ok(_)) => Outcome::Answered(begun.elapsed()),
                    Ok(Err(_)) | Err(_) => Outcome::Lost,
                }
            }
            Target::Http(HttpTarget { server, path }) => {
                let begun = Instant::now();
                let host = server.ip().to_string();
                match timeout(limit, probe::http_status(*server, &host, path, binding)).await {
                    Ok(Ok(NO_CONTENT)) => Outcome::Answered(begun.elapsed()),
                    Ok(Ok(_)) => Outcome::Captive,
                    Ok(Err(_)) | Err(_) => Outcome::Lost,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_the_port_of_their_method() {
        let parse = |method, text| Target::parse(method, text).expect("a target");
        assert_eq!(parse(ProbeMethod::Icmp, "192.0.2.1"), Target::Ping([192, 0, 2, 1].into()));
        assert_eq!(parse(ProbeMethod::Dns, "::1"), Target::Dns("[::1]:53".parse().unwrap()));
        assert_eq!(parse(ProbeMethod::Tcp, "192.0.2.1"), Target::Tcp("192.0.2.1:443".parse().unwrap()));
        assert_eq!(parse(ProbeMethod::Tcp, "192.0.2.1:22"), Target::Tcp("192.0.2.1:22".parse().unwrap()));
        let http = HttpTarget { server: "192.0.2.1:80".parse().unwrap(), path: "/generate_204?x=1".into() };
        assert_eq!(parse(ProbeMethod::Http, "http://192.0.2.1/generate_204?x=1"), Target::Http(http));
        assert_eq!(Target::parse(ProbeMethod::Http, "http://portal.example/"), None);
    }
}
