//! Kernel settings below /proc/sys.
//!
//! The module covers only settings that the plan names. It does not remember or restore old values.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use super::backend::{ABSENT, Backend};

#[derive(Clone, Debug)]
pub struct Sysctls {
    names: BTreeSet<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0:?} is not the name of a kernel setting")]
    Name(String),
    #[error("cannot read {name}")]
    Read { name: String, source: io::Error },
    #[error("cannot write {name}")]
    Write { name: String, source: io::Error },
}

impl Sysctls {
    /// Returns a backend that covers the settings of these names only.
    ///
    /// As with sysctl(8), a name has dots or slashes as separators. In a dotted name, a slash represents the dot of
    /// an interface name.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect() }
    }

    /// Returns the values of a plan in the form that the kernel reports.
    pub fn want(sysctls: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        sysctls.iter().map(|(name, value)| (name.clone(), tidy(value))).collect()
    }

    /// Reports whether the setting enables forwarding on the host. It is the last one to be applied.
    pub fn forwards(name: &str) -> bool {
        let name = name.replace('/', ".");
        matches!(
            name.as_str(),
            "net.ipv4.ip_forward" | "net.ipv4.conf.all.forwarding" | "net.ipv6.conf.all.forwarding"
        )
    }
}

impl Backend for Sysctls {
    type Key = String;
    type Value = String;
    type Error = Error;

    const NAME: &'static str = "sysctl";
    const REMOVE_FIRST: bool = false;

    // The files are served from memory, and the content of /proc/sys/net depends on the thread that opens it. So
    // tokio's file threads are not used.
    async fn read(&self) -> Result<BTreeMap<String, String>, Error> {
        let mut have = BTreeMap::new();
        for name in &self.names {
            // A name that cannot be read fails in its own put.
            if let Ok(value) = path(name).and_then(|path| {
                std::fs::read_to_string(path).map_err(|source| Error::Read { name: name.clone(), source })
            }) {
                have.insert(name.clone(), tidy(&value));
            }
        }
        Ok(have)
    }

    async fn put(&self, key: &String, want: &String, _have: Option<&String>) -> Result<(), Error> {
        std::fs::write(path(key)?, want).map_err(|source| Error::Write { name: key.clone(), source })
    }

    /// Does nothing: `read` returns no setting that the plan does not name.
    async fn remove(&self, _key: &String, _have: &String) -> Result<(), Error> {
        Ok(())
    }

    fn resource(key: &String) -> String {
        key.clone()
    }

    fn differences(
        expected: Option<&String>,
        actual: Option<&String>,
    ) -> Vec<(&'static str, String, String)> {
        let show = |value: Option<&String>| value.map_or_else(|| ABSENT.to_owned(), String::clone);
        vec![("value", show(expected), show(actual))]
    }
}

/// Returns the value with single spaces. The kernel separates several numbers with tabs.
fn tidy(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn path(name: &str) -> Result<PathBuf, Error> {
    // The first separator determines the style.
    let dotted = name.find(['.', '/']).is_some_and(|first| name[first..].starts_with('.'));
    let swap = |c: char| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    let below = if dotted { name.chars().map(swap).collect() } else { name.to_owned() };
    let mut parts = below.split('/');
    if below.is_empty() || parts.any(|part| matches!(part, "" | "." | "..")) {
        return Err(Error::Name(name.to_owned()));
    }
    Ok(PathBuf::from("/proc/sys").join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dotted_or_paths() {
        let path_of = |name: &str| path(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(path_of("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
        assert_eq!(path_of("net/ipv4/ip_forward"), "/proc/sys/net/ipv4/ip_forward");
        assert_eq!(path_of("net.ipv4.conf.eth0/100.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.100/rp_filter");
        assert_eq!(path_of("net/ipv4/conf/eth0.100/rp_filter"), "/proc/sys/net/ipv4/conf/eth0.100/rp_filter");
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        for name in ["", "..", "net/../../etc/passwd", "/etc/passwd", "net..ipv4", "net/./x", "a.//.b"] {
            assert!(path(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn values_are_compared_without_their_spacing() {
        assert_eq!(tidy("4096\t131072\t6291456\n"), tidy("4096 131072 6291456"));
    }

    #[test]
    fn forwarding_is_recognised_in_both_styles() {
        assert!(Sysctls::forwards("net.ipv4.ip_forward"));
        assert!(Sysctls::forwards("net/ipv6/conf/all/forwarding"));
        assert!(!Sysctls::forwards("net.ipv4.conf.lan0.forwarding"));
    }
}
