//! The kernel dataplane: loads, pins and attaches the programs, and activates plans.
//!
//! This module makes no decisions about packets. Programs, links and maps are pinned, so they outlive this process. A
//! restart adopts them and replaces the programs in place.

mod attach;
mod clsact;
mod counters;
mod dns_cache;
mod dns_filter;
mod dns_sources;
mod events;
mod fast_path;
mod fast_traffic;
mod filters;
mod flow_clock;
mod flows;
mod fqdn;
mod grace;
mod hello_segments;
mod hook;
mod inject;
mod link_frames;
mod load;
mod mapped;
mod maps;
mod packet_counts;
mod pins;
mod programs;
mod quic;
mod slot;
mod swap;
mod syscall;
mod table_use;
mod tables;
mod tail_calls;
mod taps;
mod verify;
mod versions;
mod xdp;

use std::path::{Path, PathBuf};

use aya::programs::ProgramError;

pub use attach::{AttachMode, AttachmentChanges};
pub use dns_cache::{Answers, KernelDnsCache};
pub use dns_sources::DnsSources;
pub use events::Event;
pub use fast_path::{EpochChange, FastPath, FastPathStats};
pub use fast_traffic::FastTraffic;
pub use grace::{GraceMode, grace_mode};
pub use maps::Entries;
pub use packet_counts::Counters;
pub use programs::Programs;
pub use slot::PlanSlot;
pub use swap::Swap;
pub use table_use::TableUse;
pub use taps::InterfaceTap;
pub use versions::is_plan_live;
pub use xdp::{Xdp, XdpState, XdpStats};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make {} the pin directory", .path.display())]
    PinDirectory {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot mount the BPF file system on {}", .path.display())]
    Mount {
        path: PathBuf,
        #[source]
        source: rustix::io::Errno,
    },
    #[error("cannot decompress the kernel programs")]
    Decompress(#[source] std::io::Error),
    #[error("cannot load the kernel programs")]
    Load(#[source] Box<aya::EbpfError>),
    #[error("the kernel refused program {name}")]
    Program {
        name: &'static str,
        #[source]
        source: Box<ProgramError>,
    },
    #[error("the object has no {what} {name}")]
    Missing { what: &'static str, name: String },
    #[error("cannot {operation} map {map}")]
    Map {
        operation: &'static str,
        map: &'static str,
        #[source]
        source: Box<aya::maps::MapError>,
    },
    #[error("the plan has {count} policies, more than the {limit} the dataplane holds")]
    TooManyPolicies { count: usize, limit: u32 },
    #[error("cannot attach {program} to {interface}")]
    Attach {
        program: &'static str,
        interface: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("cannot send a packet by interface {interface}")]
    Inject {
        interface: u32,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Full(#[from] gateway_core::fqdn_cache::NoFreeEntry),
    #[error("getrandom failed")]
    Random(#[source] std::io::Error),
    #[error("cannot read the names of interfaces")]
    Uplinks(#[source] std::io::Error),
    #[error("cannot wait for packets in flight")]
    Grace(#[source] std::io::Error),
}

/// Mounts the BPF file system for the pin directory, unless it is already mounted.
pub fn mount_bpffs(pin_dir: &Path) -> Result<(), Error> {
    const BPF_FS_MAGIC: rustix::fs::FsWord = 0xcafe_4a11;
    let root = Path::new("/sys/fs/bpf");
    if !pin_dir.starts_with(root) {
        return Ok(());
    }
    let is_bpffs = rustix::fs::statfs(root).is_ok_and(|fs| fs.f_type == BPF_FS_MAGIC);
    if is_bpffs {
        return Ok(());
    }
    rustix::mount::mount("bpf", root, "bpf", rustix::mount::MountFlags::empty(), None)
        .map_err(|source| Error::Mount { path: root.to_owned(), source })
}

/// Makes a folder of pins.
fn make_folder(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|source| Error::PinDirectory { path: path.to_owned(), source })
}
