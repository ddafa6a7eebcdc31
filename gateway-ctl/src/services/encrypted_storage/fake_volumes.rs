//! Volumes of tests: files are real, and a mapped device is a folder. They can be made to die before, within or behind any
//! operation, and then do nothing more, as a killed process.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gateway_model::Secret;
use parking_lot::Mutex;

use crate::os::encrypted_volume::{
    HostVolumes, KeySlot, Unmount, VolumeEffects, VolumeError, VolumeHeader, VolumeUsage,
};

/// Instant of a death, relative to the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    Before,
    Within,
    Behind,
}

#[derive(Debug, Default)]
struct FakeKernel {
    /// Container of the mapped device, by its inode.
    mapped: Option<u64>,
    mounted: Option<PathBuf>,
    /// State of the machine that the TPM has measured.
    measured: u32,
    operations: usize,
    dies: Option<(usize, Death)>,
    is_dead: bool,
}

/// Fake volumes. File systems lie in `devices`, each by the inode of its container.
#[derive(Debug)]
pub(super) struct FakeVolumes {
    devices: PathBuf,
    files: HostVolumes,
    kernel: Mutex<FakeKernel>,
}

/// Beginning of the keys that the TPM seals, before what it has measured.
const TPM2_KEY: &str = "sealed while the machine was ";

fn killed() -> VolumeError {
    VolumeError::at("go on")(io::Error::other("killed"))
}

fn at(action: &'static str) -> impl FnOnce(io::Error) -> VolumeError {
    VolumeError::at(action)
}

impl FakeVolumes {
    pub(super) fn new(devices: &Path) -> FakeVolumes {
        FakeVolumes { devices: devices.to_owned(), files: HostVolumes::default(), kernel: Mutex::default() }
    }

    pub(super) fn dies_at(&self, operation: usize, death: Death) {
        let mut kernel = self.kernel.lock();
        (kernel.operations, kernel.dies) = (0, Some((operation, death)));
    }

    pub(super) fn is_dead(&self) -> bool {
        self.kernel.lock().is_dead
    }

    /// Starts the process again. The kernel still has what is mapped and mounted.
    pub(super) fn revive(&self) {
        let mut kernel = self.kernel.lock();
        (kernel.is_dead, kernel.dies) = (false, None);
    }

    /// Starts the machine again: nothing is mapped or mounted.
    pub(super) fn reboot(&self) {
        self.revive();
        self.detach().expect("files");
        self.kernel.lock().mapped = None;
    }

    /// Starts the machine again with other software.
    pub(super) fn reboot_changed(&self) {
        self.reboot();
        self.kernel.lock().measured += 1;
    }

    fn tpm2_key(&self) -> String {
        format!("{TPM2_KEY}{}", self.kernel.lock().measured)
    }

    fn open_by(&self, container: &Path, key: &str) -> Result<(), VolumeError> {
        if !keys(container).iter().any(|one| one == key) {
            return Err(VolumeError::WrongKey);
        }
        let mut kernel = self.kernel.lock();
        if kernel.mapped.is_some() {
            return Err(VolumeError::Busy);
        }
        kernel.mapped = Some(fs::metadata(container).map_err(at("read"))?.ino());
        Ok(())
    }

    fn detach(&self) -> io::Result<()> {
        let (mounted, mapped) = {
            let mut kernel = self.kernel.lock();
            (kernel.mounted.take(), kernel.mapped)
        };
        let (Some(folder), Some(inode)) = (mounted, mapped) else { return Ok(()) };
        fs::rename(&folder, self.device(inode))?;
        fs::create_dir(folder)
    }

    fn device(&self, inode: u64) -> PathBuf {
        self.devices.join(inode.to_string())
    }

