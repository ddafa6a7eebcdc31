//! Replies of hostapd to `STATUS` and `STA-FIRST`: lines of keys and values.

use std::collections::BTreeMap;

use gateway_model::id::MacAddr;
use schemars::JsonSchema;
use serde::Serialize;

/// Most networks of one access point that a reply is read for.
const MAX_NETWORKS: usize = 16;

/// State of an access point, as hostapd reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApState {
    /// `ENABLED` while stations can join; `COUNTRY_UPDATE`, `DFS` and others before.
    pub state: String,
    /// Null if hostapd does not report it.
    pub channel: Option<u16>,
    /// In MHz; null if hostapd does not report it.
    pub frequency_mhz: Option<u32>,
    pub networks: Vec<BssState>,
}

/// Wireless network of an access point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BssState {
    pub interface: String,
    pub bssid: Option<MacAddr>,
    pub ssid: String,
    /// Number of stations.
    pub stations: Option<u32>,
}

/// Station of an access point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Station {
    pub mac: MacAddr,
    /// The station has proved that it knows the passphrase.
    pub authorized: bool,
    /// `wpa2` or `wpa3`; null while it is not known.
    pub security: Option<&'static str>,
    /// Strength of its signal in dBm; null if the driver does not report it.
    pub signal_dbm: Option<i16>,
    /// Seconds since it joined.
    pub connected_sec: Option<u64>,
    /// Bytes from the station.
    pub rx_bytes: Option<u64>,
    /// Bytes to the station.
    pub tx_bytes: Option<u64>,
}

fn fields(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

fn number<T: std::str::FromStr>(fields: &BTreeMap<&str, &str>, key: &str) -> Option<T> {
    fields.get(key)?.trim().parse().ok()
}

/// Parses the reply to `STATUS`. Returns `None` for anything else.
pub fn parse_status(text: &str) -> Option<ApState> {
    let fields = fields(text);
    let state = (*fields.get("state")?).to_owned();
    let networks = (0..MAX_NETWORKS).map_while(|index| {
        let of = |name: &str| fields.get(format!("{name}[{index}]").as_str()).copied();
        Some(BssState {
            interface: of("bss")?.to_owned(),
            bssid: of("bssid").and_then(|text| text.parse().ok()),
            ssid: decoded(of("ssid").unwrap_or_default()),
            stations: of("num_sta").and_then(|text| text.parse().ok()),
        })
    });
    let networks = networks.collect();
    Some(ApState {
        state,
        channel: number(&fields, "channel"),
        frequency_mhz: number(&fields, "freq"),
        networks,
    })
}

/// Parses a reply to `STA-FIRST` or `STA-NEXT`. Returns `None` at the end of the list.
pub fn parse_station(text: &str) -> Option<Station> {
    let mac = text.lines().next()?.trim().parse().ok()?;
    let fields = fields(text);
    let security = fields.get("AKMSuiteSelector").and_then(|suite| match *suite {
        // IEEE 802.11-2020, table 9-151.
        "00-0f-ac-2" | "00-0f-ac-6" => Some("wpa2"),
        "00-0f-ac-8" => Some("wpa3"),
        _ => None,
    });
    Some(Station {
        mac,
        authorized: fields.get("flags").is_some_and(|flags| flags.contains("[AUTHORIZED]")),
        security,
        signal_dbm: number(&fields, "signal"),
        connected_sec: number(&fields, "connected_time"),
        rx_bytes: number(&fields, "rx_bytes"),
        tx_bytes: number(&fields, "tx_bytes"),
    })
}

/// Decodes the name of a network, in which hostapd escapes bytes that cannot be printed.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'e') => bytes.push(0x1b),
            Some(b'x') => {
                let digits = [rest.next(), rest.next()].map(|digit| {
                    digit
                        .and_then(|digit| char::from(digit).to_digit(16))
                        .and_then(|digit| u8::try_from(digit).ok())
                });
                if let [Some(high), Some(low)] = digits {
                    bytes.push(high << 4 | low);
                }
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
