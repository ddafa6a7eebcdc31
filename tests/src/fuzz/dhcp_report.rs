//! Target: reports of the DHCP client.

use gateway_core::dhcp_report::{PREFIX, Report, parse};
use gateway_core::interfaces::is_host;

/// Reads the bytes as a line, and as the fields of a lease. Checks that a lease is one that a host can have.
pub fn dhcp_report(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in [text.to_string(), format!("{PREFIX}\tbound\t{text}"), format!("{PREFIX}\t{text}")] {
        let Some(Report::Leased(lease)) = parse(&line) else { continue };
        let address = lease.address;
        assert!(is_host(address.addr()) && address.prefix_len() > 0, "{lease:?}");
        assert!(
            lease.gateway.is_none_or(|gateway| address.contains(&gateway) && gateway != address.addr()),
            "{lease:?}"
        );
        assert!(lease.dns.len() <= 8 && lease.dns.iter().all(|server| is_host(*server)), "{lease:?}");
    }
}
