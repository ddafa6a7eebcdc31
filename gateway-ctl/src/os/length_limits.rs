//! Limits of the length of forwarded packets that are neither of an interface nor of a route: sysctls of the kernel.

use std::path::Path;

/// Minimum path MTU of IPv4 that the kernel accepts from others, unless `min_pmtu` says otherwise.
const MIN_PATH_MTU: u32 = 552;

/// Limits by interface.
pub(crate) trait LengthLimits {
    /// Returns the longest packet that is surely forwarded as it is.
    fn of(&self, interface: &str) -> u32;
}

/// Limits of this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sysctls;

impl LengthLimits for Sysctls {
    fn of(&self, interface: &str) -> u32 {
        limit(Path::new("/proc/sys/net"), interface)
    }
}

fn limit(net: &Path, interface: &str) -> u32 {
    let number = |path: String| {
        let text = std::fs::read_to_string(net.join(path)).ok()?;
        text.trim().parse::<u32>().ok()
    };
    // A router advertisement may have lowered it (RFC 4861, section 6.3.4). Absent without IPv6.
    let ipv6 = number(format!("ipv6/conf/{interface}/mtu")).unwrap_or(u32::MAX);
    // The kernel then forwards by the path MTU of single hosts, whose changes it does not report.
    let by_path = number("ipv4/ip_forward_use_pmtu".to_owned()).is_some_and(|value| value != 0);
    if !by_path {
        return ipv6;
    }
    ipv6.min(number("ipv4/route/min_pmtu".to_owned()).unwrap_or(MIN_PATH_MTU))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(files: &[(&str, &str)]) -> u32 {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        limit(folder.path(), "wan0")
    }

    #[test]
    fn sysctls_limit_the_length() {
        let (mtu6, by_path, least) =
            ("ipv6/conf/wan0/mtu", "ipv4/ip_forward_use_pmtu", "ipv4/route/min_pmtu");
        assert_eq!(with(&[]), u32::MAX, "no IPv6, and the default of IPv4");
        assert_eq!(with(&[(mtu6, "1420\n"), (by_path, "0\n"), (least, "552\n")]), 1420);
        assert_eq!(with(&[(mtu6, "1420\n"), (by_path, "1\n"), (least, "600\n")]), 600);
        assert_eq!(with(&[(by_path, "1\n")]), MIN_PATH_MTU);
    }
}
