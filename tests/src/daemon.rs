//! The daemon under test in the gateway's namespace: configuration, process and REST API.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Response, exchange};
use crate::netns::{Entrance, Namespace, Prefix, remove_pins};
use crate::process::{Process, describe};
use crate::topology::Topology;
use crate::wait::wait_until;

pub const API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

const START: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(15);
/// A change of keys in an emulated machine takes most of a minute.
const ANSWER: Duration = Duration::from_secs(120);

/// A daemon with its state. It can be killed, stopped and restarted on the same state.
#[derive(Debug)]
pub struct Daemon {
    process: Option<Process>,
    program: PathBuf,
    entrance: Entrance,
    directory: TempDir,
    pins: PathBuf,
    api: Api,
    environment: Vec<(String, PathBuf)>,
    core: Option<usize>,
    /// Reports whether the first start initialises the gateway.
    initialises: bool,
}

/// Environment variable with the setting `dataplane.fast_path` of all daemons, so that each suite can run without it.
const FAST_PATH: &str = "GATEWAY_FAST_PATH";

impl Daemon {
    /// Writes the configuration without a start of the daemon.
    pub fn prepare(network: &Topology) -> Result<Self> {
        Self::prepare_in(&network.gateway, &network.prefix)
    }

    /// [`Daemon::prepare`] in a network that the caller has built: its LAN is eth1, its uplink eth0.
    pub fn prepare_in(gateway: &Namespace, prefix: &Prefix) -> Result<Self> {
        let program = find_program()?;
        let directory =
            tempfile::Builder::new().prefix("gateway-").tempdir().context("temporary directory")?;
        let pins = prefix.pin_directory();
        let api = Api { entrance: gateway.entrance() };
        let entrance = gateway.entrance();
        // No test drives the Bluetooth adapter of the host.
        let no_bus = format!("unix:path={}", directory.path().join("no-bus").display());
        let environment = vec![("DBUS_SYSTEM_BUS_ADDRESS".to_owned(), PathBuf::from(no_bus))];
        let daemon = Self {
            process: None,
            program,
            entrance,
            directory,
            pins,
            api,
            environment,
            core: None,
            initialises: true,
        };
        let configuration = json!({
            "state_dir": daemon.state_directory(),
            "runtime_dir": daemon.directory.path().join("run"),
            "bpf": {"pin_dir": daemon.pins},
            "listen": {"api_addr": API.to_string()},
            "log": {"level": "debug"},
            "network": {"wan_iface": "eth0", "lan_iface": "eth1"},
            "dataplane": {"fast_path": std::env::var(FAST_PATH).unwrap_or_else(|_| "on".to_owned())},
        });
        let text = serde_yaml::to_string(&configuration).context("configuration")?;
        fs::write(daemon.configuration_file(), text).context("write the configuration")?;
        Ok(daemon)
    }

    /// Merges objects into the configuration file, which the next start reads.
    pub fn configure(&self, more: &Value) -> Result<()> {
        let file = self.configuration_file();
        let text = fs::read_to_string(&file).context("read the configuration")?;
        let mut configuration: Value = serde_yaml::from_str(&text).context("configuration")?;
        merge(&mut configuration, more);
        let text = serde_yaml::to_string(&configuration).context("configuration")?;
        fs::write(&file, text).context("write the configuration")
    }

    /// Replaces the program, effective from the next start.
    pub fn use_program(&mut self, program: PathBuf) {
        self.program = program;
    }

