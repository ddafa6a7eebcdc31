//! Network namespaces of the tests. They have unique names, are entered without changes to mounts, and are removed with
//! their guard.
//!
//! `ip netns exec` is not suitable: it remounts /sys, which hides /sys/fs/bpf. Programs enter between fork and exec,
//! closures on a separate thread.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{self, SigHandler, Signal};

use crate::process::Process;

const DIRECTORY: &str = "/run/netns";
const BPF_DIRECTORY: &str = "/sys/fs/bpf";

/// Name prefix for everything of one network. It is unique on the host and contains the process id.
#[derive(Clone, Debug)]
pub struct Prefix {
    pid: u32,
    number: u32,
}

impl Prefix {
    /// Returns a unique prefix. Once per process, also removes leftovers of killed tests, and sees to the own ones.
    pub fn unique() -> Result<Self> {
        require_root()?;
        static SWEPT: OnceLock<()> = OnceLock::new();
        SWEPT.get_or_init(|| {
            remove_what_dead_tests_left();
            match cleaner(std::process::id()).spawn() {
                // The kernel closes this end of the pipe with the process.
                Ok(mut cleaner) => std::mem::forget(cleaner.stdin.take()),
                Err(error) => eprintln!("an interrupted test will leave its namespaces: {error}"),
            }
        });
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Ok(Self { pid: std::process::id(), number: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    pub fn name(&self, label: &str) -> String {
        format!("gw{}-{}-{label}", self.pid, self.number)
    }

    /// Returns a name for a network interface that must be unique on the whole host. Labels differ by their last
    /// letter.
    pub fn interface(&self, label: &str) -> String {
        let letter = label.chars().next_back().unwrap_or('x');
        format!("{letter}{}-{}", self.pid, self.number)
    }

    /// Returns the directory below the BPF file system. The daemon creates it, the guard removes it.
    pub fn pin_directory(&self) -> PathBuf {
        Path::new(BPF_DIRECTORY).join(format!("gw{}-{}", self.pid, self.number))
    }
}

/// Fails with a hint if the tests lack the privileges to build networks.
pub fn require_root() -> Result<()> {
    ensure!(
        nix::unistd::geteuid().is_root(),
        "this needs root (it makes network namespaces and loads BPF programs): run it with sudo"
    );
    Ok(())
}

/// A named network namespace. Dropping it removes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    entrance: Entrance,
}

/// Handle to enter a namespace for closures and programs. It keeps the namespace alive, though no longer by name.
#[derive(Clone, Debug)]
pub struct Entrance(Arc<File>);

impl Namespace {
    pub fn create(prefix: &Prefix, label: &str) -> Result<Self> {
        let name = prefix.name(label);
        finish(Command::new("ip").args(["netns", "add", &name]))?;
        let path = Path::new(DIRECTORY).join(&name);
        let file = File::open(&path).with_context(|| format!("open {}", path.display()))?;
        let namespace = Self { name, entrance: Entrance(Arc::new(file)) };
        for family in ["all", "default"] {
            // Addresses are unique here, so duplicate address detection is not needed.
            namespace.sysctl(&format!("net.ipv6.conf.{family}.accept_dad"), "0")?;
            namespace.sysctl(&format!("net.ipv6.conf.{family}.accept_ra"), "0")?;
        }
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.name)
    }

    /// Returns the command with the shell prefix that runs it in this namespace.
    pub fn shown(&self, command: &str) -> String {
        format!("nsenter --net={} {command}", self.path().display())
    }

    pub fn entrance(&self) -> Entrance {
        self.entrance.clone()
    }

    /// Returns a command that will run in this namespace.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        self.entrance.command(program)
    }

