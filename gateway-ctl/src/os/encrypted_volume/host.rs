//! Volumes of this host: device-mapper, loop devices, mounts.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_journal::room;
use gateway_model::Secret;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use super::programs::run;
use super::{KeyDerivation, Unmount, VolumeEffects, VolumeError, VolumeHeader, VolumeUsage, container, tpm2};
use crate::os::required_programs;

/// Device by which cryptsetup directs device-mapper, and its major and minor number in the list of the kernel.
const CONTROL: &str = "/dev/mapper/control";
const LOOP_CONTROL: &str = "/dev/loop-control";
/// Programs with their Debian packages.
const PROGRAMS: [(&str, &str); 3] =
    [("cryptsetup", "cryptsetup-bin"), ("mkfs.ext4", "e2fsprogs"), ("setpriv", "util-linux")];
const CIPHER: &str = "aes-xts-plain64";
/// Most memory of the key derivation, in KiB, so that a small gateway opens what a large one has made.
const DERIVATION_KIB: &str = "262144";
/// Time within which the last open file of a folder is closed after its user has let it go.
const UNMOUNT_TRIES: u32 = 50;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(100);

/// Volumes of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostVolumes {
    pub derivation: KeyDerivation,
}

fn mapped(name: &str) -> PathBuf {
    Path::new("/dev/mapper").join(name)
}

/// Reports whether the kernel has a driver of this name.
fn has_driver(list: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(list).unwrap_or_default();
    text.lines().any(|line| line.split_whitespace().nth(1) == Some(name))
}

fn cryptsetup(arguments: &[&OsStr], lines: &[&Secret]) -> Result<Vec<u8>, VolumeError> {
    run("cryptsetup", arguments, lines)
}

impl HostVolumes {
    fn derivation(self) -> &'static [&'static str] {
        match self.derivation {
            KeyDerivation::Strong => &["--pbkdf", "argon2id", "--pbkdf-memory", DERIVATION_KIB],
            KeyDerivation::Weak => &["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"],
        }
    }

    fn arguments<'a>(self, first: &[&'a str], rest: &[&'a OsStr]) -> Vec<&'a OsStr> {
        let words = first.iter().chain(self.derivation()).map(|word| OsStr::new(*word));
        words.chain(rest.iter().copied()).collect()
    }
}

