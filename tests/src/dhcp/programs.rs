//! The DHCP clients of Debian. Their scripts record what they get and set the address: nothing else of the host may
//! change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::process::Process;
use crate::topology::Host;
use crate::wait::wait_ok;

/// systemd-networkd is in no PATH.
const NETWORKD: &str = "/lib/systemd/systemd-networkd";
const SOON: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Udhcpc,
    Dhclient,
    Dhcpcd,
    /// systemd-networkd.
    Networkd,
}

/// Parameters that a client got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub address: String,
    pub router: String,
    pub dns: String,
    pub domain: String,
    pub server: String,
    pub lease_sec: String,
    pub ntp: String,
}

/// A running client.
#[derive(Debug)]
pub struct Running {
    pub process: Process,
    program: Program,
    folder: TempDir,
}

impl Program {
    /// Starts the client on a host, with a host name.
    pub fn start(self, host: &Host, name: &str) -> Result<Running> {
        let folder = tempfile::tempdir().context("a folder")?;
        let at = |file: &str| folder.path().join(file);
        let recorded = at("recorded");
        // One file for each event; complete when it has its name.
        let script = format!(
            "#!/bin/sh\nevent=\"${{reason:-$1}}\"\naddress=\"${{new_ip_address:-$ip}}\"\n\
             case \"$event\" in\nbound|BOUND) ip address replace $address/24 dev eth0 ;;\n\
             deconfig) ip address flush dev eth0 ;;\nesac\nenv > {0}.new\nmv {0}.new {0}.$event\n",
            recorded.display()
        );
        fs::write(at("script"), script)?;
        fs::set_permissions(at("script"), fs::Permissions::from_mode(0o755))?;
        let path = |file: &str| at(file).display().to_string();
        let command = match self {
            Program::Udhcpc => {
                let mut command = host.namespace.command("busybox");
                command.args(["udhcpc", "-f", "-i", "eth0", "-t", "5", "-T", "1", "-O", "ntpsrv"]);
                command.args(["-s", &path("script"), "-x", &format!("hostname:{name}")]);
                command
            }
            Program::Dhclient => {
                fs::write(
                    at("conf"),
                    format!(
                        "send host-name \"{name}\";\ntimeout 10;\nrequest subnet-mask, routers, domain-name-servers, domain-name, ntp-servers;\n"
                    ),
                )?;
                let mut command = host.namespace.command("dhclient");
                command.args(["-4", "-d", "-1", "-sf", &path("script"), "-cf", &path("conf")]);
                command.args(["-lf", &path("leases"), "-pf", &path("pid"), "eth0"]);
                command
            }
            Program::Dhcpcd => {
                let conf = format!(
                    "hostname {name}\nduid\nnoarp\nnoipv6rs\noption domain_name_servers, domain_name, ntp_servers, routers\n"
                );
                fs::write(at("conf"), conf)?;
                // It has several processes, and one folder for all instances of a host: they end with a process
                // namespace of their own, and have folders of their own.
                let run = format!(
                    "mkdir -p /run/dhcpcd && mount -t tmpfs none /run/dhcpcd && mount -t tmpfs none /var/lib/dhcpcd && \
                     exec dhcpcd -4 -B -t 10 -f {} -c {} eth0",
                    path("conf"),
                    path("script")
                );
                let mut command = host.namespace.command("unshare");
                command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &run]);
                command
            }
            Program::Networkd => {
                let conf = format!(
                    "[Match]\nName=eth0\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n\
                     [DHCPv4]\nHostname={name}\n"
                );
                fs::write(at("conf"), conf)?;
                // No other configuration is for this interface. Leases are written to the folder. With a read-only /sys it
                // does not wait for udev.
                let run = format!(
                    "mkdir -p /run/systemd && mount -t tmpfs none /run/systemd && mkdir -p /run/systemd/network \
                     /run/systemd/netif {netif}/links {netif}/leases {netif}/lldp && \
                     cp {} /run/systemd/network/10.network && chown -R systemd-network: {netif} && \
                     mount --bind {netif} /run/systemd/netif && mount -t sysfs -o ro none /sys && \
                     exec {NETWORKD}",
                    path("conf"),
                    netif = path("netif"),
                );
                let mut command = host.namespace.command("unshare");
                command.args(["--mount", "sh", "-c", &run]).env("SYSTEMD_LOG_TARGET", "console");
                command
            }
        };
        Ok(Running { process: host.namespace.spawn(command)?, program: self, folder })
    }
}

impl Running {
    /// Waits for an event of the client's script, and returns what it had then.
    pub fn wait_for(&self, event: &str) -> Result<Parameters> {
        let file = self.folder.path().join(format!("recorded.{event}"));
        let text = wait_ok(SOON, &format!("{:?} to report {event}", self.program), || {
            fs::read_to_string(&file).with_context(|| format!("events: {:?}", entries(self.folder.path())))
        })?;
        fs::remove_file(&file)?;
        Ok(self.parameters(&text))
    }

    /// Waits for a new lease.
    pub fn bound(&self) -> Result<Parameters> {
        match self.program {
            Program::Udhcpc => self.wait_for("bound"),
            Program::Dhclient | Program::Dhcpcd => self.wait_for("BOUND"),
            Program::Networkd => {
                let leases = self.folder.path().join("netif/leases");
                let text = wait_ok(SOON, "a lease of networkd", || {
                    // The name is the index of the interface; a file that is not complete begins with a dot.
                    let names = entries(&leases);
                    let name = names.iter().find(|name| !name.starts_with('.')).context("no lease")?;
                    fs::read_to_string(leases.join(name)).context("the lease")
                })?;
                Ok(self.parameters(&text))
            }
        }
    }

    fn parameters(&self, text: &str) -> Parameters {
        let variables: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
        let names = match self.program {
            Program::Udhcpc => ["ip", "router", "dns", "domain", "serverid", "lease", "ntpsrv"],
            Program::Dhclient | Program::Dhcpcd => [
                "new_ip_address",
                "new_routers",
                "new_domain_name_servers",
                "new_domain_name",
                "new_dhcp_server_identifier",
                "new_dhcp_lease_time",
                "new_ntp_servers",
            ],
            Program::Networkd => {
                ["ADDRESS", "ROUTER", "DNS", "DOMAINNAME", "SERVER_ADDRESS", "LIFETIME", "NTP"]
            }
        };
        let [address, router, dns, domain, server, lease_sec, ntp] =
            names.map(|name| variables.get(name).copied().unwrap_or_default().to_owned());
        Parameters { address, router, dns, domain, server, lease_sec, ntp }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // dhcpcd drops its privileges, and with them the signal at the end of its parent.
        if let Err(error) = self.process.kill_group() {
            eprintln!("{:?} may still run: {error:#}", self.program);
        }
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
