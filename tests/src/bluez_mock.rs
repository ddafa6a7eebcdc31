//! BlueZ on a bus of D-Bus of its own: the mock objects of python-dbusmock. They have no radio; a veth stands for the interface of
//! a phone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::process::Process;
use crate::wait::wait_ok;

/// Name of the adapter in paths.
const ADAPTER: &str = "hci0";
const TEMPLATE: &str = include_str!("bluez_mock/template.py");
/// Debian's own interpreter, which has the modules of its packages.
const PYTHON: &str = "/usr/bin/python3";
const START: Duration = Duration::from_secs(20);

/// Bus with the mock. Dropping it ends both.
#[derive(Debug)]
pub struct BluezMock {
    // Field order is drop order.
    mock: Option<Process>,
    bus: Option<Process>,
    folder: TempDir,
}

impl BluezMock {
    /// Starts the bus and the mock, without an adapter.
    pub fn start() -> Result<Self> {
        let mut bluez = Self::prepare()?;
        bluez.start_bus()?;
        bluez.start_mock()?;
        Ok(bluez)
    }

    /// Prepares the address of a bus that does not run.
    pub fn prepare() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("gateway-bluez-").tempdir().context("a folder")?;
        fs::write(folder.path().join("template.py"), TEMPLATE).context("the template")?;
        Ok(Self { mock: None, bus: None, folder })
    }

    /// Returns the address of the bus.
    pub fn address(&self) -> String {
        format!("unix:path={}", self.socket().display())
    }

    /// Starts the bus.
    pub fn start_bus(&mut self) -> Result<()> {
        // A killed bus leaves its socket.
        let _ = fs::remove_file(self.socket());
        let mut command = Command::new("dbus-daemon");
        command.args(["--session", "--nofork", "--nopidfile", "--address", &self.address()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.bus = Some(Process::spawn(command)?);
        let socket = self.socket();
        wait_ok(START, "the bus", || {
            ensure!(socket.exists(), "no socket");
            Ok(())
        })
    }

    /// Starts the mock.
    pub fn start_mock(&mut self) -> Result<()> {
        let mut command = Command::new(PYTHON);
        command
            .args(["-m", "dbusmock", "--system", "--template"])
            .arg(self.folder.path().join("template.py"));
        command.env("DBUS_SYSTEM_BUS_ADDRESS", self.address());
        let log = fs::File::create(self.log()).context("a log")?;
        command.stdin(Stdio::null()).stdout(log.try_clone().context("a log")?).stderr(log);
        self.mock = Some(Process::spawn(command)?);
        wait_ok(START, "the mock", || self.call("Bridge", &[]).map(drop))
    }

    /// Ends the mock as a crash of its daemon would.
    pub fn kill_mock(&mut self) -> Result<()> {
        self.mock.take().context("the mock does not run")?.kill9()
    }

    /// Ends the bus and the mock.
    pub fn kill_bus(&mut self) -> Result<()> {
        self.mock = None;
        self.bus.take().context("the bus does not run")?.kill9()
    }

    pub fn add_adapter(&self) -> Result<()> {
        self.call("AddHost", &[&format!("string:{ADAPTER}"), "string:gateway"]).map(drop)
    }

    pub fn remove_adapter(&self) -> Result<()> {
        self.call("RemoveAdapterWithDevices", &[&format!("string:{ADAPTER}")]).map(drop)
    }

    /// Adds a device with a network of its own.
    pub fn add_phone(&self, mac: &str, name: &str) -> Result<()> {
        let arguments = [ADAPTER, mac, name].map(|argument| format!("string:{argument}"));
        self.call("AddPhone", &arguments.each_ref().map(String::as_str)).map(drop)
    }

    /// Adds many devices without names.
    pub fn add_devices(&self, count: usize) -> Result<()> {
        self.call("AddDevices", &[&format!("string:{ADAPTER}"), &format!("uint32:{count}")]).map(drop)
    }

    /// Sets how devices pair: `none` (at once), `confirm`, `pin` or `authorize`.
    pub fn set_pairing(&self, kind: &str, passkey: u32) -> Result<()> {
        self.call("SetPairing", &[&format!("string:{kind}"), &format!("uint32:{passkey}")]).map(drop)
    }

    /// Lets a device begin to pair. Returns `paired`, or the error of the agent.
    pub fn begin_pairing(&self, mac: &str) -> Result<String> {
        self.call("BeginPairing", &[&format!("string:{ADAPTER}"), &format!("string:{mac}")])
    }

    /// Returns the bridge of the network that the adapter offers; empty for none.
    pub fn bridge(&self) -> Result<String> {
        self.call("Bridge", &[])
    }

    /// Calls a method of the mock. Returns its text.
    fn call(&self, method: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("dbus-send");
        command.args([
            &format!("--bus={}", self.address()),
            "--print-reply=literal",
            "--reply-timeout=60000",
        ]);
        command.args(["--dest=org.bluez", "/", &format!("org.bluez.Mock.{method}")]).args(arguments);
        let output = command.output().context("dbus-send")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        ensure!(
            output.status.success(),
            "{method}: {}\n{}",
            text(&output.stderr),
            fs::read_to_string(self.log()).unwrap_or_default()
        );
        Ok(text(&output.stdout))
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("bus")
    }

    fn log(&self) -> PathBuf {
        self.folder().join("mock.log")
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}
