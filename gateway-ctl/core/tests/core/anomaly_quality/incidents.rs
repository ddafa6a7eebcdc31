//! Incidents: what malware, an intruder or a curious user would do.

use gateway_model::kinds::anomaly::AnomalyKind;

use super::captures;
use super::household::{Device, Model};
use super::traffic::{Random, Service, TCP, Traffic, UDP};

const MIB: u64 = 1 << 20;

/// Incident of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incident {
    Exfiltration,
    LargeExfiltration,
    NightExfiltration,
    VerticalScan,
    HorizontalScan,
    CommandChannel,
    OddPort,
    FarCountry,
    Tunnel,
    QueryFlood,
    MissingNames,
    GeneratedNames,
    DnsTunnel,
    DohClient,
    /// Traffic of a real capture, with the kind by which it should be found.
    Captured(&'static str, AnomalyKind),
}

use Incident::*;

const ALL: &[Incident] = &[
    Exfiltration,
    LargeExfiltration,
    // By day, it does not happen.
    NightExfiltration,
    NightExfiltration,
    NightExfiltration,
    NightExfiltration,
    VerticalScan,
    HorizontalScan,
    CommandChannel,
    OddPort,
    FarCountry,
    Tunnel,
    QueryFlood,
    MissingNames,
    GeneratedNames,
    DnsTunnel,
    DohClient,
    Captured("synscan", AnomalyKind::PortScan),
    Captured("dns-tunnel-iodine", AnomalyKind::DnsTunnelLike),
    Captured("bad-dns-traffic", AnomalyKind::DnsTunnelLike),
    Captured("openvpn", AnomalyKind::TorOrVpnUsage),
    Captured("wireguard", AnomalyKind::TorOrVpnUsage),
    Captured("tailscale", AnomalyKind::TorOrVpnUsage),
    Captured("protonvpn", AnomalyKind::TorOrVpnUsage),
    Captured("dns_doh", AnomalyKind::DohUsage),
    Captured("doh", AnomalyKind::DohUsage),
    Captured("dnscrypt-v2-doh", AnomalyKind::DohUsage),
    Captured("os_detected", AnomalyKind::DohUsage),
];

impl Incident {
    pub(super) fn any(random: &mut Random) -> Incident {
        *random.choose(ALL)
    }

    /// Returns the kinds of its anomalies, the one by which it should be found first.
    pub(super) fn kinds(self) -> Vec<AnomalyKind> {
        use AnomalyKind as Kind;
        match self {
            Exfiltration => vec![Kind::AbnormalUpload, Kind::NightActivity],
            LargeExfiltration => vec![Kind::LargeUpload, Kind::AbnormalUpload, Kind::NightActivity],
            NightExfiltration => vec![Kind::NightActivity, Kind::AbnormalUpload],
            VerticalScan | HorizontalScan => vec![Kind::PortScan, Kind::NewPort, Kind::TorOrVpnUsage],
            CommandChannel => vec![Kind::Beaconing],
            OddPort => vec![Kind::NewPort],
            FarCountry => vec![Kind::NewDestinationCountry],
            Tunnel => vec![Kind::TorOrVpnUsage, Kind::NewPort],
            QueryFlood => vec![Kind::DnsVolume],
            MissingNames => vec![Kind::DnsNxdomainBurst],
            GeneratedNames => vec![Kind::DgaLike, Kind::DnsNxdomainBurst],
            DnsTunnel => vec![Kind::DnsTunnelLike, Kind::DnsVolume],
            DohClient => vec![Kind::DohUsage],
            Captured(_, kind) => {
                vec![kind, Kind::NewPort, Kind::DnsVolume, Kind::TorOrVpnUsage, Kind::DnsNxdomainBurst]
            }
        }
    }

    /// Makes the traffic. Returns false if it does not fit the device or the hour.
    pub(super) fn make(self, device: &Device, hour: i64, random: &mut Random, traffic: &mut Traffic) -> bool {
        let is_night = hour % 24 < 6;
        match self {
            Exfiltration => traffic.sent += (400 + random.below(1200)) * MIB,
            LargeExfiltration => traffic.sent += (2200 + random.below(4000)) * MIB,
            NightExfiltration if !is_night || device.model == Model::Storage => return false,
            NightExfiltration => traffic.sent += (20 + random.below(30)) * MIB,
            VerticalScan => {
                let target = Service::unnamed(random, 1, TCP, "");
                (1..120).for_each(|port| {
                    traffic.some_flow(random, &Service { port: port * 7, ..target.clone() })
                });
            }
            HorizontalScan => {
                (0..200).for_each(|_| {
                    let target = Service::unnamed(random, 445, TCP, "");
                    traffic.some_flow(random, &target);
                });
            }
            CommandChannel => {
                let target = Service::unnamed(random, 443, TCP, "");
                let interval = 40 + random.below(120) as i64;
                traffic.beacon(random, &target, interval);
            }
            OddPort => {
                let port = *random.choose(&[23, 2323, 4444, 6667, 1337, 31337, 5555, 7547]);
                let target = Service::unnamed(random, port, TCP, "");
                traffic.some_flow(random, &target);
            }
            FarCountry => {
                let country = *random.choose(&["KP", "IR", "BY", "VE", "NG", "MM", "AF", "SY"]);
                let target = Service::unnamed(random, 443, TCP, country);
                traffic.some_flow(random, &target);
            }
            Tunnel => {
                let (port, protocol) =
                    *random.choose(&[(9001, TCP), (51820, UDP), (1194, UDP), (1194, TCP), (4500, UDP)]);
                let target = Service::unnamed(random, port, protocol, "");
                traffic.some_flow(random, &target);
            }
            QueryFlood => traffic.queries(1500 + random.below(2000), "www.site.example"),
            MissingNames => {
                (0..300)
                    .for_each(|number| traffic.query(format!("host-{number}.missing.example"), true, false));
            }
            GeneratedNames => (0..60).for_each(|_| traffic.query(generated(random), true, false)),
            DnsTunnel => (0..300).for_each(|_| {
                traffic.query(
                    format!("{:032x}{:016x}.t.carrier.example", random.next(), random.next()),
                    false,
                    false,
                );
            }),
            DohClient => {
                traffic.query("dns.google", false, true);
                let resolver = Service {
                    address: [8, 8, 8, 8].into(),
                    is_doh: true,
                    ..Service::unnamed(random, 443, TCP, "US")
                };
                traffic.some_flow(random, &resolver);
            }
            Captured(name, _) => captures::replay(name, random.below(1_000_000) as i64, traffic),
        }
        true
    }
}

/// Returns a name as a generator of domains makes it.
fn generated(random: &mut Random) -> String {
    let length = 12 + random.below(8);
    let letters: String = (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
    format!("{letters}.{}", random.choose(&["com", "net", "info", "biz"]))
}
