//! `.conf` text to a value. Errors name a line and a key, never a value: a value may be a secret.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

use super::{Key, WgConf, WgConfPeer, decode_key};
use crate::suggest;

/// Maximum length of a text in bytes.
pub const MAX_SIZE: usize = 64 * 1024;

/// The least MTU that any IP network must carry.
const MIN_MTU: u16 = 576;
/// Longer words before a `=` are not echoed: a bare base64 key ends in one, too.
const MAX_NAME: usize = 24;

/// Keys that have a meaning for wg-quick only.
const IGNORED: [&str; 7] = ["PreUp", "PostUp", "PreDown", "PostDown", "Table", "SaveConfig", "FwMark"];
/// Keys that are obeyed.
const OBEYED: [&str; 10] = [
    "PrivateKey",
    "Address",
    "DNS",
    "MTU",
    "ListenPort",
    "PublicKey",
    "PresharedKey",
    "Endpoint",
    "AllowedIPs",
    "PersistentKeepalive",
];
/// Least length of a key that can be a misspelt one: shorter names are too similar to one another.
const MIN_SIMILAR: usize = 5;

/// Fault and its line. Line 0 means the text as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct WgConfError {
    pub line: usize,
    pub problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the text is longer than {MAX_SIZE} bytes")]
    TooLong,
    #[error("neither a section, a comment nor \"key = value\"")]
    Syntax,
    #[error("unknown section; only [Interface] and [Peer] exist")]
    UnknownSection,
    #[error("\"key = value\" before any section")]
    OutsideSection,
    #[error("a second [Interface] section")]
    SecondInterface,
    #[error("missing [Interface] section")]
    NoInterface,
    #[error("{0} occurs twice in one section")]
    Twice(&'static str),
    #[error("{0} is missing from this section")]
    Missing(&'static str),
    #[error("unknown key {written}; did you mean {meant}?")]
    UnknownKey { written: String, meant: &'static str },
    #[error("{key} does not belong in [{section}]")]
    Misplaced { key: &'static str, section: &'static str },
    #[error("{key} must be {wanted}")]
    Value { key: &'static str, wanted: &'static str },
    #[error("{0} has another value than WireGuard's: the server speaks AmneziaWG, which is not supported")]
    Amnezia(&'static str),
    #[error("another [Peer] section has the same PublicKey")]
    SamePeer,
}

/// Parses a `.conf` text.
pub fn parse(text: &str) -> Result<WgConf, WgConfError> {
    if text.len() > MAX_SIZE {
        return Err(WgConfError { line: 0, problem: Problem::TooLong });
    }
    let mut parser = Parser::default();
    for (index, raw) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = raw.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            parser.line(index + 1, line).map_err(|problem| WgConfError { line: index + 1, problem })?;
        }
    }
    parser.finish()
}

#[derive(Default)]
struct Parser {
    section: Section,
    interface: Option<Interface>,
    peers: Vec<Peer>,
    ignored: Vec<String>,
}

#[derive(Default, Clone, Copy)]
enum Section {
    #[default]
    None,
    Interface,
    Peer,
}

#[derive(Default)]
struct Interface {
    line: usize,
    private_key: Option<Key>,
    addresses: Vec<IpNet>,
    dns: Vec<String>,
    mtu: Option<u16>,
    listen_port: Option<u16>,
}

#[derive(Default)]
struct Peer {
    line: usize,
    public_key: Option<[u8; 32]>,
    preshared_key: Option<Key>,
    endpoint: Option<String>,
    allowed_ips: Vec<IpNet>,
    /// The inner `None` stands for `off`.
    persistent_keepalive: Option<Option<u16>>,
}

impl Parser {
    fn line(&mut self, number: usize, line: &str) -> Result<(), Problem> {
        if line.starts_with('[') {
            return self.open(number, line);
        }
        let (key, value) = line.split_once('=').ok_or(Problem::Syntax)?;
        let (key, value) = (key.trim(), value.trim());
        match self.section {
            Section::None => Err(Problem::OutsideSection),
            Section::Interface => self.interface_key(key, value),
            Section::Peer => self.peer_key(key, value),
        }
    }

    fn open(&mut self, line: usize, header: &str) -> Result<(), Problem> {
        if header.eq_ignore_ascii_case("[interface]") {
            if self.interface.is_some() {
                return Err(Problem::SecondInterface);
            }
            self.interface = Some(Interface { line, ..Interface::default() });
            self.section = Section::Interface;
        } else if header.eq_ignore_ascii_case("[peer]") {
            self.peers.push(Peer { line, ..Peer::default() });
            self.section = Section::Peer;
        } else {
            return Err(Problem::UnknownSection);
        }
        Ok(())
    }

    fn interface_key(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let Some(interface) = &mut self.interface else {
            return Err(Problem::OutsideSection);
        };
        match key.to_ascii_lowercase().as_str() {
            "privatekey" => once("PrivateKey", &mut interface.private_key, secret("PrivateKey", value)?),
            "address" => {
                for item in items(value) {
                    interface.addresses.push(network("Address", item)?);
                }
                Ok(())
            }
            "dns" => {
                for item in items(value) {
                    interface.dns.push(name_server(item)?);
                }
                Ok(())
            }
            "mtu" => once("MTU", &mut interface.mtu, mtu(value)?),
            "listenport" => once("ListenPort", &mut interface.listen_port, port("ListenPort", value)?),
            "publickey" => Err(Problem::Misplaced { key: "PublicKey", section: "Interface" }),
            "presharedkey" => Err(Problem::Misplaced { key: "PresharedKey", section: "Interface" }),
            "endpoint" => Err(Problem::Misplaced { key: "Endpoint", section: "Interface" }),
            "allowedips" => Err(Problem::Misplaced { key: "AllowedIPs", section: "Interface" }),
            lower => match amnezia(lower) {
                Some((name, plain)) if value != plain => Err(Problem::Amnezia(name)),
                _ => self.ignore(key),
            },
        }
    }

    fn peer_key(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let Some(peer) = self.peers.last_mut() else {
            return Err(Problem::OutsideSection);
        };
        match key.to_ascii_lowercase().as_str() {
            "publickey" => {
                let wanted = "a base64 key of 32 bytes";
                let bytes = decode_key(value).map_err(|_| Problem::Value { key: "PublicKey", wanted })?;
                once("PublicKey", &mut peer.public_key, bytes)
            }
            "presharedkey" => once("PresharedKey", &mut peer.preshared_key, secret("PresharedKey", value)?),
            "endpoint" => once("Endpoint", &mut peer.endpoint, endpoint(value)?),
            "allowedips" => {
                for item in items(value) {
                    peer.allowed_ips.push(network("AllowedIPs", item)?.trunc());
                }
                Ok(())
            }
            "persistentkeepalive" => {
                once("PersistentKeepalive", &mut peer.persistent_keepalive, keepalive(value)?)
            }
            "privatekey" => Err(Problem::Misplaced { key: "PrivateKey", section: "Peer" }),
            "address" => Err(Problem::Misplaced { key: "Address", section: "Peer" }),
            "listenport" => Err(Problem::Misplaced { key: "ListenPort", section: "Peer" }),
            "dns" => Err(Problem::Misplaced { key: "DNS", section: "Peer" }),
            "mtu" => Err(Problem::Misplaced { key: "MTU", section: "Peer" }),
            _ => self.ignore(key),
        }
    }

    /// Remembers the name of a key that is not obeyed.
    fn ignore(&mut self, key: &str) -> Result<(), Problem> {
        let name = match IGNORED.iter().find(|known| known.eq_ignore_ascii_case(key)) {
            Some(known) => known,
            // A misspelt key would be missing without a word.
            None if is_name(key) && amnezia(&key.to_ascii_lowercase()).is_none() => match similar(key) {
                Some(meant) => return Err(Problem::UnknownKey { written: key.to_owned(), meant }),
                None => key,
            },
            None if is_name(key) => key,
            None => return Err(Problem::Syntax),
        };
        if !self.ignored.iter().any(|seen| seen.eq_ignore_ascii_case(name)) {
            self.ignored.push(name.to_owned());
        }
        Ok(())
    }

    fn finish(self) -> Result<WgConf, WgConfError> {
        let Some(interface) = self.interface else {
            return Err(WgConfError { line: 0, problem: Problem::NoInterface });
        };
        let missing = |line, key| WgConfError { line, problem: Problem::Missing(key) };
        let private_key = interface.private_key.ok_or_else(|| missing(interface.line, "PrivateKey"))?;
        let mut peers: Vec<WgConfPeer> = Vec::with_capacity(self.peers.len());
        for peer in self.peers {
            let public_key = peer.public_key.ok_or_else(|| missing(peer.line, "PublicKey"))?;
            if peers.iter().any(|other| other.public_key == public_key) {
                return Err(WgConfError { line: peer.line, problem: Problem::SamePeer });
            }
            peers.push(WgConfPeer {
                public_key,
                preshared_key: peer.preshared_key,
                endpoint: peer.endpoint,
                allowed_ips: peer.allowed_ips,
                persistent_keepalive: peer.persistent_keepalive.flatten(),
            });
        }
        Ok(WgConf {
            private_key,
            addresses: interface.addresses,
            dns: interface.dns,
            mtu: interface.mtu,
            listen_port: interface.listen_port,
            peers,
            ignored: self.ignored,
        })
    }
}

/// Returns the name of a setting of AmneziaWG that both ends must have, and its value in WireGuard. Its other settings
/// (`Jc`, `Jmin`, `Jmax`, `I1` to `I5`) only add packets that a server ignores.
fn amnezia(key: &str) -> Option<(&'static str, &'static str)> {
    Some(match key {
        "h1" => ("H1", "1"),
        "h2" => ("H2", "2"),
        "h3" => ("H3", "3"),
        "h4" => ("H4", "4"),
        "s1" => ("S1", "0"),
        "s2" => ("S2", "0"),
        "s3" => ("S3", "0"),
        "s4" => ("S4", "0"),
        _ => return None,
    })
}

/// Returns the key that is meant by one that is unknown, if it is similar enough.
fn similar(written: &str) -> Option<&'static str> {
    let all = || OBEYED.iter().chain(&IGNORED);
    let lower: Vec<String> = all().map(|key| key.to_ascii_lowercase()).collect();
    let words = lower.iter().map(String::as_str).filter(|_| written.len() >= MIN_SIMILAR);
    let near = suggest::nearest(written, words)?;
    all().find(|key| key.eq_ignore_ascii_case(near)).copied()
}

