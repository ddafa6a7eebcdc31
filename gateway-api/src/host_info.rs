//! The host of the gateway, as read from /proc and /sys. No value is cached or assumed: one that cannot be read is null
//! or absent.

mod attribute;
mod power;
mod sensors;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gateway_core::facts::Facts;
use gateway_ctl::os::driver_state;
use gateway_model::{MacAddr, text_enum};
use rustix::net::{AddressFamily, SocketType};
use schemars::JsonSchema;
use serde::Serialize;

use attribute::{attribute, read_text};
pub(crate) use power::PowerSupply;
pub(crate) use sensors::{Sensor, cpu_temperature};

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Platform {
    pub hostname: String,
    /// Name and version of the distribution.
    pub os: String,
    pub kernel: String,
    pub arch: String,
    pub cpu: Cpu,
    pub memory: Memory,
    pub disks: Vec<Disk>,
    pub nics: Vec<Nic>,
    pub ebpf: Ebpf,
    /// Temperature of the processor in degrees Celsius; null without a sensor.
    pub cpu_temp: Option<f64>,
    /// All temperatures that the kernel reports.
    pub sensors: Vec<Sensor>,
    /// Batteries, mains, UPS.
    pub power: Vec<PowerSupply>,
    /// Seconds since the host was booted.
    pub uptime: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Cpu {
    pub model: String,
    pub cores: usize,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Vec<f64>,
}

/// Memory of the host, in bytes.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Memory {
    pub total: u64,
    pub available: u64,
    pub used: u64,
    pub swap_total: u64,
    pub swap_free: u64,
}

/// A mounted file system on a block device. Sizes are in bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Disk {
    pub device: String,
    pub mount: String,
    pub filesystem: String,
    pub size: u64,
    pub free: u64,
    pub used: u64,
}

text_enum! {
    /// XDP mode of programs. The generic mode is never used.
    pub enum XdpAttachment {
        Native = "native",
        None = "none",
    }
}

