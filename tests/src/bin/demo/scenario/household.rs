//! The network goes on as that of a household would, so that the dashboard can be tried on live traffic.

use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use gateway_tests::services::BULK;
use gateway_tests::testbed::policy;
use gateway_tests::topology::{Host, LAN_V4, SERVER_V4, wan};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use super::{SOON, Walk, fetch, id};

/// MAC address of the host that is no device.
const CAMERA_MAC: &str = "02:00:00:10:00:30";
/// Pause between two commands of a host.
const PAUSE: Duration = Duration::from_millis(700);
/// Names that the hosts look up. One of them is blocked.
const NAMES: [&str; 6] =
    ["www.example", "mail.example", "ads.example", "news.example", "photos.example", "updates.example"];
/// Size in bytes of a download and of the upload before it.
const PAGE: u64 = 150_000;

impl Walk {
    pub(super) fn go_on(&mut self) -> Result<()> {
        self.console
            .step("home", "laptop -> wg-a, tv -> wg-b, both fail-closed, with the traffic of a household");
        let internet = &self.testbed.network.internet;
        self.console.run(&internet.shown("nft delete table inet hotel"))?;
        let tv = &self.testbed.network.tv;
        let device = json!({"name": tv.name, "mac": tv.mac});
        let device = id(&self.console.call(&self.curl("POST", "/devices", Some(&device)))?)?;
        self.console.call(&self.curl("POST", &format!("/tunnels/{}/up", self.tunnels[1]), None))?;
        self.wait_for_tunnel(1)?;
        let streaming = policy("tv-streaming", 20, ("device", &device), &["wg-b"]);
        self.console.call(&self.curl("POST", "/routing/policies", Some(&streaming)))?;
        self.apply()?;
        let network = &self.testbed.network;
        for (host, exit, claim) in [
            (&network.laptop, &network.exit_a, "laptop is seen as (exit A)"),
            (&network.tv, &network.exit_b, "tv is seen as (exit B)"),
        ] {
            let seen = self.console.run(&fetch(host, false))?;
            self.console.claim(claim, exit.address(false), seen);
            self.household.push(Traffic::start(commands(host)));
        }
        self.meet_the_camera()
    }

    /// A host without a device record joins the LAN: it is listed, and the verdict counts it.
    fn meet_the_camera(&mut self) -> Result<()> {
        let camera = self.testbed.network.add_host("camera", CAMERA_MAC, 30)?;
        let seen = self.console.run(&fetch(&camera, false))?;
        self.console.claim("camera is no device and is seen as (no policy)", wan(false), seen);
        let api = self.testbed.api();
        wait_ok(SOON, "the camera to be listed as an unknown host", || {
            let hosts = api.get(&format!("/hosts?mac={CAMERA_MAC}&status=new&confirmed=true"))?;
            anyhow::ensure!(hosts[0]["path"]["treatment"] == "no_policy", "{hosts}");
            let verdict = api.get("/status")?["verdict"].clone();
            anyhow::ensure!(verdict["counts"]["no_policy"].as_u64() >= Some(1), "{verdict}");
            Ok(())
        })?;
        let hosts = self.console.call(&self.curl("GET", "/hosts?status=new", None))?;
        let is_listed = hosts.as_array().into_iter().flatten().any(|host| host["mac"] == CAMERA_MAC);
        self.console.claim("camera is listed as a new host", true, is_listed);
        let status = self.console.call(&self.curl("GET", "/status", None))?;
        self.console.say(status["verdict"]["sentence"].as_str().unwrap_or_default());
        self.household.push(Traffic::start(commands(&camera)));
        self.camera = Some(camera);
        Ok(())
    }
}

/// Commands of a host: it looks names up and loads pages.
fn commands(host: &Host) -> Vec<String> {
    let length: String = PAGE.to_be_bytes().iter().map(|byte| format!("\\{byte:03o}")).collect();
    let load = format!(
        "timeout 4 bash -c \"exec 3<>/dev/tcp/{SERVER_V4}/{BULK}; printf '{length}' >&3; \
         head -c {PAGE} /dev/zero >&3; head -c {PAGE} <&3\""
    );
    NAMES
        .iter()
        .flat_map(|name| {
            let ask = format!("dig +short +tries=1 +time=2 @{LAN_V4} {name} A");
            [host.namespace.shown(&ask), host.namespace.shown(&load)]
        })
        .chain([fetch(host, true)])
        .collect()
}

/// The commands of a host, again and again until it is dropped.
pub(super) struct Traffic {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    fn start(commands: Vec<String>) -> Self {
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            for command in commands.iter().cycle() {
                let mut shell = Command::new("sh");
                shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                // A failed command is tried again, as hosts do.
                let _ = shell.status();
                if !matches!(ended.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout)) {
                    return;
                }
            }
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}