    /// Runs a program to its end. Returns its output, or an error with its error output.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        finish(self.command(program).args(arguments)).with_context(|| format!("in namespace {}", self.name))
    }

    /// Runs a program with this standard input.
    pub fn feed(&self, program: &str, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = self.command(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start {program}"))?;
        child.stdin.take().context("no standard input")?.write_all(input.as_bytes())?;
        output(program, &child.wait_with_output()?).with_context(|| format!("in namespace {}", self.name))
    }

    /// Runs lines of `ip -batch`.
    pub fn ip(&self, lines: &str) -> Result<()> {
        self.feed("ip", &["-batch", "-"], lines).map(drop).with_context(|| format!("ip -batch:\n{lines}"))
    }

    /// Loads a rule file with `nft -f`.
    pub fn nft(&self, rules: &str) -> Result<()> {
        self.feed("nft", &["-f", "-"], rules).map(drop)
    }

    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        self.within(|| fs::write(&path, value)).with_context(|| format!("write {value} to {path}"))
    }

    /// Lets this namespace send each ICMP error, without limits of the rate.
    pub fn lift_error_limits(&self) {
        for (key, value) in [
            ("net.ipv4.icmp_ratelimit", "0"),
            ("net.ipv4.icmp_msgs_per_sec", "100000"),
            ("net.ipv4.icmp_msgs_burst", "100000"),
            ("net.ipv6.icmp.ratelimit", "0"),
        ] {
            // Some kernels have them for the whole host only.
            let _ = self.sysctl(key, value);
        }
    }

    /// Makes this namespace a router.
    pub fn forward(&self) -> Result<()> {
        self.sysctl("net.ipv4.ip_forward", "1")?;
        self.sysctl("net.ipv6.conf.all.forwarding", "1")
    }

    pub fn spawn(&self, command: Command) -> Result<Process> {
        Process::spawn(command).with_context(|| format!("in namespace {}", self.name))
    }

    /// Runs a closure in this namespace on a separate thread. Sockets that it opens belong to this namespace wherever
    /// they are used.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.entrance.within(work)
    }
}

impl Entrance {
    /// Returns a command that will run in the namespace.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let entrance = self.clone();
        // SAFETY: the closure makes one async-signal-safe system call; the descriptor lives in the closure.
        unsafe { command.pre_exec(move || entrance.enter()) };
        command
    }

    /// See [`Namespace::within`].
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                self.enter().expect("root may enter a namespace it made");
                work()
            });
            match entered.join() {
                Ok(value) => value,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Moves the calling thread into the namespace permanently.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&*self.0, CloneFlags::CLONE_NEWNET)?)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = finish(Command::new("ip").args(["netns", "del", &self.name])) {
            eprintln!("namespace {} stays behind: {error:#}", self.name);
        }
    }
}

/// Removes pinned programs and maps below a directory of the tests.
pub fn remove_pins(directory: &Path) {
    let ours = directory.starts_with(BPF_DIRECTORY) && directory != Path::new(BPF_DIRECTORY);
    if ours
        && directory.exists()
        && let Err(error) = fs::remove_dir_all(directory)
    {
        eprintln!("{} stays behind: {error}", directory.display());
    }
}

fn finish(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    let line = format!("{name} {}", arguments.join(" "));
    let result = command.stdin(Stdio::null()).output().with_context(|| format!("start {line}"))?;
    output(&line, &result)
}

fn output(line: &str, result: &Output) -> Result<String> {
    let said = String::from_utf8_lossy(&result.stdout).into_owned();
    if !result.status.success() {
        let complaint = String::from_utf8_lossy(&result.stderr);
        bail!("{line}: {}: {}", crate::process::describe(result.status), complaint.trim());
    }
    Ok(said)
}

fn remove_what_dead_tests_left() {
    for name in names_of_the_dead(DIRECTORY) {
        // Another test process may sweep at the same time; the second one finds nothing.
        let _ = finish(Command::new("ip").args(["netns", "del", &name]));
    }
    for name in names_of_the_dead(BPF_DIRECTORY) {
        let _ = fs::remove_dir_all(Path::new(BPF_DIRECTORY).join(name));
    }
}

