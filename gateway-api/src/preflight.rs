//! Checks of a host before the gateway runs on it. They change nothing.

mod check;
mod ports;
mod sessions;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gateway_core::facts::Facts;
use gateway_core::health::{self, CheckState};
use gateway_ctl::os::bpf::{GraceMode, grace_mode};
use gateway_ctl::os::netlink::Netlink;
use gateway_ctl::os::observe::Observer;
use gateway_ctl::services::kernel_tables;
use gateway_model::settings::Bootstrap;

use crate::host_info;
pub use check::{Check, Verdict};
pub use sessions::{Session, names as session_names};

/// Input of the checks.
#[derive(Debug)]
pub struct Subject {
    /// The configuration, for its ports and upstreams.
    pub config: Bootstrap,
    /// Interface names from the configuration, each with its key.
    pub interfaces: Vec<(&'static str, String)>,
    pub state_dir: PathBuf,
    pub runtime_dir: PathBuf,
    /// TCP sessions that come in from elsewhere than the LAN.
    pub sessions: Vec<Session>,
    /// The administrator accepts that they end.
    pub may_cut_sessions: bool,
}

/// Runs all checks.
pub fn run(subject: &Subject) -> Vec<Check> {
    let mut checks = vec![privileges()];
    for (key, name) in &subject.interfaces {
        checks.push(interface(key, name));
    }
    checks.extend(ports::needed(&subject.config).iter().map(ports::check));
    checks.push(ports::upstreams(&subject.config));
    checks.push(program_present("nft", "nftables"));
    checks.extend(kernel());
    checks.extend(kernel_tables::checks().into_iter().map(of_health));
    checks.push(tun());
    checks.push(wireguard());
    for family in ["ipv4", "ipv6"] {
        checks.push(forwarding(family));
    }
    for (key, dir) in [("state_dir", &subject.state_dir), ("runtime_dir", &subject.runtime_dir)] {
        checks.push(directory(key, dir));
    }
    checks.push(other_firewalls());
    checks.push(incoming_sessions(&subject.sessions, subject.may_cut_sessions));
    checks
}

/// Returns the TCP sessions of this host that come in from elsewhere than the LAN. They end when the gateway starts.
pub async fn sessions_from_outside(config: &Bootstrap) -> Vec<Session> {
    let facts = match Netlink::open().and_then(Observer::new) {
        Ok(observer) => observer.facts(|_| false).await.unwrap_or_default(),
        Err(_) => Facts::default(),
    };
    let of_lan = |name: &str| config.all_lans().iter().any(|lan| lan.as_str() == name);
    let networks = facts.addresses.iter().chain(&facts.prefixes).filter(|(name, _)| of_lan(name));
    let lan: Vec<_> = networks.flat_map(|(_, networks)| networks.iter().copied()).collect();
    let own = facts.addresses.values().flatten().map(|net| net.addr()).collect();
    sessions::from_outside(&lan, &own)
}

/// Remedy for a session that would be cut.
pub const SESSIONS_FIX: &str = "connect from the LAN or use the console, or go on with --yes; listen.wan_access lets clients of uplinks reach the API";

fn incoming_sessions(sessions: &[Session], may_cut: bool) -> Check {
    let name = "sessions";
    if sessions.is_empty() {
        return Check::ok(name, "none comes in by an uplink");
    }
    let result = format!("TCP sessions that end when the gateway starts: {}", session_names(sessions));
    if may_cut { Check::note(name, result, "") } else { Check::failed(name, result, SESSIONS_FIX) }
}

/// Returns a check of the running gateway as one before the start. What is nearly full or full can recover, so that it does
/// not keep the gateway from starting.
fn of_health(check: health::Check) -> Check {
    match check.state {
        CheckState::Ok => Check::ok(check.name, check.message),
        _ => Check::note(check.name, check.message, check.remedy),
    }
}

/// Reports whether no check failed.
pub fn passed(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.verdict != Verdict::Failed)
}

