//! Uplinks: interfaces to the internet, how they are probed, and their states.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::IfName;
use crate::problem::{Problems, code};
use crate::validated::{check_name, text_enum};

text_enum! {
    /// Kind of the probes of an uplink.
    #[derive(Default)]
    pub enum ProbeMethod {
        /// ICMP echo.
        #[default]
        Icmp = "icmp",
        /// A DNS query for the name servers of the root, over UDP.
        Dns = "dns",
        /// An HTTP request that a server answers with 204. Tells captive portals.
        Http = "http",
        /// A TCP connection to port 443, or to the port of the target.
        Tcp = "tcp",
    }
}

text_enum! {
    /// State of an uplink.
    #[derive(Default)]
    pub enum UplinkState {
        Online = "online",
        /// Works, with more loss or latency than its limits.
        Degraded = "degraded",
        /// Answers again, not often enough yet.
        #[default]
        Connecting = "connecting",
        /// Answers no more, not often enough to be offline.
        Disconnecting = "disconnecting",
        Offline = "offline",
        Disabled = "disabled",
        /// A captive portal answers in place of the targets.
        Captive = "captive",
    }
}

impl UplinkState {
    /// Reports whether traffic passes.
    pub const fn is_usable(self) -> bool {
        matches!(self, UplinkState::Online | UplinkState::Degraded | UplinkState::Disconnecting)
    }
}

/// Probes of an uplink. They leave by it, whatever uplink is active.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Probe {
    /// 1 to 8 addresses, or URLs for the method `http`. Several, so that one that is down does not count.
    pub targets: Vec<String>,
    pub method: ProbeMethod,
    /// 1 to 3600.
    pub interval_sec: u32,
    /// 1 to 60, at most the interval.
    pub timeout_sec: u32,
    /// Failed rounds in a row after which the uplink is offline.
    pub fail: u32,
    /// Successful rounds in a row after which it is online again.
    pub success: u32,
    /// Targets that must answer for a round to succeed.
    pub reliability: u32,
    /// Loss in percent from which the uplink is degraded, and at which it is online again.
    pub loss_fail_pct: u8,
    pub loss_ok_pct: u8,
    /// The same for the mean time of answers in milliseconds.
    pub latency_fail_ms: u32,
    pub latency_ok_ms: u32,
}

impl Probe {
    /// The defaults, without targets.
    pub const DEFAULT: Probe = Probe {
        targets: Vec::new(),
        method: ProbeMethod::Icmp,
        interval_sec: 5,
        timeout_sec: 2,
        fail: 3,
        success: 5,
        reliability: 1,
        loss_fail_pct: 20,
        loss_ok_pct: 10,
        latency_fail_ms: 500,
        latency_ok_ms: 200,
    };
}

impl Default for Probe {
    fn default() -> Probe {
        Probe { targets: ["1.1.1.1", "9.9.9.9", "8.8.8.8"].map(str::to_owned).into(), ..Probe::DEFAULT }
    }
}

/// An uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wan {
    #[serde(default)]
    pub name: String,
    pub interface: IfName,
    /// `dhcp` or an address.
    #[serde(default = "dhcp")]
    pub gateway: String,
    /// Lower comes first.
    #[serde(default = "hundred")]
    pub priority: u32,
    /// Relative share of new flows while balancing, from 1 to 256. No guaranteed ratio of bytes.
    #[serde(default = "one")]
    pub weight: u16,
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Takes part in balancing. Otherwise it is for failover only.
    #[serde(default = "yes")]
    pub balance: bool,
    /// Traffic costs money: probes are sent a tenth as often while another uplink is active.
    #[serde(default)]
    pub metered: bool,
    #[serde(default)]
    pub probe: Probe,
    /// On failover away from it, its flows end, so that clients connect again.
    #[serde(default = "yes")]
    pub failover_states: bool,
    /// On fail-back to another uplink, its flows end, too.
    #[serde(default)]
    pub failback_states: bool,
}

fn dhcp() -> String {
    "dhcp".into()
}

fn hundred() -> u32 {
    100
}

fn one() -> u16 {
    1
}

fn yes() -> bool {
    true
}

