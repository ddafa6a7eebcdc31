//! Temperature sensor of the processor that only a daemon under test has.
//!
//! The daemon runs in a mount namespace whose `/sys/class/hwmon` is a folder of the test. All else in `/sys` is the host's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::daemon::{Daemon, find_program};

/// Sensor of a daemon.
#[derive(Debug)]
pub struct TemperatureSensor {
    input: PathBuf,
}

impl TemperatureSensor {
    /// Installs the sensor in a daemon, effective from its next start.
    pub fn install(daemon: &mut Daemon, degrees: f64) -> Result<Self> {
        let folder = daemon.state_directory().with_file_name("sensor");
        let chip = folder.join("hwmon/hwmon0");
        fs::create_dir_all(&chip).context("folder of the sensor")?;
        fs::create_dir(folder.join("sys")).context("mount point")?;
        fs::write(chip.join("name"), "coretemp\n").context("name of the sensor")?;
        let sensor = Self { input: chip.join("temp1_input") };
        sensor.set(degrees)?;
        let script = folder.join("gatewayd");
        let text = format!(
            "#!/bin/sh\nexec unshare --mount --propagation private sh -ec '\n\
             mount --rbind /sys {folder}/sys\n\
             mount -t tmpfs tmpfs /sys/class\n\
             for entry in {folder}/sys/class/*; do ln -s $entry /sys/class/; done\n\
             rm -f /sys/class/hwmon\n\
             ln -s {folder}/hwmon /sys/class/hwmon\n\
             exec {program} \"$@\"' sh \"$@\"\n",
            folder = folder.display(),
            program = find_program()?.display(),
        );
        fs::write(&script, text).context("script")?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).context("script")?;
        daemon.use_program(script);
        Ok(sensor)
    }

    pub fn set(&self, degrees: f64) -> Result<()> {
        // A reader sees the old value or the new one.
        let new = self.input.with_extension("new");
        fs::write(&new, format!("{:.0}\n", degrees * 1000.0)).context("temperature")?;
        fs::rename(&new, &self.input).context("temperature")
    }
}
