//! CPU cores of the machine: affinity and utilisation.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Highest priority that leaves time for the kernel's own threads (setpriority(2)).
pub const FIRST: libc::c_int = -20;

pub fn number() -> Result<usize> {
    Ok(std::thread::available_parallelism().context("cores of this machine")?.get())
}

/// Restricts the calling thread and its children to these cores, with the highest priority. May be called between fork
/// and exec.
pub fn keep_to(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)?;
    // SAFETY: three integers; 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, FIRST) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Guard that saves the affinity and the priority of the calling thread and restores them on drop. A measurement that
/// pins the thread must not leave the next one on its core.
#[derive(Debug)]
#[must_use = "the cores are given back when it is dropped"]
pub struct AffinityGuard {
    cores: CpuSet,
    priority: libc::c_int,
}

impl AffinityGuard {
    pub fn new() -> io::Result<AffinityGuard> {
        // SAFETY: two integers; 0 is the calling thread. -1 is a priority as well as a failure, which 0 cannot cause.
        let priority = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        Ok(AffinityGuard { cores: sched_getaffinity(Pid::from_raw(0))?, priority })
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        if let Err(error) = sched_setaffinity(Pid::from_raw(0), &self.cores) {
            eprintln!("cannot give the thread its cores back: {error}");
        }
        // SAFETY: three integers; 0 is the calling thread.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.priority) } != 0 {
            eprintln!("cannot give the thread its priority back: {}", io::Error::last_os_error());
        }
    }
}

/// Returns the idle time of a core since boot. The kernel measures idle time by its clock, not by sampling, and
/// excludes interrupts.
pub fn idle(core: usize) -> Result<Duration> {
    let table = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let name = format!("cpu{core}");
    let row = table.lines().find_map(|line| line.strip_prefix(&name)?.strip_prefix(' '));
    let row = row.with_context(|| format!("no {name} in /proc/stat"))?;
    let ticks: Vec<u64> = row.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    ensure!(ticks.len() >= 8, "/proc/stat has too few fields: {row}");
    ticks_to_time(ticks[3] + ticks[4] + ticks[7])
}

fn ticks_to_time(ticks: u64) -> Result<Duration> {
    // SAFETY: an integer in, an integer out.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let per_second = u32::try_from(per_second).ok().filter(|rate| *rate > 0).context("ticks per second")?;
    Ok(Duration::from_secs(ticks) / per_second)
}

/// Returns the processor time of the threads of a process.
pub fn used_by(pid: u32) -> Result<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).context("threads of a process")?;
    let mut nanoseconds = 0u64;
    for thread in threads {
        // A thread may end meanwhile.
        let Ok(text) = std::fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        let first = text.split_whitespace().next().context("schedstat")?;
        nanoseconds += first.parse::<u64>().context("schedstat")?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Returns the resident memory of a process in bytes.
pub fn resident(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("status of a process")?;
    let row = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes = row.trim().trim_end_matches("kB").trim();
    Ok(kilobytes.parse::<u64>().context("VmRSS")? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_guard_gives_the_cores_back() {
        let allowed = || -> Vec<usize> {
            let set = sched_getaffinity(Pid::from_raw(0)).expect("the cores of this thread");
            (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
        };
        let before = allowed();
        {
            let _guard = AffinityGuard::new().expect("a guard");
            let mut one = CpuSet::new();
            one.set(before[0]).expect("a core");
            sched_setaffinity(Pid::from_raw(0), &one).expect("pinned");
            assert_eq!(number().expect("cores"), 1);
        }
        assert_eq!(allowed(), before);
        assert_eq!(number().expect("cores"), before.len());
    }

    #[test]
    fn a_process_has_used_time_and_memory_and_a_core_was_idle_for_less_than_ever() {
        let own = std::process::id();
        let before = used_by(own).expect("time");
        let mut sum = 0u64;
        while used_by(own).expect("time") == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(resident(own).expect("memory") > 100_000);
        let uptime = std::fs::read_to_string("/proc/uptime").expect("uptime");
        let uptime: f64 = uptime.split(' ').next().and_then(|text| text.parse().ok()).expect("uptime");
        assert!(idle(0).expect("idle").as_secs_f64() < uptime + 60.0);
        assert!(number().expect("cores") > 0);
    }
}