impl VolumeEffects for HostVolumes {
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        // The module may load on demand, where modules can be loaded.
        let control = File::options().read(true).write(true).open(CONTROL);
        // Programs make the node where the kernel has no driver for it, too.
        let has_no_driver = control.as_ref().is_err_and(|error| {
            matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO))
        });
        if has_no_driver && !has_driver("/proc/misc", "device-mapper") {
            // Programs would not help.
            return vec!["device-mapper with dm-crypt in the kernel".to_owned()];
        }
        if let Err(error) = control {
            missing.push(format!("access to {CONTROL} ({error})"));
        }
        if let Err(error) = File::options().read(true).write(true).open(LOOP_CONTROL) {
            missing.push(format!("access to {LOOP_CONTROL} ({error})"));
        }
        for (program, package) in PROGRAMS {
            if required_programs::find(program).is_none() {
                missing.push(format!("the program {program} (Debian package {package})"));
            }
        }
        missing
    }

    fn allocate(&self, path: &Path, bytes: u64, progress: &dyn Fn(u64)) -> Result<(), VolumeError> {
        container::allocate(path, bytes, progress).map_err(VolumeError::at("allocate the container"))
    }

    fn format(&self, path: &Path, key: &Secret) -> Result<(), VolumeError> {
        let fixed =
            ["luksFormat", "--batch-mode", "--type", "luks2", "--cipher", CIPHER, "--key-size", "512"];
        cryptsetup(&self.arguments(&fixed, &[path.as_os_str()]), &[key]).map(drop)?;
        let synced = File::open(path).and_then(|file| file.sync_all());
        synced.map_err(VolumeError::at("write the header"))
    }

    fn open(&self, path: &Path, name: &str, key: &Secret) -> Result<(), VolumeError> {
        let words = ["open", "--batch-mode", "--type", "luks2", "--tries", "1"].map(OsStr::new);
        let arguments = [words.as_slice(), &[path.as_os_str(), OsStr::new(name)]].concat();
        cryptsetup(&arguments, &[key]).map(drop)
    }

    fn make_file_system(&self, name: &str) -> Result<(), VolumeError> {
        let device = mapped(name);
        let words = ["-q", "-F", "-m", "0", "-L", "gateway"].map(OsStr::new);
        run("mkfs.ext4", &[words.as_slice(), &[device.as_os_str()]].concat(), &[]).map(drop)
    }

    fn mount(&self, name: &str, folder: &Path) -> Result<(), VolumeError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(VolumeError::at("make the folder of the encrypted storage"))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOATIME;
        let mounted = rustix::mount::mount(mapped(name), folder, c"ext4", flags, None);
        mounted.map_err(|error| VolumeError::at("mount the encrypted storage")(error.into()))
    }

    fn unmount(&self, folder: &Path, how: Unmount) -> Result<(), VolumeError> {
        let flags = match how {
            Unmount::WhenUnused => UnmountFlags::empty(),
            Unmount::Now => UnmountFlags::DETACH,
        };
        let mut tries = 0;
        while self.is_mounted(folder) {
            if let Ok(file) = File::open(folder) {
                let synced = rustix::fs::syncfs(&file);
                synced.map_err(|error| VolumeError::at("write the encrypted storage")(error.into()))?;
            }
            match rustix::mount::unmount(folder, flags) {
                Ok(()) => {}
                Err(Errno::BUSY) if tries < UNMOUNT_TRIES => {
                    tries += 1;
                    std::thread::sleep(UNMOUNT_PAUSE);
                }
                Err(Errno::BUSY) => return Err(VolumeError::Busy),
                Err(error) => return Err(VolumeError::at("unmount the encrypted storage")(error.into())),
            }
        }
        Ok(())
    }

    fn close(&self, name: &str, how: Unmount) -> Result<(), VolumeError> {
        if !mapped(name).exists() {
            return Ok(());
        }
        let words: &[&str] = match how {
            Unmount::WhenUnused => &["close", name],
            Unmount::Now => &["close", "--deferred", name],
        };
        let arguments: Vec<&OsStr> = words.iter().map(|word| OsStr::new(*word)).collect();
        cryptsetup(&arguments, &[]).map(drop)
    }

    fn is_mounted(&self, folder: &Path) -> bool {
        let device = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.dev()).ok();
        let outer = folder.parent().and_then(device);
        device(folder).is_some_and(|inner| outer.is_some_and(|outer| inner != outer))
    }

    fn usage(&self, folder: &Path) -> Option<VolumeUsage> {
        if !self.is_mounted(folder) {
            return None;
        }
        let sizes = rustix::fs::statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(sizes.f_frsize);
        Some(VolumeUsage {
            size: bytes(sizes.f_blocks),
            used: bytes(sizes.f_blocks.saturating_sub(sizes.f_bfree)),
        })
    }

    fn free_bytes(&self, folder: &Path) -> Result<u64, VolumeError> {
        room::free_bytes(folder).map_err(VolumeError::at("read the free space"))
    }

    fn header(&self, path: &Path) -> Result<VolumeHeader, VolumeError> {
        let words = ["luksDump", "--dump-json-metadata"].map(OsStr::new);
        let printed = cryptsetup(&[words.as_slice(), &[path.as_os_str()]].concat(), &[])?;
        VolumeHeader::parse(&printed).map_err(|error| VolumeError::at("read the header")(error.into()))
    }

    fn add_key(&self, path: &Path, have: &Secret, new: &Secret, slot: u32) -> Result<(), VolumeError> {
        let slot = slot.to_string();
        let fixed = ["luksAddKey", "--batch-mode", "--key-slot", slot.as_str()];
        cryptsetup(&self.arguments(&fixed, &[path.as_os_str()]), &[have, new]).map(drop)
    }

    fn change_key(&self, path: &Path, have: &Secret, new: &Secret) -> Result<(), VolumeError> {
        let fixed = ["luksChangeKey", "--batch-mode"];
        cryptsetup(&self.arguments(&fixed, &[path.as_os_str()]), &[have, new]).map(drop)
    }

    fn remove_key(&self, path: &Path, slot: u32) -> Result<(), VolumeError> {
        let slot = slot.to_string();
        let words = ["luksKillSlot", "--batch-mode"].map(OsStr::new);
        cryptsetup(&[words.as_slice(), &[path.as_os_str(), OsStr::new(&slot)]].concat(), &[]).map(drop)
    }

    fn missing_for_tpm2(&self) -> Vec<String> {
        tpm2::missing()
    }

    fn add_tpm2_key(&self, path: &Path, have: &Secret, pcrs: &[u32]) -> Result<(), VolumeError> {
        tpm2::add(path, have, pcrs)
    }

    fn remove_tpm2_keys(&self, path: &Path) -> Result<(), VolumeError> {
        let VolumeHeader { key_slots, tpm2_tokens, .. } = self.header(path)?;
        for slot in key_slots.iter().filter(|slot| slot.is_tpm2) {
            self.remove_key(path, slot.slot)?;
        }
        tpm2_tokens.into_iter().try_for_each(|token| tpm2::remove_token(path, token))
    }

    fn open_by_tpm2(&self, path: &Path, name: &str) -> Result<(), VolumeError> {
        tpm2::open(path, name)
    }

    fn erase_header(&self, path: &Path) -> Result<(), VolumeError> {
        container::erase_header(path).map_err(VolumeError::at("overwrite the header"))
    }

    fn copy_files(&self, from: &Path, to: &Path) -> Result<(), VolumeError> {
        let copied = container::copy_files(from, to).and_then(|()| match File::open(to) {
            Ok(folder) => Ok(rustix::fs::syncfs(&folder)?),
            // There was nothing to copy.
            Err(_) => Ok(()),
        });
        copied.map_err(VolumeError::at("copy files into the encrypted storage"))
    }

    fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<(), VolumeError> {
        container::write_file(path, bytes).map_err(VolumeError::at("write the settings of the storage"))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), VolumeError> {
        container::rename(from, to).map_err(VolumeError::at("rename the container"))
    }

    fn erase_files(&self, folder: &Path) -> Result<(), VolumeError> {
        container::erase_files(folder).map_err(VolumeError::at("erase unencrypted files"))
    }

    fn remove(&self, path: &Path) -> Result<(), VolumeError> {
        container::remove(path).map_err(VolumeError::at("remove a file of the encrypted storage"))
    }
}
