//! Debian packages, installed only if their program is missing.
//!
//! The packages of the emulated machine are excluded: its test suite fetches them itself.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::{process, progress};

/// Part of the table that a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Compile and link.
    Build,
    /// Also run the gateway in network namespaces.
    Run,
    /// Also measure it and its peers.
    Bench,
    /// Build the dashboard.
    Dashboard,
    /// Run every test suite: the packages of `Run`, but no peers.
    Test,
}

impl Need {
    const fn includes(self, other: Need) -> bool {
        match other {
            Need::Build => true,
            Need::Run => !matches!(self, Need::Build | Need::Dashboard),
            Need::Dashboard => matches!(self, Need::Dashboard),
            Need::Bench => matches!(self, Need::Bench),
            Need::Test => matches!(self, Need::Test),
        }
    }
}

struct Package {
    name: &'static str,
    program: &'static str,
    need: Need,
    why: &'static str,
}

const fn package(name: &'static str, program: &'static str, need: Need, why: &'static str) -> Package {
    Package { name, program, need, why }
}

/// A package that both the benches and the suites need has a row for each.
const PACKAGES: &[Package] = &[
    package("build-essential", "cc", Need::Build, "links every Rust program"),
    package("age", "age", Need::Run, "opens encrypted exports in the tests"),
    package(
        "alertmanager-irc-relay",
        "alertmanager-irc-relay",
        Need::Test,
        "a receiver of the Alertmanager's webhooks in the tests",
    ),
    package("bind9-dnsutils", "dig", Need::Run, "asks the resolver in the demo and in tests"),
    package("bpftool", "bpftool", Need::Run, "shows programs, maps and links to the tests"),
    package(
        "busybox-static",
        "busybox",
        Need::Test,
        "the shell of the emulated machine, and reads its archives",
    ),
    package("caddy", "caddy", Need::Bench, "the server of the page whose load is measured"),
    package("caddy", "caddy", Need::Test, "a web server with HTTP/3"),
    package("chromium", "chromium", Need::Bench, "loads the page that is measured"),
    package("chromium", "chromium", Need::Test, "a browser with HTTP/3 and WebRTC"),
    package("clickhouse-server", "clickhouse-server", Need::Test, "a data base of flow records in the tests"),
    package("coturn", "turnserver", Need::Test, "a STUN and TURN server and its clients in the tests"),
    package("curl", "curl", Need::Run, "talks to the API in the demo and in tests"),
    package("dante-server", "danted", Need::Run, "a SOCKS5 proxy that takes connections and datagrams"),
    package("dbus", "dbus-daemon", Need::Test, "a bus for the mock objects of BlueZ in the tests"),
    package("dbus-bin", "dbus-send", Need::Test, "calls them"),
    package("dnsdist", "dnsdist", Need::Bench, "a peer of the resolver"),
    package("dnsdist", "dnsdist", Need::Test, "a public resolver over UDP, TCP, TLS and HTTPS"),
    package("dnsmasq-base", "dnsmasq", Need::Bench, "a peer of the resolver"),
    package("dnsperf", "dnsperf", Need::Bench, "questions for the resolver and its peers"),
    package("dnsperf", "dnsperf", Need::Test, "a million queries for the log"),
    package("dhcpcd-base", "dhcpcd", Need::Test, "a DHCP client in the tests"),
    package("ethtool", "ethtool", Need::Run, "turns off offloads on test links"),
    package("iperf3", "iperf3", Need::Run, "bulk traffic of the benches"),
    package("iproute2", "ip", Need::Run, "namespaces, links, routes"),
    package("iputils-ping", "ping", Need::Run, "traffic of the tests"),
    package("isc-dhcp-client", "dhclient", Need::Test, "a DHCP client in the tests"),
    package("jq", "jq", Need::Run, "reads JSON in the examples of the documentation"),
    package("kea-admin", "perfdhcp", Need::Bench, "a load of DHCP clients"),
    package("kea-dhcp4-server", "kea-dhcp4", Need::Bench, "a peer of the DHCP server"),
    package("kea-dhcp6-server", "kea-dhcp6", Need::Test, "a provider that delegates prefixes"),
    package("lighttpd", "lighttpd", Need::Run, "a WebDAV server that backups go to in the tests"),
    package("lighttpd-mod-openssl", "/usr/lib/lighttpd/mod_openssl.so", Need::Run, "TLS for it"),
    package("lighttpd-mod-webdav", "/usr/lib/lighttpd/mod_webdav.so", Need::Run, "WebDAV for it"),
    package("microsocks", "microsocks", Need::Run, "a SOCKS5 proxy that takes connections only"),
    package("mosquitto", "mosquitto", Need::Test, "a broker for MQTT in the tests"),
    package("mosquitto-clients", "mosquitto_sub", Need::Test, "reads what it has"),
    package("nats-server", "nats-server", Need::Test, "a hub of the federation in the tests"),
    package("ndisc6", "rdisc6", Need::Test, "solicits router advertisements"),
    package("nfdump", "nfcapd", Need::Test, "a collector of IPFIX in the tests"),
    package("nftables", "nft", Need::Run, "masquerade, and the peers of the benches"),
    package("nodejs", "node", Need::Dashboard, "builds the dashboard"),
    package("npm", "npm", Need::Dashboard, "installs the packages of the dashboard"),
    package("nsd", "nsd", Need::Run, "the primary server of zones that are copied in the tests"),
    package("openssh-server", "sshd", Need::Run, "an SFTP server that backups go to in the tests"),
    package("openssl", "openssl", Need::Run, "a TLS peer without post-quantum key exchange"),
    package("openvpn", "openvpn", Need::Run, "carries OpenVPN tunnels, and the far end of them in tests"),
    package("pdns-recursor", "pdns_recursor", Need::Bench, "a peer of the resolver"),
    package(
        "prometheus-alertmanager",
        "prometheus-alertmanager",
        Need::Run,
        "an Alertmanager that alerts are pushed to in the tests",
    ),
    package("pmacct", "nfacctd", Need::Test, "another collector of IPFIX in the tests"),
    package("procps", "sysctl", Need::Run, "kernel settings of namespaces"),
    package("python3", "python3", Need::Run, "small servers of the demo"),
    package(
        "python3-dbusmock",
        "/usr/lib/python3/dist-packages/dbusmock/__init__.py",
        Need::Test,
        "mock objects of BlueZ in the tests",
    ),
    package("rsyslog", "rsyslogd", Need::Test, "a collector of syslog in the tests"),
    package("systemd", "/lib/systemd/systemd-networkd", Need::Test, "a DHCP client in the tests"),
    package("tcpdump", "tcpdump", Need::Run, "the tap that counts leaks"),
    package("tshark", "tshark", Need::Test, "reads captures, and libpcap compiles their filters"),
    package("unbound", "unbound", Need::Bench, "a peer of the resolver"),
    package("util-linux", "nsenter", Need::Run, "enters namespaces without remounting /sys"),
    package("victoria-metrics", "victoria-metrics", Need::Test, "a data base of metrics in the tests"),
    package("wireguard-go", "wireguard-go", Need::Run, "the far end of tunnels where the kernel has none"),
    package("wireguard-tools", "wg", Need::Run, "sets the far end up"),
];

