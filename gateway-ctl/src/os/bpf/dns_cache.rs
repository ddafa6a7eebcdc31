//! In-kernel DNS packet cache and filter, from which the ingress program answers. Both end with [`Answers`]: without the
//! daemon, neither the resolver nor a program answers. Decision 0048 says how the driver answers from them.

use std::sync::Arc;

use aya::maps::{MapData, RingBuf};
use aya::programs::ProgramError;
use gateway_common::maps as spec;
use gateway_common::wire::{
    DnsCacheKey, DnsCacheValue, DnsHit, FilterAnswer, FilterBucket, FilterClient, FilterClientKey, FilterHit,
};
use gateway_dns::serve::kernel_cache;
use gateway_outbound::causes::with_causes;
use parking_lot::Mutex;
use zerocopy::FromBytes as _;

use super::dns_filter::Filter;
use super::maps::{ArrayMap, Entries as _, HashTable, open};
use super::programs::{ANSWER, FILTER};
use super::tail_calls::TailCalls;
use super::xdp::Xdp;
use super::{Error, Programs};

/// Map of the tail calls at tcx, which holds no data of the gateway.
const CALLS: &str = "gw_tail_calls";

pub struct Answers {
    maps: Mutex<Maps>,
    hits: Mutex<RingBuf<MapData>>,
    filter: Filter,
    /// Keep the tail calls to the programs alive.
    _calls: TailCalls,
    _at_xdp: AnswersAtXdp,
}

struct Maps {
    answers: HashTable<spec::DnsCache>,
    epoch: ArrayMap<spec::DnsEpoch>,
}

/// Answers at XDP, which end when it is dropped.
struct AnswersAtXdp(Xdp);

impl AnswersAtXdp {
    fn begin(xdp: &Xdp) -> AnswersAtXdp {
        xdp.answer();
        AnswersAtXdp(xdp.clone())
    }
}

impl Drop for AnswersAtXdp {
    fn drop(&mut self) {
        if let Err(error) = self.0.end_answers() {
            tracing::warn!(error = %with_causes(&error), "failed to end the answers at XDP");
        }
    }
}

impl Programs {
    /// Lets the ingress program answer from the entries that the resolver puts into the cache. Callable once.
    pub fn answers(&mut self) -> Result<Answers, Error> {
        let maps = Maps {
            answers: HashTable(open::<spec::DnsCache, _>(&mut self.ebpf)?),
            epoch: ArrayMap(open::<spec::DnsEpoch, _>(&mut self.ebpf)?),
        };
        let hits = open::<spec::DnsHits, _>(&mut self.ebpf)?;
        let filter = Filter::take(self)?;
        let mut programs = Vec::new();
        for name in [ANSWER].into_iter().chain(FILTER) {
            let refused = |source| Error::Program { name, source: Box::new(source) };
            let program = self.program(name)?.fd().map_err(refused)?.try_clone();
            programs.push(program.map_err(|error| refused(ProgramError::IOError(error)))?);
        }
        let mut calls = TailCalls::take(&mut self.ebpf, CALLS)?;
        calls.fill(&programs)?;
        Ok(Answers {
            maps: Mutex::new(maps),
            hits: Mutex::new(hits),
            filter,
            _calls: calls,
            _at_xdp: AnswersAtXdp::begin(&self.xdp),
        })
    }
}

/// Shared handle for the resolver and for tests.
#[derive(Clone)]
pub struct KernelDnsCache(pub Arc<Answers>);

impl kernel_cache::Dataplane for KernelDnsCache {
    fn set_epoch(&self, epoch: u64) {
        if let Err(error) = self.0.maps.lock().epoch.set(0, epoch) {
            tracing::error!(%error, "failed to invalidate the kernel DNS cache");
        }
    }

    fn put(&self, key: &DnsCacheKey, value: &DnsCacheValue) {
        // The put fails for example if the map is full. The resolver then continues to answer.
        let _ = self.0.maps.lock().answers.put(key, value);
    }

    fn remove(&self, keys: &[DnsCacheKey]) {
        let mut maps = self.0.maps.lock();
        for key in keys {
            // A missing entry was never accepted by the map.
            let _ = maps.answers.remove(key);
        }
    }

    fn take_hits(&self, report: &mut dyn FnMut(DnsHit)) {
        let mut ring = self.0.hits.lock();
        while let Some(item) = ring.next() {
            if let Ok((hit, _)) = DnsHit::read_from_prefix(&item) {
                report(hit);
            }
        }
    }

    fn put_table(&self, table: &[FilterBucket], answers: &[(u32, FilterAnswer)]) -> std::io::Result<()> {
        self.0.filter.put_table(table, answers)
    }

    fn put_client(&self, key: &FilterClientKey, client: &FilterClient) {
        self.0.filter.put_client(key, client);
    }

    fn take_filter_hits(&self, report: &mut dyn FnMut(FilterHit)) {
        self.0.filter.take_hits(report);
    }
}
