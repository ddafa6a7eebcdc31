//! Temperatures (Documentation/hwmon/sysfs-interface.rst and Documentation/driver-api/thermal/sysfs-api.rst of Linux).

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::attribute::attribute;

/// Temperature that a sensor measures.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Sensor {
    /// Chip or thermal zone, with the label of the sensor where it has one: `coretemp Core 0`.
    pub name: String,
    pub celsius: f64,
}

/// Reads all sensors of a folder like `/sys/class`, those of chips first. A sensor that cannot be read is left out.
pub(super) fn sensors(class: &Path) -> Vec<Sensor> {
    let of_chips = entries(&class.join("hwmon")).into_iter().flat_map(|chip| {
        let name = attribute(chip.join("name")).unwrap_or_else(|| "unknown".to_owned());
        let inputs = entries(&chip).into_iter().filter_map(|path| {
            let file = path.file_name()?.to_str()?.to_owned();
            Some((file.strip_prefix("temp")?.strip_suffix("_input")?.to_owned(), path))
        });
        let read = inputs.filter_map(|(number, path)| {
            let label = attribute(chip.join(format!("temp{number}_label")));
            let celsius = degrees(&path)?;
            Some(Sensor {
                name: label.map_or_else(|| name.clone(), |label| format!("{name} {label}")),
                celsius,
            })
        });
        read.collect::<Vec<_>>()
    });
    let of_zones = entries(&class.join("thermal")).into_iter().filter_map(|zone| {
        let celsius = degrees(&zone.join("temp"))?;
        Some(Sensor {
            name: attribute(zone.join("type")).unwrap_or_else(|| "thermal zone".to_owned()),
            celsius,
        })
    });
    of_chips.chain(of_zones).collect()
}

/// Returns the temperature of the processor's own sensor, else of the first thermal zone.
pub(crate) fn cpu_temperature(class: &Path) -> Option<f64> {
    for sensor in entries(&class.join("hwmon")) {
        let name = attribute(sensor.join("name")).unwrap_or_default();
        if ["coretemp", "k10temp", "zenpower", "cpu_thermal"].contains(&name.as_str())
            && let Some(value) = degrees(&sensor.join("temp1_input"))
        {
            return Some(value);
        }
    }
    entries(&class.join("thermal"))
        .into_iter()
        .filter(|zone| zone.join("temp").exists())
        .find_map(|zone| degrees(&zone.join("temp")))
}

/// Reads a file in thousandths of a degree.
fn degrees(path: &Path) -> Option<f64> {
    attribute(path)?.parse::<f64>().ok().map(|value| value / 1000.0)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = found.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_sensor_has_no_temperature() {
        let folder = tempfile::tempdir().expect("temporary folder");
        assert_eq!(cpu_temperature(folder.path()), None);
        let zone = folder.path().join("thermal/thermal_zone0");
        fs::create_dir_all(&zone).expect("folder");
        fs::write(zone.join("temp"), "41500\n").expect("file");
        assert_eq!(cpu_temperature(folder.path()), Some(41.5));
    }

    #[test]
    fn each_sensor_has_the_name_of_its_chip_and_its_label() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let chip = folder.path().join("hwmon/hwmon0");
        fs::create_dir_all(&chip).expect("folder");
        for (file, text) in
            [("name", "nvme"), ("temp1_input", "38850"), ("temp1_label", "Composite"), ("temp2_input", "x")]
        {
            fs::write(chip.join(file), text).expect("file");
        }
        assert_eq!(sensors(folder.path()), [Sensor { name: "nvme Composite".to_owned(), celsius: 38.85 }]);
    }
}