/// Returns a human-readable table.
pub fn table(checks: &[Check]) -> String {
    let rows: Vec<[String; 3]> = checks
        .iter()
        .map(|check| {
            let mark = match check.verdict {
                Verdict::Ok => "ok",
                Verdict::Note => "note",
                Verdict::Failed => "FAILED",
            };
            [check.name.clone(), format!("{mark}: {}", check.result), check.fix.clone()]
        })
        .collect();
    let heads = ["CHECK", "RESULT", "FIX"];
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([heads[column].len()]).max().unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    let mut text = String::new();
    let mut line = |row: [&str; 3]| {
        let filled = format!("{:first$}  {:second$}  {}", row[0], row[1], row[2]);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{}", filled.trim_end());
    };
    line(heads);
    for row in &rows {
        line([&row[0], &row[1], &row[2]]);
    }
    text
}

fn privileges() -> Check {
    let name = "privileges";
    if rustix::process::geteuid().is_root() {
        Check::ok(name, "root")
    } else {
        Check::failed(name, "not root", "run as root, or with CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON")
    }
}

fn interface(key: &str, name: &str) -> Check {
    let label = format!("interface {name}");
    let present = host_info::interface_names();
    if !present.iter().any(|other| other == name) {
        let present = if present.is_empty() { "(none here)".to_owned() } else { present.join(", ") };
        return Check::failed(label, "does not exist", format!("set {key} to one of: {present}"));
    }
    // If /sys belongs to another network namespace, only the existence can be checked.
    let folder = host_info::interface_folder(name, None);
    match folder
        .and_then(|folder| fs::read_to_string(folder.join("operstate")).ok())
        .as_deref()
        .map(str::trim)
    {
        Some("down") => Check::note(label, "is down", format!("ip link set {name} up, or plug it in")),
        Some(state) => Check::ok(label, state),
        None => Check::ok(label, "exists"),
    }
}

fn program_present(program: &str, package: &str) -> Check {
    let label = format!("program {program}");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    match folders.iter().map(|folder| folder.join(program)).find(|path| path.is_file()) {
        Some(path) => Check::ok(label, path.display().to_string()),
        None => Check::failed(label, "not found", format!("apt-get install {package}")),
    }
}

fn kernel() -> Vec<Check> {
    let features = host_info::kernel_features();
    let has = |name: &str| features.contains(&name);
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let btf = if has("btf") {
        Check::ok("kernel BTF", "/sys/kernel/btf/vmlinux")
    } else {
        Check::failed("kernel BTF", "missing", "use a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's has it)")
    };
    let mounted = fs::read_to_string("/proc/self/mounts")
        .is_ok_and(|mounts| mounts.lines().any(|line| line.split(' ').nth(2) == Some("bpf")));
    let bpffs = match (has("bpffs"), mounted) {
        (false, _) => Check::failed(
            "bpf file system",
            "unknown to the kernel",
            "use a kernel with CONFIG_BPF_SYSCALL=y",
        ),
        (true, true) => Check::ok("bpf file system", "mounted"),
        (true, false) => Check::note("bpf file system", "not mounted", "nothing: the gateway mounts it"),
    };
    let attach = if has("tcx") {
        Check::ok("program attachment", format!("tcx (kernel {release})"))
    } else if host_info::kernel_version(&release).is_some_and(|version| version >= (6, 1)) {
        Check::ok("program attachment", format!("clsact (kernel {release} is older than 6.6)"))
    } else {
        Check::failed("program attachment", format!("kernel {release}"), "use a kernel of at least 6.1")
    };
    vec![btf, bpffs, attach, grace()]
}

/// Checks that the daemon can wait for packets in flight. Without that, a plan switch could cause wrong verdicts.
fn grace() -> Check {
    let name = "plan activation";
    match grace_mode() {
        Ok(GraceMode::Membarrier) => Check::ok(name, "membarrier"),
        Ok(GraceMode::MapOfMaps) => {
            Check::ok(name, "map of maps (the kernel has no global membarrier: nohz_full)")
        }
        Err(error) => Check::failed(
            name,
            format!("cannot wait for packets in flight: {error}"),
            "run as root, on a kernel with CONFIG_MEMBARRIER=y or with BPF maps of maps",
        ),
    }
}

fn tun() -> Check {
    if Path::new("/dev/net/tun").exists() {
        Check::ok("/dev/net/tun", "present")
    } else {
        Check::note("/dev/net/tun", "missing", "modprobe tun (needed where the kernel has no WireGuard)")
    }
}

