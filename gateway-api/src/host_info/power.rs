//! Batteries and mains (Documentation/ABI/testing/sysfs-class-power of Linux).

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::attribute::attribute;

/// A supply of power that the kernel knows: a battery, the mains, a UPS, USB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct PowerSupply {
    pub name: String,
    /// Word of the kernel: `Battery`, `Mains`, `UPS`, `USB`, ...
    pub kind: String,
    /// True if it supplies power; null for a battery.
    pub online: Option<bool>,
    /// Charge of a battery in percent; null if it does not report one.
    pub percent: Option<u8>,
    /// Word of the kernel about a battery: `Charging`, `Discharging`, `Full`, ...
    pub state: Option<String>,
}

/// Reads the supplies of a folder like `/sys/class/power_supply`, by name. Those of devices, such as a mouse, are left out.
pub(super) fn supplies(folder: &Path) -> Vec<PowerSupply> {
    let found = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut supplies: Vec<PowerSupply> = found
        .filter(|path| attribute(path.join("scope")).as_deref() != Some("Device"))
        .filter_map(|path| {
            Some(PowerSupply {
                name: path.file_name()?.to_str()?.to_owned(),
                kind: attribute(path.join("type"))?,
                online: attribute(path.join("online")).map(|text| text != "0"),
                percent: attribute(path.join("capacity")).and_then(|text| text.parse().ok()),
                state: attribute(path.join("status")),
            })
        })
        .collect();
    supplies.sort_by(|a, b| a.name.cmp(&b.name));
    supplies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batteries_and_mains_are_read_and_those_of_devices_are_not() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let supply = |name: &str, files: &[(&str, &str)]| {
            fs::create_dir_all(folder.path().join(name)).expect("folder");
            for (file, text) in files {
                fs::write(folder.path().join(name).join(file), text).expect("file");
            }
        };
        supply("BAT0", &[("type", "Battery\n"), ("capacity", "87\n"), ("status", "Discharging\n")]);
        supply("AC", &[("type", "Mains\n"), ("online", "0\n")]);
        supply("hid-mouse", &[("type", "Battery\n"), ("scope", "Device\n"), ("capacity", "3\n")]);
        let found = supplies(folder.path());
        let of = |index: usize| (found[index].name.as_str(), found[index].online, found[index].percent);
        assert_eq!((found.len(), of(0), of(1)), (2, ("AC", Some(false), None), ("BAT0", None, Some(87))));
        assert_eq!(found[1].state.as_deref(), Some("Discharging"));
    }
}
