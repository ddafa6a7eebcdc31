//! Programs and units that the gateway requires: whether they are installed and running.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Folders of administrators' programs, for a PATH that lacks them.
const SBIN: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Returns the path of a program, or `None` if it is not installed.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(SBIN.iter().map(PathBuf::from)).collect();
    folders.into_iter().map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns the version that a program reports: the first word of its output's first line that looks like a version.
pub fn version(program: &Path, argument: &str) -> Option<String> {
    let output = run(program, &[argument]).ok()?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    version_in(&String::from_utf8_lossy(&text))
}

fn version_in(text: &str) -> Option<String> {
    let words = text.lines().next()?.split([' ', ',', '-']);
    let version = words.filter_map(|word| {
        let number = word.strip_prefix('v').unwrap_or(word);
        (number.contains('.') && number.starts_with(|c: char| c.is_ascii_digit())).then(|| number.to_owned())
    });
    version.into_iter().next()
}

/// A systemd unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub installed: bool,
    pub enabled: bool,
    pub running: bool,
}

/// Returns the state of a unit according to systemd, or `None` if systemd does not run.
pub fn unit(name: &str) -> Option<Unit> {
    // The test of sd_booted(3).
    if !Path::new("/run/systemd/system").is_dir() {
        return None;
    }
    let systemctl = find("systemctl")?;
    let properties = ["show", "--property=LoadState,ActiveState,UnitFileState", name];
    let output = run(&systemctl, &properties).ok().filter(|output| output.status.success())?;
    Some(unit_of(&String::from_utf8_lossy(&output.stdout)))
}

/// Runs `systemctl start` or `systemctl stop`. Returns the reason of a failure.
pub(super) fn control_unit(verb: &str, name: &str) -> Result<(), String> {
    let systemctl = find("systemctl").ok_or("it is not installed")?;
    let output = run(&systemctl, &["--no-ask-password", verb, name]).map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn unit_of(properties: &str) -> Unit {
    let has = |key: &str, values: &[&str]| {
        let lines = properties.lines().filter_map(|line| line.split_once('='));
        lines.into_iter().any(|(have, value)| have == key && values.contains(&value))
    };
    Unit {
        installed: has("LoadState", &["loaded"]),
        enabled: has("UnitFileState", &["enabled", "enabled-runtime", "static", "alias"]),
        running: has("ActiveState", &["active", "activating", "reloading"]),
    }
}

fn run(program: &Path, arguments: &[&str]) -> io::Result<Output> {
    Command::new(program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(version_in("nftables v1.0.6 (Lester Gooch #5)").as_deref(), Some("1.0.6"));
        assert_eq!(version_in("OpenVPN 2.6.3 x86_64-pc-linux-gnu [SSL (OpenSSL)]").as_deref(), Some("2.6.3"));
        assert_eq!(version_in("usage: x"), None);
        assert_eq!(version_in(""), None);
    }

    #[test]
    fn a_unit_is_recognised_by_its_properties() {
        let unit = unit_of("LoadState=loaded\nActiveState=active\nUnitFileState=disabled\n");
        assert_eq!(unit, Unit { installed: true, enabled: false, running: true });
        let unit = unit_of("LoadState=not-found\nActiveState=inactive\nUnitFileState=\n");
        assert_eq!(unit, Unit { installed: false, enabled: false, running: false });
    }

    #[test]
    fn a_program_is_a_file_that_can_be_run() {
        assert!(find("sh").is_some_and(|file| file.is_absolute()));
        assert_eq!(find("no-such-program-anywhere"), None);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        std::fs::write(&file, "x").unwrap();
        assert!(!is_program(&file) && !is_program(folder.path()));
    }
}
