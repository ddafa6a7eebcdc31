//! Collectors that get the records of the flow log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::alert_email::is_host;
use super::check_range;
use crate::destination::Destination;
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    /// Transport of IPFIX messages.
    #[derive(Default)]
    pub enum IpfixTransport {
        /// Nothing tells whether a message arrives. Usual for collectors in the same network.
        #[default]
        Udp = "udp",
        /// A message that the collector's host has not confirmed is sent again.
        Tcp = "tcp",
    }
}

/// Collector of IPFIX (RFC 7011).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IpfixCollector {
    pub enabled: bool,
    /// Name or address of the collector.
    pub host: String,
    /// 1 to 65535; usually 4739.
    pub port: u16,
    pub transport: IpfixTransport,
    /// Observation domain, which tells gateways behind one address apart.
    pub observation_domain: u32,
}

impl Default for IpfixCollector {
    fn default() -> Self {
        let (host, transport) = (String::new(), IpfixTransport::Udp);
        Self { enabled: false, host, port: 4739, transport, observation_domain: 1 }
    }
}

/// Collector of syslog (RFC 5424) over TLS or TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyslogCollector {
    pub enabled: bool,
    /// Name or address of the collector.
    pub host: String,
    /// 1 to 65535; usually 6514 with TLS, or 514.
    pub port: u16,
    /// Without TLS the records go over the network in clear text.
    pub tls: bool,
    /// Certificates in PEM that are trusted instead of the system's.
    pub ca_certificate: String,
}

impl Default for SyslogCollector {
    fn default() -> Self {
        let (host, ca_certificate) = (String::new(), String::new());
        Self { enabled: false, host, port: 6514, tls: true, ca_certificate }
    }
}

/// Collector of the OpenTelemetry protocol over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OtlpCollector {
    pub enabled: bool,
    /// Address, such as `https://collector.example.net:4318`, or `https://loki.example.net:3100/otlp`. Logs go to `/v1/logs` below it, metrics to
    /// `/v1/metrics`.
    pub url: String,
    /// Certificates in PEM that are trusted instead of the system's.
    pub ca_certificate: String,
    /// Token of the header `Authorization: Bearer`.
    #[serde(rename(serialize = "has_bearer", deserialize = "bearer"))]
    pub bearer: Secret,
    /// Send a log record for each flow.
    pub logs: bool,
    /// Send the metrics of `/metrics`.
    pub metrics: bool,
    /// Seconds between two readings of the metrics, 5 to 3600.
    pub metrics_interval_sec: u64,
}

impl Default for OtlpCollector {
    fn default() -> Self {
        Self {
            enabled: false,
            url: String::new(),
            ca_certificate: String::new(),
            bearer: Secret::default(),
            logs: true,
            metrics: true,
            metrics_interval_sec: 60,
        }
    }
}

/// Collectors of flow records. Each is off by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowExport {
    pub ipfix: IpfixCollector,
    pub syslog: SyslogCollector,
    pub otlp: OtlpCollector,
}

impl Group for FlowExport {
    const KEY: &'static str = "flows.export";
    const NOUN: &'static str = "flow_export";
    const SECRETS: &'static [&'static str] = &["otlp.bearer"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;

    fn validate(&self, _: &State, problems: &mut Problems) {
        let FlowExport { ipfix, syslog, otlp } = self;
        check_host("ipfix.host", ipfix.enabled, &ipfix.host, problems);
        check_range("ipfix.port", ipfix.port.into(), 1..=65_535, problems);
        check_host("syslog.host", syslog.enabled, &syslog.host, problems);
        check_range("syslog.port", syslog.port.into(), 1..=65_535, problems);
        check_certificate("syslog.ca_certificate", &syslog.ca_certificate, problems);
        if syslog.enabled && !syslog.tls {
            problems.warn("syslog.tls", "Without TLS the records go over the network in clear text.");
        }
        if otlp.url.is_empty() {
            if otlp.enabled {
                problems.required("otlp.url");
            }
        } else if !is_base(&otlp.url) {
            problems.add(
                code::FORMAT,
                "otlp.url",
                "Expected an address without a query and a user, such as https://collector.example.net:4318.",
            );
        } else if otlp.bearer.is_set() && !otlp.url.starts_with("https:") {
            problems.warn("otlp.url", "Without TLS the token goes over the network in clear text.");
        }
        check_certificate("otlp.ca_certificate", &otlp.ca_certificate, problems);
        check_range("otlp.metrics_interval_sec", otlp.metrics_interval_sec, 5..=3600, problems);
    }

    fn destination(&self) -> Destination {
        [
            ("otlp.url", self.otlp.url.to_ascii_lowercase()),
            ("otlp.ca_certificate", self.otlp.ca_certificate.trim().to_owned()),
        ]
        .into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.otlp.bearer]
    }
}

fn check_host(path: &str, is_enabled: bool, host: &str, problems: &mut Problems) {
    if host.is_empty() {
        if is_enabled {
            problems.required(path);
        }
    } else if !is_host(host) {
        problems.add(code::FORMAT, path, "Expected the name or the address of a collector.");
    }
}

fn check_certificate(path: &str, certificate: &str, problems: &mut Problems) {
    if !certificate.is_empty() && !certificate.contains("-----BEGIN CERTIFICATE-----") {
        problems.add(code::FORMAT, path, "Expected certificates in PEM.");
    }
}

/// Reports whether a text is the origin of a web server, without a path and without a user.
fn is_base(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        let is_bare = url.query().is_none() && url.fragment().is_none();
        let has_no_user = url.username().is_empty() && url.password().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare && has_no_user
    })
}