pub(super) fn ensure(need: Need) -> Result<()> {
    let missing: Vec<&Package> =
        PACKAGES.iter().filter(|p| need.includes(p.need) && process::find(p.program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|p| p.name).collect();
    if process::find("apt-get").is_none() {
        let wanted: Vec<String> =
            missing.iter().map(|p| format!("    {:20} ({} of {})", p.program, p.why, p.name)).collect();
        bail!("this machine has no apt-get; install these programs by its own means:\n{}", wanted.join("\n"));
    }
    for p in &missing {
        eprintln!("setup: {} is missing: {}", p.name, p.why);
    }
    progress::during(&format!("{} packages of Debian", names.len()), || install(&names))?;
    match missing.iter().find(|p| process::find(p.program).is_none()) {
        Some(p) => bail!("package {} is installed, but `{}` is still not found", p.name, p.program),
        None => Ok(()),
    }
}

/// Installs Debian packages; needs root. Their services do not start before a manual start or the next boot: peers
/// would take port 53 of this machine.
pub(super) fn install(names: &[&str]) -> Result<()> {
    if !process::is_root() {
        let names = names.join(" ");
        bail!(
            "packages are missing. Run:\n    sudo sh -c 'apt-get update && apt-get install --no-install-recommends {names}'"
        );
    }
    update()?;
    let _quiet = Quiet::keep()?;
    let mut install = apt();
    install.args(["install", "--yes", "--no-install-recommends"]).args(names);
    process::output(&mut install).map(drop)
}

/// Guard that prevents newly installed packages from starting services until it is dropped (invoke-rc.d(8)).
struct Quiet {
    made: bool,
}

const POLICY: &str = "/usr/sbin/policy-rc.d";

impl Quiet {
    fn keep() -> Result<Quiet> {
        // An existing policy is an administrator's decision.
        if Path::new(POLICY).exists() {
            return Ok(Quiet { made: false });
        }
        fs::write(POLICY, "#!/bin/sh\nexit 101\n").with_context(|| format!("write {POLICY}"))?;
        let quiet = Quiet { made: true };
        fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755))?;
        Ok(quiet)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.made
            && let Err(error) = fs::remove_file(POLICY)
        {
            eprintln!("setup: {POLICY} stays behind, and no package starts anything: {error}");
        }
    }
}

/// Refreshes apt's lists; needs root.
pub(super) fn update() -> Result<()> {
    process::output(apt().arg("update")).map(drop)
}

/// Downloads the archives of packages into a folder without installing them. Waits for another running apt instead of
/// failing.
pub(super) fn download(names: &[String], into: &Path) -> Result<()> {
    let fetch = || process::output(apt().current_dir(into).arg("download").args(names));
    match fetch() {
        Err(_) if process::is_root() => {
            // Lists older than the archive name versions that no longer exist.
            update()?;
            fetch().map(drop)
        }
        Err(error) => Err(error.context("perhaps apt's lists are old: `sudo apt-get update`")),
        Ok(_) => Ok(()),
    }
}

pub(super) fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-qq", "-o", "DPkg::Lock::Timeout=300"]);
    command
}
