//! Configuration of hostapd: one key and its value a line.
//!
//! hostapd has no quoting, so no value may hold the end of a line. Names of networks are written in hexadecimal digits.
//! A passphrase has printable characters only, which the settings check; one with another character makes no file. It is
//! `wpa_passphrase` for SAE, too, because `sae_password` gives a meaning to `|`.

use std::fmt::Write as _;

use gateway_model::Secret;
use gateway_model::id::IfName;
use gateway_model::settings::bootstrap::{AccessPoint, Band, WirelessSecurity};

use crate::hexadecimal::hex;

/// Value that the configuration of hostapd cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} has a character that the configuration of hostapd cannot hold, or cannot be read")]
pub struct Unwritable(&'static str);

/// Returns the configuration for an access point whose settings were checked. `bridge` is the bridge that it is a port of;
/// `folder` is that of the control sockets.
pub fn config_file(ap: &AccessPoint, bridge: Option<&IfName>, folder: &str) -> Result<Secret, Unwritable> {
    let mut file = ConfigFile(String::with_capacity(CAPACITY));
    file.line("interface", ap.interface.as_str())?;
    if let Some(bridge) = bridge {
        file.line("bridge", bridge.as_str())?;
    }
    file.line("driver", "nl80211")?;
    file.line("ctrl_interface", folder)?;
    // The log goes to the standard output, without debug messages.
    file.line("logger_syslog", "0")?;
    file.line("logger_stdout", "-1")?;
    file.line("logger_stdout_level", "2")?;
    file.radio(ap)?;
    if ap.guest_network().is_some() {
        file.line("use_driver_iface_addr", "1")?;
    }
    file.network(&ap.ssid, &ap.passphrase, ap.security, ap.isolation)?;
    if let Some(guest) = ap.guest_network() {
        file.line("bss", guest.interface.as_str())?;
        file.line("ctrl_interface", folder)?;
        file.network(&guest.ssid, &guest.passphrase, ap.security, true)?;
    }
    Ok(Secret::new(file.0))
}

/// More than any file has, so that no copy of a passphrase is left behind.
const CAPACITY: usize = 4096;

struct ConfigFile(String);

impl ConfigFile {
    fn line(&mut self, key: &'static str, value: &str) -> Result<(), Unwritable> {
        if value.is_empty() || !value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return Err(Unwritable(key));
        }
        writeln!(self.0, "{key}={value}").map_err(|_| Unwritable(key))
    }

    fn radio(&mut self, ap: &AccessPoint) -> Result<(), Unwritable> {
        self.line("country_code", ap.country.as_deref().unwrap_or_default())?;
        self.line("ieee80211d", "1")?;
        let channel = ap.used_channel();
        self.line("channel", &channel.to_string())?;
        self.line("ieee80211n", "1")?;
        self.line("wmm_enabled", "1")?;
        match ap.band {
            Band::Low => self.line("hw_mode", "g"),
            Band::High => {
                self.line("hw_mode", "a")?;
                // Radar detection and transmit power control, which some channels need.
                self.line("ieee80211h", "1")?;
                self.line("ieee80211ac", "1")?;
                self.width(ap)
            }
        }
    }

    fn width(&mut self, ap: &AccessPoint) -> Result<(), Unwritable> {
        let Some((block, index)) = ap.channel_block().filter(|_| ap.width_mhz.0 > 20) else { return Ok(()) };
        self.line("ht_capab", if index % 2 == 0 { "[HT40+]" } else { "[HT40-]" })?;
        if ap.width_mhz.0 == 80 {
            self.line("vht_oper_chwidth", "1")?;
            self.line("vht_oper_centr_freq_seg0_idx", &(block + 6).to_string())?;
        }
        Ok(())
    }

    fn network(
        &mut self,
        ssid: &str,
        passphrase: &Secret,
        security: WirelessSecurity,
        isolation: bool,
    ) -> Result<(), Unwritable> {
        self.line("ssid2", &hex(ssid.as_bytes()))?;
        self.line("ap_isolate", if isolation { "1" } else { "0" })?;
        self.line("auth_algs", "1")?;
        self.line("wpa", "2")?;
        self.line("rsn_pairwise", "CCMP")?;
        let (suites, protected_frames) = match security {
            WirelessSecurity::Wpa2 => ("WPA-PSK", "1"),
            WirelessSecurity::Wpa3 => ("SAE", "2"),
            WirelessSecurity::Both => ("WPA-PSK SAE", "1"),
        };
        self.line("wpa_key_mgmt", suites)?;
        self.line("ieee80211w", protected_frames)?;
        if security != WirelessSecurity::Wpa2 {
            self.line("sae_require_mfp", "1")?;
            // Hunting-and-pecking and hash-to-element.
            self.line("sae_pwe", "2")?;
        }
        self.line("wpa_passphrase", passphrase.expose())
    }
}
