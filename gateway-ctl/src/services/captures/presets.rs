//! Named filters.

use std::net::IpAddr;

use gateway_core::doh_servers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A named filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CapturePreset {
    pub name: CapturePresetName,
    pub description: &'static str,
    /// Filter expression of pcap-filter(7).
    pub filter: String,
}

macro_rules! presets {
    ($($name:ident $text:literal $description:literal;)+) => {
        /// Name of a preset.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum CapturePresetName {
            $(#[serde(rename = $text)] $name,)+
        }

        impl CapturePresetName {
            pub const ALL: &[CapturePresetName] = &[$(CapturePresetName::$name,)+];

            const fn description(self) -> &'static str {
                match self {
                    $(CapturePresetName::$name => $description,)+
                }
            }
        }
    };
}

presets! {
    Dns "dns" "DNS queries and answers";
    DnsBypass "dns-bypass" "DNS queries to resolvers other than the gateway";
    EncryptedDns "encrypted-dns" "DNS over TLS, QUIC and HTTPS of known resolvers";
    Dhcp "dhcp" "DHCP and DHCPv6";
    Arp "arp" "ARP";
    Icmp "icmp" "ICMP and ICMPv6";
    Ipv6RaNd "ipv6-ra-nd" "router advertisements and neighbour discovery of IPv6";
    Http "http" "HTTP without TLS";
    TlsHandshake "tls-handshake" "handshakes of TLS, which show server names";
    Quic "quic" "QUIC at port 443";
    Wireguard "wireguard" "WireGuard at any port";
    Openvpn "openvpn" "OpenVPN at its port";
    StunWebrtc "stun-webrtc" "STUN, by which WebRTC finds addresses";
    MdnsSsdp "mdns-ssdp" "discovery of services by mDNS and SSDP";
}

/// Returns all presets. `own` are the addresses of the gateway.
pub fn presets(own: &[IpAddr]) -> Vec<CapturePreset> {
    let preset = |name: &CapturePresetName| CapturePreset {
        name: *name,
        description: name.description(),
        filter: name.filter(own),
    };
    CapturePresetName::ALL.iter().map(preset).collect()
}

impl CapturePresetName {
    /// Returns the filter expression.
    pub fn filter(self, own: &[IpAddr]) -> String {
        match self {
            CapturePresetName::Dns => "port 53".to_owned(),
            CapturePresetName::DnsBypass => {
                let own: String = own.iter().map(|address| format!(" and not dst host {address}")).collect();
                format!("dst port 53{own}")
            }
            CapturePresetName::EncryptedDns => {
                let known: Vec<String> = doh_servers::networks().map(|net| format!("net {net}")).collect();
                format!("port 853 or port 784 or port 8853 or (port 443 and ({}))", known.join(" or "))
            }
            CapturePresetName::Dhcp => "udp and (port 67 or port 68 or port 546 or port 547)".to_owned(),
            CapturePresetName::Arp => "arp".to_owned(),
            CapturePresetName::Icmp => "icmp or icmp6".to_owned(),
            CapturePresetName::Ipv6RaNd => "icmp6 and ip6[40] >= 133 and ip6[40] <= 137".to_owned(),
            CapturePresetName::Http => "tcp and (port 80 or port 8080)".to_owned(),
            // The first byte behind the header of TCP is the type of a record.
            CapturePresetName::TlsHandshake => {
                "tcp[((tcp[12] & 0xf0) >> 2)] = 22 or (ip6 and ip6[6] = 6 and ip6[40 + ((ip6[52] & 0xf0) >> 2)] = 22)".to_owned()
            }
            CapturePresetName::Quic => "udp and port 443".to_owned(),
            CapturePresetName::Wireguard => {
                let kinds = |at: &str| (1..=4).map(|kind| format!("{at} = {:#x}", kind << 24)).collect::<Vec<_>>().join(" or ");
                format!("{} or (ip6 and ip6[6] = 17 and ({}))", kinds("udp[8:4]"), kinds("ip6[48:4]"))
            }
            CapturePresetName::Openvpn => "port 1194".to_owned(),
            CapturePresetName::StunWebrtc => {
                "port 3478 or udp[12:4] = 0x2112a442 or (ip6 and ip6[6] = 17 and ip6[52:4] = 0x2112a442)".to_owned()
            }
            CapturePresetName::MdnsSsdp => "udp and (port 5353 or port 1900)".to_owned(),
        }
    }
}
