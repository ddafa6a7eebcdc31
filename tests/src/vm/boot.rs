//! One boot of a guest: QEMU emulation, a folder shared with the guest for the script and its results, and a deadline.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use anyhow::{Context as _, anyhow, bail};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::tpm::Tpm;
use super::{Image, Opts, Output, image, quoted};

const SECOND_STAGE: &str = include_str!("second-stage.sh");
const QEMU: &str = "qemu-system-x86_64";
/// Prefix of the names of the runs' folders.
const RUN: &str = "run-";
/// Maximum number of lines of a text in an error.
const TAIL_LINES: usize = 60;

pub(super) fn run(image: &Image, script: &str, opts: Opts<'_>) -> anyhow::Result<Output> {
    let _turn = image::lock(&image.store.join("guest.lock"))?;
    image::remove_leftovers(&image.store, RUN)?;
    let folder = tempfile::Builder::new()
        .prefix(RUN)
        .tempdir_in(&image.store)
        .context("no folder for the run can be made")?;
    let settings =
        format!("MODULE_FOLDER={}\nMODULES='{}'\n", quoted(&image.modules), opts.modules.join(" "));
    for (name, content) in [("script", script), ("second-stage", SECOND_STAGE), ("settings", &settings)] {
        fs::write(folder.path().join(name), content).with_context(|| format!("{name} cannot be written"))?;
    }

    let console = power_on(image, folder.path(), opts)
        .map_err(|error| anyhow!("{error:#}\n{}", said(folder.path())))?;
    let text =
        |name| fs::read(folder.path().join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let Ok(exit) = text("exit") else {
        bail!("the guest ended before its script did\n{}\nconsole:\n{}", said(folder.path()), tail(&console));
    };
    Ok(Output {
        exit: exit.trim().parse().with_context(|| format!("{exit:?} is no exit code"))?,
        stdout: text("stdout").context("the script's output cannot be read")?,
        stderr: text("stderr").context("the script's error output cannot be read")?,
        console,
    })
}

/// Runs QEMU to its end. Returns its output and that of the guest's console.
fn power_on(image: &Image, folder: &Path, opts: Opts<'_>) -> anyhow::Result<String> {
    let (mut reader, writer) = std::io::pipe().context("no pipe for the console")?;
    let mut command = qemu(image, folder, opts);
    // It ends with this value.
    let tpm = opts.has_tpm2.then(|| Tpm::start(folder)).transpose()?;
    command.args(tpm.iter().flat_map(Tpm::arguments));
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("no pipe for the console")?)
        .stderr(writer);
    // SAFETY: between fork and exec only a single system call is made; it does not allocate and takes no lock.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    let mut machine = Machine(command.spawn().with_context(|| format!("{QEMU} cannot be started"))?);
    // The command holds the write end of the pipe. QEMU must be the only holder, so that its end is noticed.
    drop(command);

    let (sender, receiver) = channel();
    let listener = thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            // The receiver is dropped after this thread ended.
            let _ = sender.send(buffer[..count].to_vec());
        }
    });
    let deadline = std::time::Instant::now() + opts.timeout;
    let mut console = Vec::new();
    let ended = loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(std::time::Instant::now())) {
            Ok(bytes) => console.extend(bytes),
            Err(RecvTimeoutError::Disconnected) => break true,
            Err(RecvTimeoutError::Timeout) => break false,
        }
    };
    let pid = machine.0.id();
    if !ended {
        machine.0.kill().context("QEMU cannot be killed")?;
    }
    let status = machine.0.wait().context("QEMU's end cannot be seen")?;
    listener.join().ok().context("the console's reader failed")?;
    console.extend(receiver.try_iter().flatten());

    let console = String::from_utf8_lossy(&console).into_owned();
    if !ended {
        bail!(
            "the guest did not end in {:?}; killed QEMU, process {pid}; console:\n{}",
            opts.timeout,
            tail(&console)
        );
    }
    if !status.success() {
        bail!("QEMU ended with {status}; console:\n{}", tail(&console));
    }
    Ok(console)
}

fn qemu(image: &Image, folder: &Path, opts: Opts<'_>) -> Command {
    // QEMU option values escape a comma by a second one.
    let escaped = |path: &Path| path.to_string_lossy().replace(',', ",,");
    let mut command = Command::new(QEMU);
    command
        .args(["-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"])
        .args(["-m", &opts.memory_mb.to_string()])
        .args([
            "-nodefaults",
            "-no-user-config",
            "-nographic",
            "-no-reboot",
            "-nic",
            "none",
            "-serial",
            "stdio",
        ])
        .arg("-kernel")
        .arg(&image.kernel)
        .arg("-initrd")
        .arg(&image.initramfs)
        .args(["-append", "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr"])
        .args(["-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"])
        .args(["-device", "virtio-9p-pci,fsdev=host,mount_tag=host"])
        .args(["-fsdev", &format!("local,id=run,path={},security_model=none", escaped(folder))])
        .args(["-device", "virtio-9p-pci,fsdev=run,mount_tag=run"]);
    command
}

/// QEMU's process. Dropping it ends the process.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // Both usually fail because the process was already waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Output of the script so far.
fn said(folder: &Path) -> String {
    let mut text = String::new();
    for name in ["stdout", "stderr"] {
        let said = fs::read(folder.join(name)).unwrap_or_default();
        text.push_str(&format!("{name} so far:\n{}\n", tail(&String::from_utf8_lossy(&said))));
    }
    text
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