fn wireguard() -> Check {
    let name = "WireGuard";
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let modules = Path::new("/lib/modules").join(release);
    let listed = |file: &str| {
        fs::read_to_string(modules.join(file))
            .is_ok_and(|text| text.lines().any(|line| line.contains("/wireguard.ko")))
    };
    if Path::new("/sys/module/wireguard").exists() || listed("modules.builtin") || listed("modules.dep") {
        return Check::ok(name, "in the kernel");
    }
    if Path::new("/dev/net/tun").exists() {
        return Check::note(
            name,
            "not in the kernel; runs inside the daemon, slower",
            "use a kernel with WireGuard",
        );
    }
    Check::failed(
        name,
        "neither in the kernel nor possible in the daemon",
        "modprobe wireguard, or modprobe tun",
    )
}

fn forwarding(family: &str) -> Check {
    let (path, name) = match family {
        "ipv4" => ("/proc/sys/net/ipv4/ip_forward", "IPv4 forwarding"),
        _ => ("/proc/sys/net/ipv6/conf/all/forwarding", "IPv6 forwarding"),
    };
    match fs::read_to_string(path).as_deref().map(str::trim) {
        Ok("0") => Check::note(name, "off", "nothing: the gateway turns it on"),
        Ok(_) => Check::ok(name, "on"),
        Err(error) => Check::note(
            name,
            format!("cannot be read: {error}"),
            "nothing, if this host does not use this address family",
        ),
    }
}

fn directory(key: &str, dir: &Path) -> Check {
    let name = format!("{key} {}", dir.display());
    let existing = dir.ancestors().find(|path| path.exists());
    match existing {
        Some(path) if !path.is_dir() => Check::failed(
            name,
            format!("{} is not a directory", path.display()),
            format!("move it, or set {key}"),
        ),
        Some(path) => match rustix::fs::access(path, rustix::fs::Access::WRITE_OK) {
            Ok(()) if path == dir => Check::ok(name, "writable"),
            Ok(()) => Check::ok(name, "will be made"),
            Err(error) => Check::failed(
                name,
                format!("{}: {error}", path.display()),
                format!("make it writable, or set {key}"),
            ),
        },
        None => Check::failed(name, "no such path", format!("set {key}")),
    }
}

/// Finds firewall rules of other programs that could drop or steer forwarded traffic.
#[expect(clippy::disallowed_methods, reason = "runs before the engine, and reads only")]
fn other_firewalls() -> Check {
    let name = "other firewalls";
    let mut found = Vec::new();
    for (file, program) in
        [("/proc/net/ip_tables_names", "iptables"), ("/proc/net/ip6_tables_names", "ip6tables")]
    {
        if let Ok(tables) = fs::read_to_string(file) {
            found.extend(tables.split_whitespace().map(|table| format!("{program} {table}")));
        }
    }
    match Command::new("nft").args(["list", "tables"]).output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let others = text
                .lines()
                .filter_map(|line| line.strip_prefix("table "))
                .filter(|table| !table.ends_with(&format!(" {}", gateway_core::plan::names::NFT_TABLE)));
            found.extend(others.map(|table| format!("nft {table}")));
        }
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Check::note(name, format!("nft list tables: {why}"), "run as root to see them");
        }
        Err(error) => return Check::note(name, format!("nft cannot be run: {error}"), ""),
    }
    if found.is_empty() {
        return Check::ok(name, "none");
    }
    Check::note(name, found.join(", "), "see that they let forwarded traffic pass")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_fails_and_says_which_key_to_set() {
        let check = interface("network.wan_iface", "nosuch0");
        assert_eq!(check.verdict, Verdict::Failed);
        assert!(check.fix.contains("network.wan_iface"), "{}", check.fix);
        assert!(!passed(&[check]));
    }

    #[test]
    fn the_table_has_three_aligned_columns() {
        let text = table(&[Check::ok("a", "b"), Check::failed("longer", "c", "do it")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "CHECK   RESULT     FIX");
        assert_eq!(lines[1], "a       ok: b");
        assert_eq!(lines[2], "longer  FAILED: c  do it");
    }
}