fn is_name(key: &str) -> bool {
    key.len() <= MAX_NAME
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric())
}

fn once<T>(key: &'static str, slot: &mut Option<T>, value: T) -> Result<(), Problem> {
    if slot.is_some() {
        return Err(Problem::Twice(key));
    }
    *slot = Some(value);
    Ok(())
}

fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn secret(key: &'static str, value: &str) -> Result<Key, Problem> {
    Key::from_base64(value).map_err(|_| Problem::Value { key, wanted: "a base64 key of 32 bytes" })
}

/// A network with its host bits; a bare address is a network of one.
fn network(key: &'static str, item: &str) -> Result<IpNet, Problem> {
    item.parse::<IpNet>()
        .or_else(|_| item.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| Problem::Value { key, wanted: "IP addresses or networks, separated by commas" })
}

fn name_server(item: &str) -> Result<String, Problem> {
    if item.parse::<IpAddr>().is_ok() || is_host_name(item) {
        Ok(item.to_owned())
    } else {
        Err(Problem::Value { key: "DNS", wanted: "IP addresses or search domains, separated by commas" })
    }
}

fn mtu(value: &str) -> Result<u16, Problem> {
    let bad = Problem::Value { key: "MTU", wanted: "a number from 576 to 65535" };
    value.parse().ok().filter(|mtu| *mtu >= MIN_MTU).ok_or(bad)
}

fn port(key: &'static str, value: &str) -> Result<u16, Problem> {
    value.parse().map_err(|_| Problem::Value { key, wanted: "a number from 0 to 65535" })
}

fn keepalive(value: &str) -> Result<Option<u16>, Problem> {
    if value.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let bad = Problem::Value { key: "PersistentKeepalive", wanted: "off or a number of seconds up to 65535" };
    value.parse().map(|seconds: u16| (seconds > 0).then_some(seconds)).map_err(|_| bad)
}

fn endpoint(value: &str) -> Result<String, Problem> {
    let bad = Problem::Value { key: "Endpoint", wanted: "host:port, an IPv6 address in brackets" };
    let (host, port) = value.rsplit_once(':').ok_or_else(|| bad.clone())?;
    let port_fits =
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    let host_fits = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => host.parse::<Ipv6Addr>().is_ok(),
        None => is_host_name(host),
    };
    if port_fits && host_fits { Ok(value.to_owned()) } else { Err(bad) }
}

/// Letters, digits, dashes, dots and underscores: enough to keep a name harmless in any file it lands in.
fn is_host_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && !text.starts_with(['-', '.'])
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
}