/// Returns a program that removes the namespaces and pins of a process when its standard input ends. So they go with the
/// process, also if it is interrupted or killed.
fn cleaner(pid: u32) -> Command {
    let script = format!(
        "cat > /dev/null
        for path in {DIRECTORY}/gw{pid}-*; do [ ! -e \"$path\" ] || ip netns del \"${{path##*/}}\"; done
        rm -rf {BPF_DIRECTORY}/gw{pid}-*"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let ignore = || {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: no handler runs.
            unsafe { signal::signal(signal, SigHandler::SigIgn)? };
        }
        Ok(())
    };
    // SAFETY: the closure makes async-signal-safe system calls only.
    unsafe { command.pre_exec(ignore) };
    command
}

/// Returns entries with the prefix of the tests and the id of a process that no longer exists.
fn names_of_the_dead(directory: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| owner(name).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())).collect()
}

fn owner(name: &str) -> Option<u32> {
    let (pid, rest) = name.strip_prefix("gw")?.split_once('-')?;
    rest.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn only_names_of_our_form_have_an_owner() {
        assert_eq!(owner("gw123-0-laptop"), Some(123));
        for other in ["gw123", "gwx-0", "gateway-0", "gw-1-2", "gw12-laptop", "vm12-0"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn a_namespace_is_a_network_of_its_own_and_goes_with_its_guard() {
        let prefix = Prefix::unique().expect("prefix");
        let namespace = Namespace::create(&prefix, "lone").expect("namespace");
        let path = namespace.path();
        namespace.ip("link add one type veth peer name two").expect("veth");
        let inside = namespace.run("ip", &["-o", "link"]).expect("links");
        assert!(inside.contains("one@two"), "{inside}");
        let outside = finish(Command::new("ip").args(["-o", "link"])).expect("links");
        assert!(!outside.contains("one@two"), "{outside}");
        drop(namespace);
        assert!(!path.exists());
    }

    #[test]
    fn what_an_interrupted_process_leaves_is_removed() {
        // Larger than any process id.
        let prefix = Prefix { pid: u32::MAX, number: std::process::id() };
        let mut cleaner = cleaner(prefix.pid).spawn().expect("sh");
        let namespace = Namespace::create(&prefix, "left").expect("namespace");
        let path = namespace.path();
        std::mem::forget(namespace);
        gateway_ctl::os::bpf::mount_bpffs(&prefix.pin_directory()).expect("the BPF file system");
        fs::create_dir(prefix.pin_directory()).expect("a folder of pins");
        let id = nix::unistd::Pid::from_raw(i32::try_from(cleaner.id()).expect("a process id"));
        signal::kill(id, Signal::SIGTERM).expect("it runs");
        drop(cleaner.stdin.take());
        assert!(cleaner.wait().expect("it ends").success());
        assert!(!path.exists() && !prefix.pin_directory().exists());
    }

    #[test]
    fn a_closure_and_a_program_see_the_same_namespace() {
        let prefix = Prefix::unique().expect("prefix");
        let namespace = Namespace::create(&prefix, "both").expect("namespace");
        let listener =
            namespace.within(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 4711))).expect("free in here");
        assert!(namespace.run("ss", &["-ltn"]).expect("ss").contains("127.0.0.1:4711"));
        drop(listener);
    }

    #[test]
    fn programs_keep_the_mounts_of_the_host() {
        let prefix = Prefix::unique().expect("prefix");
        let namespace = Namespace::create(&prefix, "mounts").expect("namespace");
        let inside = namespace.run("readlink", &["/proc/self/ns/mnt"]).expect("inside");
        let outside = finish(Command::new("readlink").arg("/proc/self/ns/mnt")).expect("outside");
        assert_eq!(inside, outside);
    }

    #[test]
    fn a_program_that_fails_tells_what_it_said() {
        let prefix = Prefix::unique().expect("prefix");
        let namespace = Namespace::create(&prefix, "fails").expect("namespace");
        let error = namespace.ip("link set nowhere up").expect_err("no such link");
        assert!(format!("{error:#}").contains("nowhere"), "{error:#}");
    }
}
