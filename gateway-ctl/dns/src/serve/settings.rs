//! What the resolver is set to.

use std::net::SocketAddr;
use std::time::Duration;

use crate::cache::Limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub listen: Vec<Listen>,
    /// Where it listens for TLS and HTTPS.
    pub secure: Vec<SocketAddr>,
    /// Threads that read the sockets; 0 is one per processor, at most four.
    pub workers: usize,
    pub blocking: Blocking,
    pub cache: Limits,
    /// How long an old answer waits for a fresh one (RFC 8767, section 5).
    pub stale_wait: Duration,
    /// TTL of what rewrites answer, in seconds.
    pub rewrite_ttl: u32,
    pub rate: Rate,
    /// The same for each host of the LAN.
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

/// Where it listens, by UDP and TCP.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listen {
    pub address: SocketAddr,
    /// Only what comes in by this interface.
    pub interface: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocking {
    pub enabled: bool,
    pub mode: Mode,
    /// Of blocked answers, in seconds.
    pub ttl: u32,
    /// Until then nothing is blocked.
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

/// How a blocked name is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// 0.0.0.0 and ::, other types are not there.
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

/// How many questions by UDP those of one network may ask: a /24 or a /56. Hosts of the LAN are counted one by one
/// instead: they are where they say, and a household behind one prefix would be throttled as one. What is over is dropped, every
/// second time answered with the flag that leads to TCP, which nobody can forge (so real ones get their answer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// 0 is without a limit.
    pub per_second: u32,
    /// Seconds' worth that may come at once.
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
    /// Questions of one connection that are worked on at once.
    pub pipelined: usize,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams { connections: 1024, per_client: 128, idle: Duration::from_secs(10), pipelined: 64 }
    }
}