impl Wan {
    /// Returns an uplink with default settings.
    pub fn of_interface(interface: IfName) -> Wan {
        Wan {
            name: interface.to_string(),
            interface,
            gateway: dhcp(),
            priority: hundred(),
            weight: one(),
            enabled: true,
            balance: true,
            metered: false,
            probe: Probe::default(),
            failover_states: true,
            failback_states: false,
        }
    }

    /// Returns the name, else that of the interface.
    pub fn display_name(&self) -> &str {
        if self.name.is_empty() { self.interface.as_str() } else { &self.name }
    }

    /// None: that of the host's own default route.
    pub fn gateway_address(&self) -> Option<IpAddr> {
        self.gateway.parse().ok()
    }

    /// Adds the problems of the fields. `path` is that of the uplink.
    pub fn validate(&self, path: &str, problems: &mut Problems) {
        if !self.name.is_empty() {
            check_name(&format!("{path}.name"), &self.name, problems);
        }
        if self.gateway != "dhcp" && self.gateway_address().is_none() {
            let message = "Expected dhcp or the address of the gateway.";
            problems.add(code::FORMAT, format!("{path}.gateway"), message);
        }
        if !(1..=256).contains(&self.weight) {
            problems.add(code::RANGE, format!("{path}.weight"), "Must be from 1 to 256.");
        }
        self.probe.validate(&format!("{path}.probe"), problems);
    }
}

/// Server of a probe by HTTP. Its host is an address: a captive portal answers names wrongly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTarget {
    pub server: SocketAddr,
    pub path: String,
}

impl HttpTarget {
    pub fn parse(url: &str) -> Option<HttpTarget> {
        let url = url::Url::parse(url).ok().filter(|url| url.scheme() == "http")?;
        let address: IpAddr = match url.host()? {
            url::Host::Ipv4(address) => address.into(),
            url::Host::Ipv6(address) => address.into(),
            url::Host::Domain(_) => return None,
        };
        let server = SocketAddr::new(address, url.port_or_known_default()?);
        let path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
        Some(HttpTarget { server, path })
    }
}

const MAX_TARGETS: usize = 8;

impl Probe {
    fn validate(&self, path: &str, problems: &mut Problems) {
        // Without one, no round would ever tell the state of the uplink.
        if !(1..=MAX_TARGETS).contains(&self.targets.len()) {
            problems.add(
                code::RANGE,
                format!("{path}.targets"),
                format!("Expected 1 to {MAX_TARGETS} targets."),
            );
        }
        for (index, target) in self.targets.iter().enumerate() {
            if !self.is_target(target) {
                let message = match self.method {
                    ProbeMethod::Http => {
                        "Expected an HTTP URL with an IP address, such as http://192.0.2.1/generate_204."
                    }
                    ProbeMethod::Tcp => "Expected an IP address, with or without a port.",
                    ProbeMethod::Icmp | ProbeMethod::Dns => "Expected an IP address.",
                };
                problems.add(code::FORMAT, format!("{path}.targets[{index}]"), message);
            }
        }
        let mut check = |field: &str, value: u32, from: u32, to: u32| {
            if !(from..=to).contains(&value) {
                problems.add(code::RANGE, format!("{path}.{field}"), format!("Must be from {from} to {to}."));
            }
        };
        check("interval_sec", self.interval_sec, 1, 3600);
        check("timeout_sec", self.timeout_sec, 1, self.interval_sec.clamp(1, 60));
        check("fail", self.fail, 1, 100);
        check("success", self.success, 1, 100);
        let targets = u32::try_from(self.targets.len().max(1)).unwrap_or(u32::MAX);
        check("reliability", self.reliability, 1, targets);
        check("loss_fail_pct", self.loss_fail_pct.into(), 1, 100);
        check("loss_ok_pct", self.loss_ok_pct.into(), 0, self.loss_fail_pct.into());
        check("latency_fail_ms", self.latency_fail_ms, 1, 60_000);
        check("latency_ok_ms", self.latency_ok_ms, 0, self.latency_fail_ms);
    }

    fn is_target(&self, target: &str) -> bool {
        let is_address = target.parse::<IpAddr>().is_ok();
        match self.method {
            ProbeMethod::Icmp | ProbeMethod::Dns => is_address,
            ProbeMethod::Tcp => is_address || target.parse::<SocketAddr>().is_ok(),
            ProbeMethod::Http => HttpTarget::parse(target).is_some(),
        }
    }
}