    /// Sets an environment variable of the daemon, effective from the next start.
    pub fn set_environment(&mut self, name: &str, value: PathBuf) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value));
    }

    /// Pins the daemon to this core with the highest priority, effective from the next start. For measurements.
    pub fn keep_to(&mut self, core: Option<usize>) {
        self.core = core;
    }

    /// Runs `gatewayd init`, as a package or an administrator does once. The first start runs it if the test did not.
    pub fn initialise(&mut self) -> Result<()> {
        self.initialises = false;
        self.run(&["init"]).map(drop)
    }

    /// Makes the first start find a gateway that was never initialised.
    pub fn leave_uninitialised(&mut self) {
        self.initialises = false;
    }

    /// Starts the daemon and waits until it reports healthy.
    pub fn start(&mut self) -> Result<()> {
        self.spawn()?;
        self.wait_until_well()
    }

    /// Starts the daemon without waiting.
    pub fn spawn(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the daemon runs already");
        if self.initialises {
            self.initialise()?;
        }
        let log = File::options().create(true).append(true).open(self.log_file()).context("log file")?;
        let mut command = self.command(&[]);
        if let Some(core) = self.core {
            // SAFETY: the closure makes two async-signal-safe system calls.
            unsafe { command.pre_exec(move || crate::cores::keep_to(&[core])) };
        }
        command.stdin(Stdio::null()).stderr(log.try_clone().context("log file")?).stdout(log);
        self.process = Some(Process::spawn(command)?);
        Ok(())
    }

    /// Restarts the daemon after it ended by itself or was ended.
    pub fn start_again(&mut self) -> Result<()> {
        self.spawn_again()?;
        self.wait_until_well()
    }

    /// Restarts the daemon without waiting.
    pub fn spawn_again(&mut self) -> Result<()> {
        ensure!(self.ended().is_some(), "the daemon runs still");
        self.process = None;
        self.spawn()
    }

    pub fn wait_until_well(&mut self) -> Result<()> {
        let health = wait_until(START, "/health to answer or the daemon to end", || {
            if let Some(status) = self.ended() {
                return Some(Err(status));
            }
            self.api.get("/health").ok().filter(|health| health["status"] == "ok").map(Ok)
        });
        match health {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(status)) => {
                bail!("the daemon ended at its start ({})\n{}", describe(status), self.last_words())
            }
            Err(error) => Err(error.context(self.last_words())),
        }
    }

    /// Returns a command of the daemon's binary with this configuration, such as `guard`. None of these commands runs
    /// the daemon itself.
    pub fn command(&self, subcommand: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(subcommand).arg("--config").arg(self.configuration_file());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let entrance = self.entrance.clone();
        // SAFETY: the closure makes one async-signal-safe system call.
        unsafe { command.pre_exec(move || entrance.enter()) };
        command
    }

    /// Runs a subcommand and fails unless it succeeds.
    pub fn run(&self, subcommand: &[&str]) -> Result<String> {
        let output = self.command(subcommand).output().with_context(|| format!("gatewayd {subcommand:?}"))?;
        let said =
            [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
        ensure!(output.status.success(), "gatewayd {subcommand:?}: {}: {said}", describe(output.status));
        Ok(said)
    }

    pub fn kill9(&mut self) -> Result<()> {
        self.process.take().context("the daemon does not run")?.kill9()
    }

    pub fn terminate(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().context("the daemon does not run")?;
        process.terminate(STOP).with_context(|| self.last_words())
    }

    /// Returns the exit status if the daemon was started and has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.as_mut().and_then(Process::ended)
    }

    pub fn api(&self) -> &Api {
        &self.api
    }

    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    pub fn state_directory(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub fn pin_directory(&self) -> &Path {
        &self.pins
    }

    /// Returns the path of the file that marks an initialised gateway.
    pub fn marker(&self) -> PathBuf {
        self.configuration_file().with_file_name("initialised")
    }

    pub fn configuration_file(&self) -> PathBuf {
        self.directory.path().join("config.yaml")
    }

    pub fn log_file(&self) -> PathBuf {
        self.directory.path().join("gatewayd.log")
    }

    /// Returns the end of the log, for messages.
    pub fn last_words(&self) -> String {
        let log = fs::read(self.log_file()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        // The loader's log of the kernel programs is long and irrelevant to the tests.
        let lines: Vec<_> = log.lines().filter(|line| !line.contains(" aya_obj::")).collect();
        let tail = &lines[lines.len().saturating_sub(60)..];
        format!("--- the daemon's log ends ---\n{}\n---", tail.join("\n"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process = None;
        remove_pins(&self.pins);
        if std::thread::panicking() {
            eprintln!("{}", self.last_words());
            if let Ok(keep) = std::env::var("GATEWAY_TEST_LOGS") {
                let kept = Path::new(&keep).join(format!("gatewayd-{}.log", std::process::id()));
                // Best effort: the copy only helps to analyse a failure.
                let _ = fs::copy(self.log_file(), kept);
            }
        }
    }
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// Returns `GATEWAYD_BIN`, or the `gatewayd` that was built beside the calling program.
pub fn find_program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("GATEWAYD_BIN") {
        let named = PathBuf::from(named);
        ensure!(named.is_file(), "GATEWAYD_BIN names {}, which is no file", named.display());
        return Ok(named);
    }
    let here = std::env::current_exe().context("path of this program")?;
    let beside = here.ancestors().skip(1).take(2).map(|directory| directory.join("gatewayd"));
    let found = beside.clone().find(|candidate| candidate.is_file());
    found.with_context(|| {
        let looked: Vec<_> = beside.map(|candidate| candidate.display().to_string()).collect();
        format!(
            "no gatewayd at {}: build it (cargo build -p gateway-api) or set GATEWAYD_BIN",
            looked.join(" or ")
        )
    })
}

/// The REST API of the daemon, called from within its namespace.
#[derive(Clone, Debug)]
pub struct Api {
    entrance: Entrance,
}

/// A response of the API.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: Value,
}

impl Api {
    pub fn get(&self, path: &str) -> Result<Value> {
        self.call("GET", path, None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call("POST", path, Some(body))
    }

    /// Sends a POST without a body.
    pub fn act(&self, path: &str) -> Result<Value> {
        self.call("POST", path, None)
    }

    pub fn put(&self, path: &str, body: &Value) -> Result<Value> {
        self.call("PUT", path, Some(body))
    }

    pub fn delete(&self, path: &str) -> Result<Value> {
        self.call("DELETE", path, None)
    }

    /// Returns `data` of a successful response. Any other response is an error that contains it.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut reply = self.send(method, path, body)?;
        ensure!((200..300).contains(&reply.status), "{method} {path}: {} {}", reply.status, reply.body);
        Ok(reply.body["data"].take())
    }

    /// Returns the response unchanged.
    pub fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply> {
        let response = self.exchange(method, path, body)?;
        let body = serde_json::from_slice(&response.body).with_context(|| {
            format!("{method} {path}: not JSON: {}", String::from_utf8_lossy(&response.body))
        })?;
        Ok(Reply { status: response.status, body })
    }

    /// Returns the body of the answer to a GET as text, whatever its status and type.
    pub fn text(&self, path: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.exchange("GET", path, None)?.body).into_owned())
    }

    /// Returns the body of the answer to a GET, whatever its status and type.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        Ok(self.exchange("GET", path, None)?.body)
    }

    /// Returns the lines of the answer to a GET that are JSON, as they come.
    pub fn json_lines(&self, path: &str) -> Result<impl Iterator<Item = Value> + use<>> {
        let connect = || TcpStream::connect_timeout(&API, ANSWER);
        let mut connection = self.entrance.within(connect).context("connect to the API")?;
        connection.set_read_timeout(Some(ANSWER)).context("connection")?;
        write!(connection, "GET /api/v1{path} HTTP/1.1\r\nHost: {API}\r\nConnection: close\r\n\r\n")?;
        let lines = BufReader::new(connection).lines().map_while(Result::ok);
        Ok(lines.filter_map(|line| serde_json::from_str(&line).ok()).filter(Value::is_object))
    }

    fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Response> {
        let connect = || TcpStream::connect_timeout(&API, ANSWER);
        let connection = self.entrance.within(connect).context("connect to the API")?;
        connection.set_read_timeout(Some(ANSWER)).context("connection")?;
        let body = body.map(|body| body.to_string().into_bytes());
        let headers = if body.is_some() { [("Content-Type", "application/json")].as_slice() } else { &[] };
        let full = format!("/api/v1{path}");
        exchange(&connection, method, &API.to_string(), &full, headers, body.as_deref())
            .with_context(|| format!("{method} {path}"))
    }
}