    /// Counts an operation. Runs `part` instead if the process dies within it, and `all` else.
    fn step<T>(
        &self,
        part: impl FnOnce(),
        all: impl FnOnce() -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let death = {
            let mut kernel = self.kernel.lock();
            if kernel.is_dead {
                return Err(killed());
            }
            let number = kernel.operations;
            kernel.operations += 1;
            let death = kernel.dies.filter(|(at, _)| *at == number).map(|(_, death)| death);
            kernel.is_dead = death.is_some();
            death
        };
        match death {
            None => all(),
            Some(Death::Before) => Err(killed()),
            Some(Death::Within) => {
                part();
                Err(killed())
            }
            Some(Death::Behind) => all().and(Err(killed())),
        }
    }
}

/// Returns the keys of a fake header, one a line.
fn keys(container: &Path) -> Vec<String> {
    let bytes = fs::read(container).unwrap_or_default();
    let text: Vec<u8> = bytes.into_iter().take_while(|byte| *byte != 0).collect();
    String::from_utf8(text).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn write_keys(container: &Path, keys: &[String]) -> Result<(), VolumeError> {
    let length = fs::metadata(container).map_err(at("read"))?.len();
    let mut bytes = keys.join("\n").into_bytes();
    bytes.resize(usize::try_from(length).expect("small"), 0);
    fs::write(container, bytes).map_err(at("write"))
}

/// Does something to the first file of a folder only.
fn first_file(folder: &Path, act: impl FnOnce(&Path)) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    if let Some(path) = entries.first().filter(|path| path.is_file()) {
        act(path);
    }
}

