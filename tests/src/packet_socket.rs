//! Addresses of packet sockets (packet(7)).

use anyhow::{Context, Result};
use socket2::SockAddr;

/// Returns the address of an interface of the calling thread's namespace for packet sockets.
pub fn link_address(interface: &str, protocol: i32) -> Result<SockAddr> {
    let index = nix::net::if_::if_nametoindex(interface).context("interface")?;
    let protocol = u16::try_from(protocol).context("protocol")?.to_be();
    // SAFETY: the storage is large enough for a sockaddr_ll, which the closure fills and measures.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_ll>();
            (*address).sll_family = libc::AF_PACKET as libc::sa_family_t;
            (*address).sll_protocol = protocol;
            (*address).sll_ifindex = i32::try_from(index).map_err(std::io::Error::other)?;
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    }
    .context("address")?;
    Ok(address)
}
