//! Rights that the child gives up: first the network, then everything that reading rings and writing records does not
//! need. A process that calls anything else is killed.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io;

use libc::{c_int, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule,
};

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Takes away sockets of the internet and of this host, so that a name in a filter is not looked up.
pub(super) fn leave_network() -> io::Result<()> {
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX];
    let rules = families
        .map(|family| rule(&[condition(0, Op::Eq, family)?]))
        .into_iter()
        .collect::<io::Result<_>>()?;
    let denied = SeccompAction::Errno(libc::EACCES.cast_unsigned());
    install(Rules::from([(libc::SYS_socket, rules)]), SeccompAction::Allow, denied)
}

/// Takes away all capabilities and all system calls except those that the loop of the child needs.
pub(super) fn enter() -> io::Result<()> {
    drop_capabilities()?;
    let mut rules = Rules::new();
    for call in [
        libc::SYS_ppoll,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_sched_yield,
        libc::SYS_sigaltstack,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigprocmask,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ] {
        rules.insert(call, Vec::new());
    }
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_poll, Vec::new());
    rules.insert(libc::SYS_read, vec![rule(&[condition(0, Op::Eq, libc::STDIN_FILENO)?])?]);
    // Not to the packet sockets: that would send.
    let written = [libc::STDOUT_FILENO, libc::STDERR_FILENO];
    let written = written.map(|file| rule(&[condition(0, Op::Eq, file)?]));
    rules.insert(libc::SYS_write, written.into_iter().collect::<io::Result<_>>()?);
    rules.insert(
        libc::SYS_getsockopt,
        vec![rule(&[
            condition(1, Op::Eq, libc::SOL_PACKET)?,
            condition(2, Op::Eq, libc::PACKET_STATISTICS)?,
        ])?],
    );
    let no_code = Op::MaskedEq(u64::from(libc::PROT_EXEC.cast_unsigned()));
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![rule(&[condition(2, no_code.clone(), 0)?])?]);
    }
    install(rules, SeccompAction::KillProcess, SeccompAction::Allow)
}

fn condition(argument: u8, operator: Op, value: c_int) -> io::Result<SeccompCondition> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(argument, Length::Dword, operator, value).map_err(io::Error::other)
}

fn rule(conditions: &[SeccompCondition]) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions.to_vec()).map_err(io::Error::other)
}

fn install(rules: Rules, otherwise: SeccompAction, matching: SeccompAction) -> io::Result<()> {
    let architecture = ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, otherwise, matching, architecture).map_err(io::Error::other)?;
    let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

/// Structures of capset(2), version 3.
#[repr(C)]
struct Header {
    version: u32,
    process: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn drop_capabilities() -> io::Result<()> {
    let header = Header { version: 0x2008_0522, process: 0 };
    let sets = [Sets { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: the pointers are to the structures of this version.
    match unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
