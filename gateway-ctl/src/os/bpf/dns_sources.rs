//! Notes of the ingress program about packets to the resolver, read in place: without a system call for each query.
//!
//! Decision 0148 says why.

use gateway_common::maps as spec;
use gateway_common::wire::{DnsSource, DnsSourceKey};

use super::mapped::Mapped;
use super::maps::{ArrayMap, open};
use super::{Error, Programs};

/// Notes of the ingress program, mapped into memory.
#[derive(Debug)]
pub struct DnsSources(Mapped);

impl Programs {
    /// Returns the notes of the ingress program. Callable once.
    pub fn dns_sources(&mut self) -> Result<DnsSources, Error> {
        let notes: ArrayMap<spec::DnsSources> = ArrayMap(open::<spec::DnsSources, _>(&mut self.ebpf)?);
        notes.mapped().map(DnsSources)
    }
}

impl DnsSources {
    /// Returns the note of packets with this key.
    pub fn get(&self, key: &DnsSourceKey) -> Option<DnsSource> {
        let offset = key.index() as usize * size_of::<DnsSource>();
        // A program may write a note during the first read, but hardly during each of them.
        let read = || self.0.read::<DnsSource>(offset);
        (0..4).map(|_| read()).find(DnsSource::is_whole).filter(|note| note.is_of(key))
    }
}
