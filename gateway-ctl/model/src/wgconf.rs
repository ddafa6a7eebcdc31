//! WireGuard `.conf` files: text to a value and back.
//!
//! The dialect is that of `wg-quick(8)`. Hooks and other keys that would let a file run commands or steer
//! the host's routing are never executed: their names are collected in [`WgConf::ignored`] so that the
//! user gets a warning. This module does no I/O, makes no keys and resolves no host names.

mod key;
mod parse;
mod render;

use ipnet::IpNet;

pub use key::{Key, KeyError, decode_key, encode_key};
pub use parse::{MAX_SIZE, Problem, WgConfError, parse};
pub use render::render;

/// The contents of one `.conf` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WgConf {
    pub private_key: Key,
    /// Addresses of the device, with their host bits.
    pub addresses: Vec<IpNet>,
    /// Name servers and search domains, as written.
    pub dns: Vec<String>,
    pub mtu: Option<u16>,
    pub listen_port: Option<u16>,
    pub peers: Vec<WgConfPeer>,
    /// Names of keys that were found and deliberately not obeyed, each once, in order of appearance.
    pub ignored: Vec<String>,
}

/// One `[Peer]` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WgConfPeer {
    pub public_key: [u8; 32],
    pub preshared_key: Option<Key>,
    /// `host:port`, an IPv6 address in brackets.
    pub endpoint: Option<String>,
    /// Networks without host bits.
    pub allowed_ips: Vec<IpNet>,
    /// Seconds; `off` and 0 are `None`.
    pub persistent_keepalive: Option<u16>,
}

#[cfg(test)]
mod tests;
