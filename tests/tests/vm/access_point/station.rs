//! Station of a wireless network: a radio in a namespace of its own, with `wpa_supplicant` and a DHCP client.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;

/// Timeout for an emulated machine, which is slow.
pub(super) const SLOW: Duration = Duration::from_secs(90);

/// Way in which a station proves that it knows the passphrase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Security {
    Wpa2,
    Wpa3,
}

pub(super) struct Station {
    pub namespace: Namespace,
    interface: String,
    folder: tempfile::TempDir,
    supplicant: Option<Process>,
}

/// Moves a radio into a namespace, with its interface.
pub(super) fn move_radio(number: u8, namespace: &Namespace) {
    let status = Command::new("iw")
        .args(["phy", &format!("phy{number}"), "set", "netns", "name", namespace.name()])
        .status()
        .expect("iw");
    assert!(status.success(), "the radio {number} cannot be moved");
}

impl Station {
    /// Makes a station of a radio.
    pub(super) fn new(prefix: &Prefix, radio: u8) -> Station {
        let namespace = Namespace::create(prefix, &format!("station{radio}")).expect("a namespace");
        move_radio(radio, &namespace);
        let folder = tempfile::tempdir().expect("a folder");
        let script = "#!/bin/sh\ncase \"$1\" in bound|renew)\nip address flush dev $interface\n\
            ip address add $ip/24 dev $interface\nip route replace default via $router\nesac\n";
        let file = folder.path().join("lease");
        fs::write(&file, script).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
        Station { namespace, interface: format!("wlan{radio}"), folder, supplicant: None }
    }

    pub(super) fn mac(&self) -> String {
        let shown =
            self.namespace.run("ip", &["-o", "link", "show", "dev", &self.interface]).expect("the link");
        let mac = shown.split_whitespace().skip_while(|word| *word != "link/ether").nth(1);
        mac.expect("a MAC address").to_owned()
    }

    /// Starts to join a network.
    pub(super) fn begin(&mut self, ssid: &str, passphrase: &str, security: Security) {
        self.leave();
        let of_security = match security {
            Security::Wpa2 => "key_mgmt=WPA-PSK",
            Security::Wpa3 => "key_mgmt=SAE\nieee80211w=2",
        };
        let at = |file: &str| self.folder.path().join(file);
        let config = format!(
            "ctrl_interface={}\nnetwork={{\nssid=\"{ssid}\"\npsk=\"{passphrase}\"\n{of_security}\n}}\n",
            at("control").display()
        );
        fs::write(at("config"), config).expect("a configuration");
        let log = fs::File::create(at("log")).expect("a log");
        let mut command = self.namespace.command("wpa_supplicant");
        command.arg("-i").arg(&self.interface).arg("-c").arg(at("config"));
        command.stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
        self.supplicant = Some(self.namespace.spawn(command).expect("wpa_supplicant"));
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(super) fn has_joined(&self) -> bool {
        let folder = self.folder.path().join("control").display().to_string();
        let status = self.namespace.run("wpa_cli", &["-p", &folder, "-i", &self.interface, "status"]);
        status.is_ok_and(|status| status.contains("wpa_state=COMPLETED"))
    }

    /// Joins a network and leases an address, which is returned.
    pub(super) fn join(&mut self, ssid: &str, passphrase: &str, security: Security) -> IpAddr {
        self.begin(ssid, passphrase, security);
        wait_ok(SLOW, &format!("the station to join {ssid}"), || {
            anyhow::ensure!(self.has_joined(), "{}", self.log());
            Ok(())
        })
        .expect("joined");
        self.lease()
    }

    /// Leases an address.
    pub(super) fn lease(&self) -> IpAddr {
        let script = self.folder.path().join("lease").display().to_string();
        let client =
            ["udhcpc", "-n", "-q", "-f", "-i", &self.interface, "-t", "20", "-T", "2", "-s", &script];
        self.namespace.run("busybox", &client).expect("a lease");
        let shown =
            self.namespace.run("ip", &["-4", "-o", "address", "show", "dev", &self.interface]).expect("ip");
        let address = shown.split_whitespace().find_map(|word| word.split_once('/')?.0.parse().ok());
        address.expect("an address")
    }

    /// Reports whether a host answers.
    pub(super) fn reaches(&self, address: &str) -> bool {
        self.namespace.run("busybox", &["ping", "-c", "2", "-W", "3", address]).is_ok()
    }

    pub(super) fn leave(&mut self) {
        if let Some(mut supplicant) = self.supplicant.take() {
            supplicant.terminate(SLOW).expect("it says goodbye");
        }
    }
}