text_enum! {
    /// Support of a driver for XDP programs.
    pub enum XdpSupport {
        /// It runs programs.
        Native = "native",
        None = "none",
        /// The kernel does not report it: before Linux 6.3.
        Unknown = "unknown",
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Nic {
    pub name: String,
    /// Kernel driver, or the type of a link without hardware.
    pub driver: Option<String>,
    /// XDP mode of the gateway's programs.
    pub xdp: XdpAttachment,
    pub xdp_support: XdpSupport,
    /// Link speed in Mbit/s; null while the link is down or has no speed.
    pub speed: Option<u32>,
    pub mac: Option<String>,
    pub mtu: Option<u32>,
    /// Operational state: `up`, `down`, `unknown`, ...
    pub state: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ebpf {
    /// Attachment of the programs: `tcx`, `clsact`, or `none` if none are attached.
    pub mode: &'static str,
    pub btf: bool,
    /// Detected kernel features: btf, bpffs, tcx.
    pub features: Vec<&'static str>,
}

/// Reads all values. `attached`: current attachment of the programs of the gateway. `facts`: observed links; may be
/// empty. `xdp`: interfaces with the XDP program of the gateway.
pub(crate) fn read(attached: &'static str, facts: &Facts, xdp: &BTreeSet<String>) -> Platform {
    let system = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    Platform {
        hostname: hostname(),
        os: os_name(&read_text("/etc/os-release").unwrap_or_default()),
        kernel: text(system.release()),
        arch: text(system.machine()),
        cpu: cpu(),
        memory: memory(&read_text("/proc/meminfo").unwrap_or_default()),
        disks: disks(&read_text("/proc/self/mounts").unwrap_or_default()),
        nics: nics(facts, xdp),
        ebpf: ebpf(attached),
        cpu_temp: cpu_temperature(Path::new("/sys/class")),
        sensors: sensors::sensors(Path::new("/sys/class")),
        power: power::supplies(Path::new("/sys/class/power_supply")),
        uptime: read_text("/proc/uptime").and_then(|text| first_number(&text)).unwrap_or(0),
    }
}

/// Returns the name of this host.
pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the names of the detected kernel features. The preflight checks use them too.
pub(crate) fn kernel_features() -> Vec<&'static str> {
    let mut features = Vec::new();
    if Path::new("/sys/kernel/btf/vmlinux").exists() {
        features.push("btf");
    }
    if read_text("/proc/filesystems").is_some_and(|text| text.lines().any(|line| line.ends_with("\tbpf"))) {
        features.push("bpffs");
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if kernel_version(&release).is_some_and(|version| version >= (6, 6)) {
        features.push("tcx");
    }
    features
}

/// Parses a kernel release: `6.18.5-custom` gives `(6, 18)`.
pub(crate) fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn first_number(text: &str) -> Option<u64> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn os_name(release: &str) -> String {
    release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or_else(|| "Linux".to_owned(), |name| name.trim_matches('"').to_owned())
}

fn cpu() -> Cpu {
    let info = read_text("/proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    Cpu {
        model: value("model name").or_else(|| value("Model")).unwrap_or_else(|| "unknown".to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load: read_text("/proc/loadavg")
            .unwrap_or_default()
            .split_whitespace()
            .take(3)
            .filter_map(|number| number.parse().ok())
            .collect(),
    }
}

fn memory(info: &str) -> Memory {
    let bytes = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .and_then(|value| first_number(value.trim()))
            .unwrap_or(0)
            .saturating_mul(1024)
    };
    let (total, available) = (bytes("MemTotal"), bytes("MemAvailable"));
    Memory {
        total,
        available,
        used: total.saturating_sub(available),
        swap_total: bytes("SwapTotal"),
        swap_free: bytes("SwapFree"),
    }
}

/// Returns the file systems on block devices, each device once.
fn disks(mounts: &str) -> Vec<Disk> {
    let mut seen = BTreeSet::new();
    let mut disks = Vec::new();
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(device), Some(mount), Some(filesystem)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let on_device = device.starts_with("/dev/") || filesystem == "overlay";
        if !on_device || filesystem == "squashfs" || !seen.insert(device.to_owned()) {
            continue;
        }
        // The kernel writes blanks in paths as `\040`.
        let mount = mount.replace("\\040", " ");
        if let Ok(usage) = rustix::fs::statvfs(mount.as_str()) {
            let size = usage.f_blocks.saturating_mul(usage.f_frsize);
            let free = usage.f_bavail.saturating_mul(usage.f_frsize);
            let used = size.saturating_sub(usage.f_bfree.saturating_mul(usage.f_frsize));
            disks.push(Disk {
                device: device.to_owned(),
                mount,
                filesystem: filesystem.to_owned(),
                size,
                free,
                used,
            });
        }
    }
    disks
}

/// Returns the names of the interfaces in the network namespace of this process. /sys may show those of another one.
pub(crate) fn interface_names() -> Vec<String> {
    let table = read_text("/proc/self/net/dev").unwrap_or_default();
    let mut names: Vec<String> = table
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .filter(|name| name != "lo")
        .collect();
    names.sort();
    names
}

/// Returns the /sys directory of an interface, if it describes the interface of this network namespace.
pub(crate) fn interface_folder(name: &str, mac: Option<&str>) -> Option<PathBuf> {
    let folder = Path::new("/sys/class/net").join(name);
    let index: u32 = attribute(folder.join("ifindex"))?.parse().ok()?;
    #[expect(clippy::disallowed_methods, reason = "looks an interface up, and sends nothing")]
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    let same_index = rustix::net::netdevice::name_to_index(&socket, name).ok()? == index;
    let same_mac = mac.is_none_or(|mac| attribute(folder.join("address")).as_deref() == Some(mac));
    (same_index && same_mac).then_some(folder)
}

fn nics(facts: &Facts, xdp: &BTreeSet<String>) -> Vec<Nic> {
    let drivers = driver_state::runs_programs().unwrap_or_default();
    let nic = |name: String| {
        let link = facts.links.get(&name);
        let mac = link.and_then(|link| link.mac).map(|mac| MacAddr(mac).to_string());
        let folder = interface_folder(&name, mac.as_deref());
        let text = |file: &str| folder.as_deref().and_then(|folder| attribute(folder.join(file)));
        let kind = link.map(|link| link.kind.clone()).filter(|kind| !kind.is_empty());
        let up = link.map(|link| if link.up { "up" } else { "down" }.to_owned());
        Nic {
            driver: folder.as_deref().and_then(driver).or(kind),
            xdp: if xdp.contains(&name) { XdpAttachment::Native } else { XdpAttachment::None },
            xdp_support: support(drivers.as_ref(), link.map(|link| link.index)),
            speed: text("speed").and_then(|text| text.parse().ok()),
            mtu: link.map(|link| link.mtu).or_else(|| text("mtu")?.parse().ok()),
            state: text("operstate").or(up),
            mac: mac.or_else(|| text("address")),
            name,
        }
    };
    interface_names().into_iter().map(nic).collect()
}

/// `drivers`: whether the driver runs programs, by interface index; `None` if the kernel does not report it.
fn support(drivers: Option<&BTreeMap<u32, bool>>, index: Option<u32>) -> XdpSupport {
    match drivers.zip(index).and_then(|(drivers, index)| drivers.get(&index)) {
        Some(true) => XdpSupport::Native,
        Some(false) => XdpSupport::None,
        None => XdpSupport::Unknown,
    }
}

fn driver(base: &Path) -> Option<String> {
    let linked = fs::read_link(base.join("device/driver")).ok();
    if let Some(name) = linked.as_deref().and_then(Path::file_name) {
        return Some(name.to_string_lossy().into_owned());
    }
    let uevent = read_text(base.join("uevent")).unwrap_or_default();
    if let Some(kind) = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE=")) {
        return Some(kind.to_owned());
    }
    if base.join("tun_flags").exists() {
        return Some("tun".to_owned());
    }
    // A link without hardware whose peer has another index is one end of a veth pair.
    let (own, peer) = (attribute(base.join("ifindex"))?, attribute(base.join("iflink"))?);
    (own != peer).then(|| "veth".to_owned())
}

fn ebpf(attached: &'static str) -> Ebpf {
    let features = kernel_features();
    Ebpf { mode: attached, btf: features.contains(&"btf"), features }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_in_bytes() {
        let memory = memory("MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n");
        assert_eq!((memory.total, memory.available, memory.used), (2_097_152, 1_048_576, 1_048_576));
        assert_eq!(memory.swap_total, 0);
    }

    #[test]
    fn kernel_versions_compare_as_numbers() {
        assert_eq!(kernel_version("6.18.5-custom"), Some((6, 18)));
        assert!(kernel_version("6.1.0-40-amd64") < Some((6, 6)));
        assert_eq!(kernel_version("x"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_memory() {
        let platform = read("none", &Facts::default(), &BTreeSet::new());
        assert!(kernel_version(&platform.kernel).is_some());
        assert!(platform.memory.total > 0 && platform.uptime > 0);
    }
}