impl VolumeEffects for FakeVolumes {
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }

    fn allocate(&self, container: &Path, bytes: u64, progress: &dyn Fn(u64)) -> Result<(), VolumeError> {
        let part = || drop(self.files.allocate(container, bytes / 2, progress));
        self.step(part, || self.files.allocate(container, bytes, progress))
    }

    fn format(&self, container: &Path, key: &Secret) -> Result<(), VolumeError> {
        let part = || drop(write_keys(container, &["half a key".to_owned()]));
        self.step(part, || write_keys(container, &[key.expose().to_owned()]))
    }

    fn open(&self, container: &Path, _: &str, key: &Secret) -> Result<(), VolumeError> {
        self.step(|| {}, || self.open_by(container, key.expose()))
    }

    fn make_file_system(&self, _: &str) -> Result<(), VolumeError> {
        let inode = self.kernel.lock().mapped;
        self.step(|| {}, || fs::create_dir(self.device(inode.ok_or_else(killed)?)).map_err(at("make")))
    }

    fn mount(&self, _: &str, folder: &Path) -> Result<(), VolumeError> {
        let part = || drop(fs::create_dir_all(folder));
        self.step(part, || {
            fs::create_dir_all(folder).map_err(at("make"))?;
            let mut kernel = self.kernel.lock();
            fs::rename(self.device(kernel.mapped.ok_or_else(killed)?), folder).map_err(at("mount"))?;
            kernel.mounted = Some(folder.to_owned());
            Ok(())
        })
    }

    fn unmount(&self, _: &Path, _: Unmount) -> Result<(), VolumeError> {
        self.step(|| {}, || self.detach().map_err(at("unmount")))
    }

    fn close(&self, _: &str, _: Unmount) -> Result<(), VolumeError> {
        self.step(
            || {},
            || {
                self.kernel.lock().mapped = None;
                Ok(())
            },
        )
    }

    fn is_mounted(&self, folder: &Path) -> bool {
        self.kernel.lock().mounted.as_deref() == Some(folder)
    }

    fn usage(&self, folder: &Path) -> Option<VolumeUsage> {
        self.is_mounted(folder).then_some(VolumeUsage { size: 2, used: 1 })
    }

    fn free_bytes(&self, folder: &Path) -> Result<u64, VolumeError> {
        self.files.free_bytes(folder)
    }

    fn header(&self, container: &Path) -> Result<VolumeHeader, VolumeError> {
        let slot = |(slot, key): (u32, String)| {
            let is_tpm2 = key.starts_with(TPM2_KEY);
            let tpm2_pcrs = if is_tpm2 { vec![7] } else { Vec::new() };
            KeySlot { slot, kdf: "none".to_owned(), is_tpm2, tpm2_pcrs }
        };
        let key_slots = (0..).zip(keys(container)).map(slot).collect();
        Ok(VolumeHeader { cipher: "none".to_owned(), key_slots, tpm2_tokens: Vec::new() })
    }

    fn add_key(&self, container: &Path, have: &Secret, new: &Secret, slot: u32) -> Result<(), VolumeError> {
        self.step(
            || {},
            || {
                let mut all = keys(container);
                if !all.iter().any(|one| one == have.expose()) {
                    return Err(VolumeError::WrongKey);
                }
                assert_eq!(all.len(), slot as usize, "the first free slot");
                all.push(new.expose().to_owned());
                write_keys(container, &all)
            },
        )
    }

    fn change_key(&self, container: &Path, have: &Secret, new: &Secret) -> Result<(), VolumeError> {
        self.step(
            || {},
            || {
                let mut all = keys(container);
                let key = all.iter_mut().find(|one| *one == have.expose()).ok_or(VolumeError::WrongKey)?;
                *key = new.expose().to_owned();
                write_keys(container, &all)
            },
        )
    }

    fn remove_key(&self, container: &Path, slot: u32) -> Result<(), VolumeError> {
        self.step(
            || {},
            || {
                let mut all = keys(container);
                all.remove(slot as usize);
                write_keys(container, &all)
            },
        )
    }

    fn missing_for_tpm2(&self) -> Vec<String> {
        Vec::new()
    }

    fn add_tpm2_key(&self, container: &Path, have: &Secret, _: &[u32]) -> Result<(), VolumeError> {
        self.step(
            || {},
            || {
                let mut all = keys(container);
                if !all.iter().any(|one| one == have.expose()) {
                    return Err(VolumeError::WrongKey);
                }
                all.retain(|one| !one.starts_with(TPM2_KEY));
                all.push(self.tpm2_key());
                write_keys(container, &all)
            },
        )
    }

    fn remove_tpm2_keys(&self, container: &Path) -> Result<(), VolumeError> {
        self.step(
            || {},
            || {
                let mut all = keys(container);
                all.retain(|one| !one.starts_with(TPM2_KEY));
                write_keys(container, &all)
            },
        )
    }

    fn open_by_tpm2(&self, container: &Path, _: &str) -> Result<(), VolumeError> {
        let open = || self.open_by(container, &self.tpm2_key());
        let refused = |_| VolumeError::Tpm2("the machine is another one".to_owned());
        self.step(|| {}, || open().map_err(refused))
    }

    fn erase_header(&self, container: &Path) -> Result<(), VolumeError> {
        self.step(|| {}, || self.files.erase_header(container))
    }

    fn copy_files(&self, from: &Path, to: &Path) -> Result<(), VolumeError> {
        let part = || {
            first_file(from, |path| {
                fs::create_dir_all(to).expect("a folder");
                fs::write(to.join("torn"), &fs::read(path).expect("a file")[..1]).expect("a torn file");
            });
        };
        self.step(part, || self.files.copy_files(from, to))
    }

    fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<(), VolumeError> {
        let part = || drop(fs::write(path.with_extension("part"), &bytes[..bytes.len() / 2]));
        self.step(part, || self.files.write_file(path, bytes))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), VolumeError> {
        self.step(|| {}, || self.files.rename(from, to))
    }

    fn erase_files(&self, folder: &Path) -> Result<(), VolumeError> {
        let part = || first_file(folder, |path| fs::remove_file(path).expect("removed"));
        self.step(part, || self.files.erase_files(folder))
    }

    fn remove(&self, path: &Path) -> Result<(), VolumeError> {
        self.step(|| {}, || self.files.remove(path))
    }
}
