//! Addresses of packet sockets (packet(7)).

use anyhow::{Context, Result};
use gateway_ctl::os::egress_tap;
pub use gateway_ctl::os::egress_tap::ALL_PROTOCOLS;
use socket2::SockAddr;

/// Returns the address of an interface of the calling thread's namespace for packet sockets.
pub fn link_address(interface: &str, protocol: u16) -> Result<SockAddr> {
    let index = nix::net::if_::if_nametoindex(interface).context("interface")?;
    egress_tap::link_address(protocol, index).context("address")
}
