//! Wall clock of a daemon that a test sets: the kernel's clock plus an offset, and a source of time that vouches for it or
//! does not.
//!
//! The daemon gets it by a preloaded library, so that no other process of the host sees it. Its clock since boot stays the
//! kernel's.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::daemon::Daemon;

/// Clock whose state is in a file that the library has mapped.
#[derive(Debug)]
pub struct WallClock {
    file: fs::File,
}

const LIBRARY: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static volatile struct { long long offset, synchronised; } *state;

__attribute__((constructor)) static void map_state(void) {
    int file = open(getenv("CLOCK_STATE"), O_RDONLY | O_CLOEXEC);
    void *at = mmap(0, sizeof *state, PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || at == MAP_FAILED) abort();
    state = at;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && state) time->tv_sec += state->offset;
    return result;
}

int adjtimex(struct timex *timex) {
    int vouches = state && state->synchronised;
    timex->status = vouches ? 0 : STA_UNSYNC;
    return vouches ? TIME_OK : TIME_ERROR;
}
"#;

impl WallClock {
    /// Installs the clock in a daemon, effective from its next start. At first it is the kernel's, and no source of time
    /// vouches for it.
    pub fn install(daemon: &mut Daemon) -> Result<WallClock> {
        let folder = daemon.state_directory().with_file_name("clock");
        fs::create_dir(&folder).context("folder of the clock")?;
        let name = |name: &str| -> PathBuf { folder.join(name) };
        let (source, library, state) = (name("clock.c"), name("clock.so"), name("state"));
        fs::write(&source, LIBRARY).context("source of the clock")?;
        let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).output();
        let made = made.context("a C compiler")?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let file = fs::OpenOptions::new().create_new(true).write(true).open(&state).context("its state")?;
        let clock = WallClock { file };
        clock.set(0)?;
        clock.synchronise(false)?;
        daemon.set_environment("CLOCK_STATE", state);
        daemon.set_environment("LD_PRELOAD", library);
        Ok(clock)
    }

    /// Sets the offset from the kernel's clock.
    pub fn set(&self, seconds: i64) -> Result<()> {
        // Written in place: the daemon has mapped the file.
        self.file.write_all_at(&seconds.to_ne_bytes(), 0).context("offset of the clock")
    }

    /// Lets a source of time vouch for the clock, or none.
    pub fn synchronise(&self, is_synchronised: bool) -> Result<()> {
        let value = i64::from(is_synchronised).to_ne_bytes();
        self.file.write_all_at(&value, 8).context("state of the clock")
    }
}
