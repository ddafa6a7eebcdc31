//! Creation of TUN devices.

use std::io;

use tun_rs::{AsyncDevice, DeviceBuilder};

/// Creates a TUN device.
pub(super) fn open_tun(name: &str, mtu: u16) -> io::Result<AsyncDevice> {
    let tun = DeviceBuilder::new()
        .name(name)
        .mtu(mtu)
        .with(|builder| {
            builder.offload(true);
        })
        // Another module manages the up flag of the link.
        .inherit_enable_state()
        .build_async()?;
    silence_ipv6_autoconfiguration(name);
    Ok(tun)
}

/// Disables IPv6 autoconfiguration. A kernel WireGuard device has no link-local address and sends no router
/// solicitations, but a TUN device would.
fn silence_ipv6_autoconfiguration(name: &str) {
    const NONE: &str = "1";
    let path = format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode");
    match std::fs::write(path, NONE) {
        Ok(()) => {}
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(device = %name, %error, "failed to disable IPv6 autoconfiguration"),
    }
}
