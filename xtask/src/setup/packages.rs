//! Debian packages, installed only if the program they are wanted for is not there.
//!
//! Not those of the emulated machine: its test suite fetches them itself.

use std::process::Command;

use anyhow::{Result, bail};

use crate::process;

/// How much of the table a command needs; each includes the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Need {
    /// Compile and link
    Build,
    /// Run the gateway and its peers in network namespaces
    Run,
    /// Run every test suite
    Test,
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

const PACKAGES: &[Package] = &[
    package("build-essential", "cc", Need::Build, "links every Rust program"),
    package("age", "age", Need::Run, "opens encrypted exports in the tests"),
    package("bind9-dnsutils", "dig", Need::Run, "asks the resolver in the demo and in tests"),
    package("bpftool", "bpftool", Need::Run, "shows programs, maps and links to the tests"),
    package("curl", "curl", Need::Run, "talks to the API in the demo and in tests"),
    package("dante-server", "danted", Need::Run, "a SOCKS5 proxy that takes connections and datagrams"),
    package("ethtool", "ethtool", Need::Run, "turns off offloads on test links"),
    package("iperf3", "iperf3", Need::Run, "bulk traffic of the benches"),
    package("iproute2", "ip", Need::Run, "namespaces, links, routes"),
    package("iputils-ping", "ping", Need::Run, "traffic of the tests"),
    package("lighttpd", "lighttpd", Need::Run, "a WebDAV server that backups go to in the tests"),
    package("lighttpd-mod-openssl", "/usr/lib/lighttpd/mod_openssl.so", Need::Run, "TLS for it"),
    package("lighttpd-mod-webdav", "/usr/lib/lighttpd/mod_webdav.so", Need::Run, "WebDAV for it"),
    package("microsocks", "microsocks", Need::Run, "a SOCKS5 proxy that takes connections only"),
    package("nftables", "nft", Need::Run, "masquerade, and the peers of the benches"),
    package("openssh-server", "sshd", Need::Run, "an SFTP server that backups go to in the tests"),
    package("openssl", "openssl", Need::Run, "a TLS peer without post-quantum key exchange"),
    package("openvpn", "openvpn", Need::Run, "carries OpenVPN tunnels, and the far end of them in tests"),
    package("procps", "sysctl", Need::Run, "kernel settings of namespaces"),
    package("python3", "python3", Need::Run, "small servers of the demo"),
    package("tcpdump", "tcpdump", Need::Run, "the tap that counts leaks"),
    package("util-linux", "nsenter", Need::Run, "enters namespaces without remounting /sys"),
    package("wireguard-go", "wireguard-go", Need::Run, "the far end of tunnels where the kernel has none"),
    package("wireguard-tools", "wg", Need::Run, "sets the far end up"),
];

pub fn ensure(need: Need) -> Result<()> {
    let missing: Vec<&Package> =
        PACKAGES.iter().filter(|p| p.need <= need && process::find(p.program).is_none()).collect();
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
    install(&names)?;
    match missing.iter().find(|p| process::find(p.program).is_none()) {
        Some(p) => bail!("package {} is installed, but `{}` is still not found", p.name, p.program),
        None => Ok(()),
    }
}

/// Installs Debian packages; only root may.
pub fn install(names: &[&str]) -> Result<()> {
    if !process::is_root() {
        let names = names.join(" ");
        bail!(
            "packages are missing. Run:\n    sudo sh -c 'apt-get update && apt-get install --no-install-recommends {names}'"
        );
    }
    update()?;
    let mut install = apt();
    install.args(["install", "--yes", "--no-install-recommends"]).args(names);
    process::output(&mut install).map(drop)
}

/// Refreshes apt's lists; only root may.
pub fn update() -> Result<()> {
    process::output(apt().arg("update")).map(drop)
}

/// Another apt at work is waited for rather than failed on.
pub fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-qq", "-o", "DPkg::Lock::Timeout=300"]);
    command
}
