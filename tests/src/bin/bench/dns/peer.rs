//! The peer resolvers, in the versions of Debian. Each has one thread, the list in its fastest and smallest format, one
//! upstream, and a cache that holds all queried names.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use gateway_tests::cores::FIRST;
use gateway_tests::name_server;
use gateway_tests::netns::Namespace;
use gateway_tests::process::Process;

use super::names::{domains, write_lines};
use super::testbed::RESOLVER;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    Unbound,
    Dnsdist,
    Dnsmasq,
    Recursor,
}

impl Make {
    pub(super) const ALL: [Make; 4] = [Make::Unbound, Make::Dnsdist, Make::Dnsmasq, Make::Recursor];

    pub(super) fn name(self) -> &'static str {
        match self {
            Make::Unbound => "unbound",
            Make::Dnsdist => "dnsdist",
            Make::Dnsmasq => "dnsmasq",
            Make::Recursor => "pdns-recursor",
        }
    }

    /// Writes the configuration with `blocked` blocked domains.
    pub(super) fn configure(self, folder: &Path, blocked: usize) -> Result<()> {
        let list = folder.join("list");
        let lines = domains(blocked);
        match self {
            Make::Unbound => {
                write_lines(&list, lines.map(|name| format!("local-zone: \"{name}.\" always_null")))?;
            }
            Make::Dnsdist => write_lines(&list, lines)?,
            Make::Dnsmasq => write_lines(&list, lines.map(|name| format!("address=/{name}/#")))?,
            Make::Recursor => {
                // The names alone, without their subdomains, which would double the number of records.
                let head =
                    ["$TTL 10", "@ SOA localhost. root.localhost. 1 3600 600 86400 10", "@ NS localhost."];
                let head = head.into_iter().map(str::to_owned);
                write_lines(&list, head.chain(lines.map(|name| format!("{name} A 0.0.0.0"))))?;
                fs::write(
                    folder.join("lists.lua"),
                    format!("rpzFile(\"{}\", {{policyName=\"list\"}})\n", list.display()),
                )?;
            }
        }
        fs::write(folder.join(self.file()), self.text(folder)).context("write a configuration")
    }

    fn file(self) -> &'static str {
        match self {
            Make::Unbound => "unbound.conf",
            Make::Dnsdist => "dnsdist.lua",
            Make::Dnsmasq => "dnsmasq.conf",
            // The program allows no other file name.
            Make::Recursor => "recursor.conf",
        }
    }

    fn text(self, folder: &Path) -> String {
        let (folder, upstream) = (folder.display(), name_server::ADDRESS);
        match self {
            Make::Unbound => format!(
                "server:\n interface: {RESOLVER}\n username: \"\"\n chroot: \"\"\n directory: \"{folder}\"\n \
                 pidfile: \"\"\n use-syslog: no\n num-threads: 1\n access-control: 10.77.0.0/24 allow\n \
                 module-config: \"iterator\"\n msg-cache-size: 64m\n rrset-cache-size: 128m\n \
                 include: \"{folder}/list\"\n\
                 remote-control:\n control-enable: no\n\
                 forward-zone:\n name: \".\"\n forward-addr: {upstream}\n"
            ),
            Make::Dnsdist => format!(
                "setLocal(\"{RESOLVER}:53\")\nsetACL(\"10.77.0.0/24\")\nsetSecurityPollSuffix(\"\")\n\
                 newServer({{address=\"{upstream}\", healthCheckMode=\"up\"}})\n\
                 getPool(\"\"):setCache(newPacketCache(100000, {{maxTTL=86400}}))\n\
                 local list = newSuffixMatchNode()\n\
                 for name in io.lines(\"{folder}/list\") do list:add(newDNSName(name)) end\n\
                 addAction(SuffixMatchNodeRule(list), SpoofAction(\"0.0.0.0\"))\n"
            ),
            Make::Dnsmasq => format!(
                "no-resolv\nno-hosts\nkeep-in-foreground\nuser=root\nlog-facility=-\nbind-interfaces\n\
                 listen-address={RESOLVER}\nserver={upstream}\ncache-size=10000\nconf-file={folder}/list\n"
            ),
            Make::Recursor => format!(
                "local-address={RESOLVER}\nallow-from=10.77.0.0/24\nthreads=1\npdns-distributes-queries=no\n\
                 dnssec=off\nforward-zones-recurse=.={upstream}\ndont-query=\ndaemon=no\nquiet=yes\nloglevel=3\n\
                 disable-syslog=yes\nsocket-dir={folder}\nsecurity-poll-suffix=\nlua-config-file={folder}/lists.lua\n"
            ),
        }
    }

    /// Starts the peer in a namespace, restricted to this core if given.
    pub(super) fn start(self, namespace: &Namespace, folder: &Path, core: Option<usize>) -> Result<Process> {
        let file = folder.join(self.file());
        let (program, arguments) = match self {
            Make::Unbound => ("unbound", vec!["-d".into(), "-c".into(), file.into_os_string()]),
            Make::Dnsdist => ("dnsdist", vec!["--supervised".into(), "-C".into(), file.into_os_string()]),
            Make::Dnsmasq => ("dnsmasq", vec!["-C".into(), file.into_os_string()]),
            Make::Recursor => ("pdns_recursor", vec![format!("--config-dir={}", folder.display()).into()]),
        };
        let mut command = match core {
            Some(core) => first_on(namespace, &core.to_string(), program),
            None => namespace.command(program),
        };
        let log = fs::File::create(folder.join("log")).context("log of a resolver")?;
        command.args(arguments).stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        namespace.spawn(command)
    }
}

/// Returns a command that runs a program on these cores with the highest priority. Its process id is that of the
/// program.
pub(crate) fn first_on(namespace: &Namespace, cores: &str, program: &str) -> Command {
    let mut command = namespace.command("nice");
    command.args(["-n", &FIRST.to_string(), "taskset", "-c", cores, program]);
    command
}
