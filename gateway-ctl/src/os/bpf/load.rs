//! Loader of the object over pinned maps: the first load creates and pins them, later loads adopt them.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use aya::EbpfLoader;
use flate2::bufread::GzDecoder;
use gateway_common::abi::ABI_VERSION;
use gateway_common::maps::NAMES;
use gateway_core::fqdn_cache::FqdnCache;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use super::fast_path::FastPath;
use super::fast_traffic::FastTraffic;
use super::maps::Maps;
use super::pins::map_ids;
use super::programs::{
    ANSWER, FILTER, GUARD, HOST_TAP, INGRESS, INJECT, LAN_EGRESS, Programs, TAP, WAN_INGRESS,
};
use super::tables::Written;
use super::xdp::{self, Xdp};
use super::{Error, make_folder, mount_bpffs, verify, versions};

/// The BPF object file, committed in `gateway-ebpf/object` and built by `cargo xtask ebpf`, compressed by gzip.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gateway.bpf.o.gz"));

impl Programs {
    /// Loads the programs, but those at XDP ([`load_xdp`](Self::load_xdp)). Maps are pinned below `pin_dir` in a folder of their ABI version.
    ///
    /// Loads below one folder take turns, also those of two processes. Otherwise the later one would find maps that are
    /// half pinned, and fail.
    pub fn load(pin_dir: &Path) -> Result<Programs, Error> {
        mount_bpffs(pin_dir)?;
        let root = versions::folder(pin_dir, ABI_VERSION);
        let (maps_dir, links) = (root.join("maps"), root.join("links"));
        make_folder(&maps_dir)?;
        make_folder(&links)?;
        let _turn = take_turn(&root)?;
        let mut loader = EbpfLoader::new();
        for name in NAMES {
            loader.map_pin_path(name, maps_dir.join(name));
        }
        let mut object = Vec::new();
        GzDecoder::new(OBJECT).read_to_end(&mut object).map_err(Error::Decompress)?;
        let mut ebpf = loader.load(&object).map_err(|e| Error::Load(Box::new(e)))?;
        let mut verified = verify::load(&mut ebpf, |program| !verify::is_xdp(program), INGRESS);
        let others = [INGRESS, LAN_EGRESS, GUARD, WAN_INGRESS, ANSWER, INJECT, TAP, HOST_TAP];
        for name in others.into_iter().chain(FILTER) {
            verified.take(name)?;
        }
        let maps = Maps::take(&mut ebpf)?;
        let xdp = Xdp::take(&mut ebpf, &links)?;
        let fast_path = FastPath::take(&mut ebpf, xdp.counts()?)?;
        let fast_traffic = FastTraffic::take(&mut ebpf, fast_path.tables()?)?;
        let (learned, map_ids) = (FqdnCache::default(), map_ids(&maps_dir));
        let written = Written::default();
        let lowest_generation = 0;
        let mut programs = Programs {
            ebpf,
            maps,
            fast_path,
            fast_traffic,
            xdp,
            learned,
            links,
            root,
            map_ids,
            written,
            lowest_generation,
        };
        programs.restore_learned()?;
        Ok(programs)
    }

    /// Loads the programs at XDP unless they are loaded. Their users get the error of a kernel that refuses them.
    pub fn load_xdp(&mut self) {
        if !self.xdp.is_loaded() {
            let mut verified = verify::load(&mut self.ebpf, verify::is_xdp, xdp::FORWARD);
            self.xdp.set_loaded(&mut self.ebpf, &mut verified);
        }
    }
}

/// Waits for other loads below a folder. The next one begins when the value is dropped.
fn take_turn(folder: &Path) -> Result<OwnedFd, Error> {
    let failed = |source: Errno| Error::PinDirectory { path: folder.to_owned(), source: source.into() };
    let lock = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let lock = lock.map_err(failed)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(failed)?;
    Ok(lock)
}
