//! Creates the kernel, its modules and the initial file system in `target/vm`. Each part appears atomically.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::Image;
use super::cpio::Archive;
use super::packages::{apt_get, install_missing, output_of, with_fresh_lists_at_need};

const FIRST_STAGE: &str = include_str!("first-stage.sh");
const BUSYBOX: &str = "/bin/busybox";
/// Modules that the first stage needs to mount the host's files.
const BOOT_MODULES: [&str; 4] = ["virtio_pci", "9pnet_virtio", "9p", "overlay"];

/// Prefix of the names of incomplete parts.
const MAKING: &str = "making-";

pub(super) fn prepare() -> anyhow::Result<Image> {
    ensure!(rustix::process::geteuid().is_root(), "the virtual machine's tests run as root only");
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate lies in the workspace")?;
    let store = workspace.join("target/vm");
    fs::create_dir_all(&store).with_context(|| format!("{} cannot be made", store.display()))?;

    let _lock = lock(&store.join("prepare.lock"))?;
    remove_leftovers(&store, MAKING)?;
    install_missing()?;
    let unpacked = store.join("kernel");
    if !unpacked.exists() {
        unpack_kernel(&store, &unpacked)?;
    }
    let release = release_of(&unpacked)?;
    let initramfs = initramfs(&store, &unpacked, &release)?;
    Ok(Image {
        kernel: unpacked.join("boot").join(format!("vmlinuz-{release}")),
        modules: unpacked.join("lib/modules"),
        store,
        release,
        initramfs,
    })
}

/// Waits for the lock on a file. Dropping the result releases it.
pub(super) fn lock(path: &Path) -> anyhow::Result<File> {
    let file = File::create(path).with_context(|| format!("{} cannot be made", path.display()))?;
    file.lock().with_context(|| format!("{} cannot be locked", path.display()))?;
    Ok(file)
}

/// Removes the folders and files of ended processes. The caller holds the lock that protects their creation.
pub(super) fn remove_leftovers(store: &Path, prefix: &str) -> anyhow::Result<()> {
    let entries = fs::read_dir(store).with_context(|| format!("{} cannot be read", store.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("{} cannot be read", store.display()))?.path();
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)) {
            continue;
        }
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    Ok(())
}

fn making(store: &Path) -> anyhow::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(MAKING).tempdir_in(store).context("no room for the kernel")
}

/// Unpacks the kernel package without installing it: an installation would change the host's boot.
fn unpack_kernel(store: &Path, unpacked: &Path) -> anyhow::Result<()> {
    let download = making(store)?;
    with_fresh_lists_at_need(|| {
        let package = kernel_package()?;
        output_of(apt_get().arg("download").arg(package).current_dir(download.path()))
    })
    .context("Debian's kernel cannot be fetched")?;
    let package = only_entry(download.path())?;

    let root = making(store)?;
    output_of(Command::new("dpkg").arg("--extract").arg(package).arg(root.path()))?;
    let release = release_of(root.path())?;
    output_of(Command::new("depmod").arg("-b").arg(root.path()).arg(release))?;
    fs::rename(root.keep(), unpacked).context("the unpacked kernel cannot be put in its place")
}

/// Returns the package behind `linux-image-amd64`.
fn kernel_package() -> anyhow::Result<String> {
    let text = output_of(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
    let package = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-"))
        .context("apt knows no package linux-image-amd64")?;
    ensure!(
        package.starts_with("linux-image-6.1.0-"),
        "the guest's kernel is Debian 12's (6.1), but the packages offered here lead to {package}"
    );
    Ok(package.to_owned())
}

fn release_of(root: &Path) -> anyhow::Result<String> {
    let folder = only_entry(&root.join("lib/modules"))?;
    let name = folder.file_name().context("a folder has a name")?;
    Ok(name.to_string_lossy().into_owned())
}

fn only_entry(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("{} cannot be read", folder.display()))?;
    match entries.as_slice() {
        [one] => Ok(one.path()),
        more => bail!("{} holds {} entries, not one", folder.display(), more.len()),
    }
}

/// Builds the initial file system. Its name depends on its content, so another first stage or kernel gives another
/// file.
fn initramfs(store: &Path, unpacked: &Path, release: &str) -> anyhow::Result<PathBuf> {
    let mut recipe = DefaultHasher::new();
    (FIRST_STAGE, BOOT_MODULES, release).hash(&mut recipe);
    let path = store.join(format!("initramfs-{:016x}.cpio", recipe.finish()));
    if path.exists() {
        return Ok(path);
    }

    let mut archive = Archive::default();
    for folder in ["bin", "modules", "dev", "proc", "sys", "lower", "layer", "root"] {
        archive.folder(folder);
    }
    archive.program("init", FIRST_STAGE.as_bytes());
    archive.program("bin/busybox", &fs::read(BUSYBOX).context("busybox cannot be read")?);
    for (place, module) in boot_modules(unpacked, release)?.iter().enumerate() {
        let content = fs::read(module).with_context(|| format!("{} cannot be read", module.display()))?;
        archive.program(&format!("modules/{place:02}.ko"), &content);
    }

    let mut file = tempfile::Builder::new()
        .prefix(MAKING)
        .tempfile_in(store)
        .context("no room for the initial file system")?;
    file.write_all(&archive.into_bytes()).context("no room for the initial file system")?;
    file.persist(&path).context("the initial file system cannot be put in its place")?;
    Ok(path)
}

/// Returns the module files in load order.
fn boot_modules(unpacked: &Path, release: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for module in BOOT_MODULES {
        let text = output_of(Command::new("modprobe").arg("-d").arg(unpacked).args([
            "-S",
            release,
            "--show-depends",
            module,
        ]))?;
        for line in text.lines() {
            // Lines are "insmod PATH " for a module and "builtin NAME" for built-in code.
            let Some(file) = line.strip_prefix("insmod ") else { continue };
            let file = PathBuf::from(file.trim_end());
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}
