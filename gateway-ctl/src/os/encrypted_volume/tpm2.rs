//! Keys that a TPM2 seals: systemd-cryptenroll adds them, and the token plugin of systemd lets cryptsetup open by them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use gateway_model::Secret;
use rustix::fs::{MemfdFlags, memfd_create};

use super::VolumeError;
use super::header::TPM2_TOKEN;
use super::programs::{execute, message, outcome, run};
use crate::os::required_programs;

const ENROLL: &str = "systemd-cryptenroll";
/// Devices of the kernel that share a TPM.
const DEVICES: &str = "/sys/class/tpmrm";
/// Library, which systemd loads on demand, with its Debian package.
const LIBRARIES: [(&str, &str); 4] = [
    ("libtss2-esys.so.0", "libtss2-esys-3.0.2-0"),
    ("libtss2-mu.so.0", "libtss2-mu0"),
    ("libtss2-rc.so.0", "libtss2-rc0"),
    ("libtss2-tcti-device.so.0", "libtss2-tcti-device0"),
];
/// Values of the PCRs, as the kernel shows them.
const SHOWN_PCRS: &str = "/sys/class/tpm/tpm0/pcr-sha256";
const PLUGIN: &str = "cryptsetup/libcryptsetup-token-systemd-tpm2.so";

/// Returns what this host lacks to seal keys by a TPM2.
pub(super) fn missing() -> Vec<String> {
    let mut devices = std::fs::read_dir(DEVICES).into_iter().flatten().flatten();
    let Some(device) = devices.next() else {
        // Programs would not help.
        return vec!["a TPM2".to_owned()];
    };
    let mut missing = Vec::new();
    let device = Path::new("/dev").join(device.file_name());
    if let Err(error) = File::options().read(true).write(true).open(&device) {
        missing.push(format!("access to {} ({error})", device.display()));
    }
    if required_programs::find(ENROLL).is_none() {
        missing.push(format!("the program {ENROLL} (Debian package systemd)"));
    }
    let folders = library_folders();
    let has = |file: &str| folders.iter().any(|folder| folder.join(file).exists());
    if !has(PLUGIN) {
        missing.push(format!("{PLUGIN} (Debian package systemd)"));
    }
    let libraries = LIBRARIES.iter().filter(|(file, _)| !has(file));
    missing.extend(libraries.map(|(file, package)| format!("{file} (Debian package {package})")));
    missing
}

/// Returns the folders of shared libraries, with those of each architecture.
fn library_folders() -> Vec<PathBuf> {
    let roots = ["/usr/lib", "/usr/lib64", "/lib", "/usr/local/lib"].map(PathBuf::from);
    let below = |root: &PathBuf| std::fs::read_dir(root).into_iter().flatten().flatten();
    let architectures: Vec<PathBuf> = roots.iter().flat_map(below).map(|entry| entry.path()).collect();
    roots.into_iter().chain(architectures).collect()
}

/// Returns the PCRs as systemd-cryptenroll reads them.
fn pcr_list(pcrs: &[u32]) -> String {
    pcrs.iter().map(u32::to_string).collect::<Vec<_>>().join("+")
}

/// Reports whether the PCRs are as the TPM has them after a reset: the firmware measures nothing into them. `false` if
/// the kernel does not show them.
fn are_unmeasured(pcrs: &[u32]) -> bool {
    pcrs.iter().all(|pcr| {
        let shown = std::fs::read_to_string(format!("{SHOWN_PCRS}/{pcr}"));
        shown.is_ok_and(|text| is_reset(text.trim()))
    })
}

fn is_reset(value: &str) -> bool {
    !value.is_empty()
        && ['0', 'F'].iter().any(|digit| value.chars().all(|one| one.eq_ignore_ascii_case(digit)))
}

/// Returns a file in memory with a key as it is, without an end of line. systemd-cryptenroll reads no pipe.
fn key_file(key: &Secret) -> Result<File, VolumeError> {
    let made = || {
        let mut file = File::from(memfd_create("key", MemfdFlags::CLOEXEC)?);
        file.write_all(key.expose().as_bytes())?;
        file.rewind()?;
        io::Result::Ok(file)
    };
    made().map_err(VolumeError::at("make a file of the passphrase"))
}

pub(super) fn add(container: &Path, have: &Secret, pcrs: &[u32]) -> Result<(), VolumeError> {
    if are_unmeasured(pcrs) {
        return Err(VolumeError::Unmeasured);
    }
    // It does not distinguish a wrong passphrase from other errors; cryptsetup does.
    let words = ["open", "--batch-mode", "--type", "luks2", "--tries", "1", "--test-passphrase"];
    let check: Vec<&OsStr> = words.iter().map(OsStr::new).chain([container.as_os_str()]).collect();
    run("cryptsetup", &check, &[have])?;
    let pcrs = format!("--tpm2-pcrs={}", pcr_list(pcrs));
    let words =
        ["--tpm2-device=auto", "--wipe-slot=tpm2", "--unlock-key-file=/proc/self/fd/0", pcrs.as_str()];
    let arguments: Vec<&OsStr> = words.iter().map(OsStr::new).chain([container.as_os_str()]).collect();
    let output = execute(ENROLL, &arguments, Stdio::from(key_file(have)?))?;
    outcome(ENROLL, output)?;
    let synced = File::open(container).and_then(|file| file.sync_all());
    synced.map_err(VolumeError::at("write the header"))
}

pub(super) fn open(container: &Path, name: &str) -> Result<(), VolumeError> {
    let words = ["open", "--batch-mode", "--type", "luks2", "--token-only", "--token-type", TPM2_TOKEN];
    let paths = [container.as_os_str(), OsStr::new(name)];
    let arguments: Vec<&OsStr> = words.iter().map(OsStr::new).chain(paths).collect();
    let output = execute("cryptsetup", &arguments, Stdio::null())?;
    if output.status.success() { Ok(()) } else { Err(VolumeError::Tpm2(message(&output))) }
}

/// Removes a token from the header. Its slots are removed beforehand.
pub(super) fn remove_token(container: &Path, token: u32) -> Result<(), VolumeError> {
    let number = token.to_string();
    let words = ["token", "remove", "--batch-mode", "--token-id", number.as_str()];
    let arguments: Vec<&OsStr> = words.iter().map(OsStr::new).chain([container.as_os_str()]).collect();
    run("cryptsetup", &arguments, &[]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcrs_are_one_list() {
        assert_eq!(pcr_list(&[7]), "7");
        assert_eq!(pcr_list(&[0, 7, 23]), "0+7+23");
    }

    #[test]
    fn a_pcr_that_was_measured_has_a_digest() {
        assert!(is_reset(&"0".repeat(64)) && is_reset(&"F".repeat(64)));
        assert!(!is_reset("") && !is_reset(&"0F".repeat(32)));
    }

    #[test]
    fn a_key_is_a_file_that_can_be_read_twice() {
        let mut file = key_file(&Secret::new("a long passphrase")).expect("a file");
        for _ in 0..2 {
            file.rewind().expect("a seekable file");
            let mut text = String::new();
            io::Read::read_to_string(&mut file, &mut text).expect("readable");
            assert_eq!(text, "a long passphrase");
        }
    }
}
