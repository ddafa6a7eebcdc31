//! The adapter, and the devices around it. Names and services come from devices, which may lie.

use gateway_model::id::MacAddr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a name that is kept, in characters. The protocol allows 248 bytes.
const MAX_NAME: usize = 64;
/// Maximum number of services of a device.
const MAX_SERVICES: usize = 64;
/// End of the UUIDs of services that the Bluetooth SIG has numbered.
const BASE_UUID: &str = "-0000-1000-8000-00805f9b34fb";

/// Adapter of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    pub address: MacAddr,
    pub name: String,
    pub powered: bool,
    pub discoverable: bool,
    pub pairable: bool,
    pub discovering: bool,
}

/// Bluetooth device around the adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RemoteDevice {
    pub mac: MacAddr,
    /// The address is one that the device changes, for privacy.
    pub random_address: bool,
    /// Name that the device gives itself; null without one.
    pub name: Option<String>,
    pub paired: bool,
    pub trusted: bool,
    pub connected: bool,
    /// Strength of the received signal in dBm; null if no scan has heard the device.
    pub rssi: Option<i16>,
    /// Kind that the device gives itself; null if it says none.
    pub class: Option<DeviceClass>,
    /// Services that the device offers, by name where the name is known.
    pub services: Vec<String>,
    /// The gateway has joined the network of the device.
    #[serde(skip)]
    pub network: Option<JoinedNetwork>,
}

/// Network of a device that this host has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedNetwork {
    /// Name that the interface had at first.
    pub interface: String,
}

/// Major class of a device (Bluetooth Assigned Numbers, section 2.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    Computer,
    Phone,
    NetworkAccessPoint,
    AudioVideo,
    Peripheral,
    Imaging,
    Wearable,
    Toy,
    Health,
    Uncategorized,
}

impl DeviceClass {
    /// Returns the major class of a class of device. `None`: the device says none.
    pub fn of(class: u32) -> Option<DeviceClass> {
        Some(match class >> 8 & 0x1f {
            1 => DeviceClass::Computer,
            2 => DeviceClass::Phone,
            3 => DeviceClass::NetworkAccessPoint,
            4 => DeviceClass::AudioVideo,
            5 => DeviceClass::Peripheral,
            6 => DeviceClass::Imaging,
            7 => DeviceClass::Wearable,
            8 => DeviceClass::Toy,
            9 => DeviceClass::Health,
            0 => return None,
            _ => DeviceClass::Uncategorized,
        })
    }
}

/// Returns a name as it is kept: without control and format characters, and not too long. `None` if nothing remains.
pub fn shown_name(name: &str) -> Option<String> {
    let is_shown = |letter: &char| !letter.is_control() && !is_format(*letter);
    let shown: String = name.trim().chars().filter(is_shown).take(MAX_NAME).collect();
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.to_owned())
}

/// Reports whether a character changes how others are drawn, or is not drawn: those that imitate names use.
fn is_format(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns the names of services by their UUIDs, without doubles. UUIDs without a known name stay.
pub fn service_names(uuids: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for uuid in uuids.iter().take(MAX_SERVICES) {
        let Some(name) = service_name(&uuid.to_ascii_lowercase()) else { continue };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the name of a service. `None` if the text is no UUID.
fn service_name(uuid: &str) -> Option<String> {
    let is_uuid = uuid.len() == 36 && uuid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if !is_uuid {
        return None;
    }
    let number = uuid.strip_suffix(BASE_UUID).and_then(|number| u32::from_str_radix(number, 16).ok());
    let known = match number {
        Some(0x1101) => "serial_port",
        Some(0x1103) => "dial_up_networking",
        Some(0x1105) => "object_push",
        Some(0x1106) => "file_transfer",
        Some(0x1108 | 0x1112) => "headset",
        Some(0x110a) => "audio_source",
        Some(0x110b) => "audio_sink",
        Some(0x110c | 0x110e | 0x110f) => "remote_control",
        Some(0x1115) => "pan_user",
        Some(0x1116) => "network_access_point",
        Some(0x1117) => "group_network",
        Some(0x111e | 0x111f) => "hands_free",
        Some(0x1124 | 0x1812) => "input_device",
        Some(0x112d) => "sim_access",
        Some(0x112f | 0x1130) => "phone_book",
        Some(0x1132..=0x1134) => "messages",
        Some(0x1200) => "device_information",
        Some(0x1800) => "generic_access",
        Some(0x1801) => "generic_attribute",
        Some(0x180f) => "battery",
        _ => uuid,
    };
    Some(known.to_owned())
}
