//! Settings of the resolver.

use std::net::SocketAddr;
use std::time::Duration;

use crate::cache::Limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub listen: Vec<Listen>,
    /// Listening addresses for DoT and DoH.
    pub secure: Vec<SocketAddr>,
    /// Threads that read the sockets. 0: one per processor, at most four.
    pub workers: usize,
    pub blocking: Blocking,
    pub cache: Limits,
    /// Wait for an upstream before a stale answer is sent (RFC 8767, section 5).
    pub stale_wait: Duration,
    /// TTL of rewritten answers, in seconds.
    pub rewrite_ttl: u32,
    pub rate: Rate,
    /// Rate limit of each host of the LAN.
    pub client_rate: Rate,
    pub streams: Streams,
    pub log: crate::query_log::Settings,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: Vec::new(),
            secure: Vec::new(),
            workers: 0,
            blocking: Blocking::default(),
            cache: Limits::default(),
            stale_wait: Duration::from_millis(1800),
            rewrite_ttl: 60,
            rate: Rate::default(),
            client_rate: Rate { per_second: 0, burst: 4 },
            streams: Streams::default(),
            log: crate::query_log::Settings::default(),
        }
    }
}

/// Listening address for UDP and TCP.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listen {
    pub address: SocketAddr,
    /// Interface whose packets are accepted. None: all interfaces.
    pub interface: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocking {
    pub enabled: bool,
    pub mode: Mode,
    /// TTL of blocked answers, in seconds.
    pub ttl: u32,
    /// End of a pause, during which nothing is blocked.
    pub paused_until: Option<jiff::Timestamp>,
}

impl Default for Blocking {
    fn default() -> Blocking {
        Blocking { enabled: true, mode: Mode::NullIp, ttl: 10, paused_until: None }
    }
}

impl Blocking {
    pub fn holds(&self, now: jiff::Timestamp) -> bool {
        self.enabled && self.paused_until.is_none_or(|until| until <= now)
    }
}

/// Answer to a blocked name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// 0.0.0.0 and ::. Other types get NODATA.
    #[default]
    NullIp,
    Nxdomain,
    Refused,
}

impl Mode {
    pub const fn text(self) -> &'static str {
        match self {
            Mode::NullIp => "null_ip",
            Mode::Nxdomain => "nxdomain",
            Mode::Refused => "refused",
        }
    }
}

/// Rate limit of UDP queries per network: a /24 or a /56. Hosts of the LAN are limited one by one instead: their
/// addresses are genuine, and one limit would throttle a household behind one prefix. Excess queries are dropped. Every
/// second one gets a truncated answer instead, so that genuine clients retry over TCP, where addresses cannot be
/// forged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Queries per second. 0: no limit.
    pub per_second: u32,
    /// Burst size, as seconds of the rate.
    pub burst: u32,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { per_second: 20, burst: 5 }
    }
}

/// Limits of TCP (RFC 7766).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    pub connections: usize,
    pub per_client: usize,
    pub idle: Duration,
    /// Maximum number of queries in progress on one connection.
    pub pipelined: usize,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams { connections: 1024, per_client: 128, idle: Duration::from_secs(10), pipelined: 64 }
    }
}
