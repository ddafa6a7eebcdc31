//! In-kernel DNS filter: its table of names, its answers, its clients and its hits.

use aya::maps::{Array, ArrayOfMaps, IterableMap as _, MapData, RingBuf};
use gateway_common::maps as spec;
use gateway_common::wire::{FilterAnswer, FilterBucket, FilterClient, FilterClientKey, FilterHit};
use parking_lot::Mutex;
use zerocopy::FromBytes as _;

use super::maps::{ArrayMap, Entries as _, HashTable, Raw, descriptor, open};
use super::syscall::update_batch;
use super::{Error, Programs};

/// Table of names. Its size may differ from that of the table before (`BPF_F_INNER_MAP`).
type Table = Array<MapData, Raw<FilterBucket>>;
const ANY_SIZE: u32 = 0x1000;

/// Number of elements that one call writes.
const BATCH: usize = 16_384;

pub(super) struct Filter {
    maps: Mutex<Maps>,
    clients: Mutex<HashTable<spec::FilterClients>>,
    hits: Mutex<RingBuf<MapData>>,
}

struct Maps {
    answers: ArrayMap<spec::FilterAnswers>,
    tables: ArrayOfMaps<MapData, Table>,
}

impl Filter {
    pub(super) fn take(programs: &mut Programs) -> Result<Filter, Error> {
        let ebpf = &mut programs.ebpf;
        let maps = Maps {
            answers: ArrayMap(open::<spec::FilterAnswers, _>(ebpf)?),
            tables: open::<spec::FilterTables, _>(ebpf)?,
        };
        Ok(Filter {
            maps: Mutex::new(maps),
            clients: Mutex::new(HashTable(open::<spec::FilterClients, _>(ebpf)?)),
            hits: Mutex::new(open::<spec::FilterHits, _>(ebpf)?),
        })
    }

    /// Writes the answers and a new table, and then exchanges the table.
    pub(super) fn put_table(
        &self,
        table: &[FilterBucket],
        answers: &[(u32, FilterAnswer)],
    ) -> Result<(), std::io::Error> {
        let mut maps = self.maps.lock();
        for (index, answer) in answers {
            maps.answers.set(*index, *answer).map_err(std::io::Error::other)?;
        }
        let length = u32::try_from(table.len()).map_err(std::io::Error::other)?;
        let new = Table::create(length, ANY_SIZE).map_err(std::io::Error::other)?;
        for (first, buckets) in (0u32..).step_by(BATCH).zip(table.chunks(BATCH)) {
            let elements = (first..).zip(buckets.iter().map(|bucket| Raw(*bucket)));
            // SAFETY: the library has made the map with these sizes.
            unsafe { update_batch(descriptor(new.map()), elements) }?;
        }
        maps.tables.set(0, &new, 0).map_err(std::io::Error::other)
    }

    pub(super) fn put_client(&self, key: &FilterClientKey, client: &FilterClient) {
        // Without the entry, the resolver answers.
        let _ = self.clients.lock().put(key, client);
    }

    pub(super) fn take_hits(&self, report: &mut dyn FnMut(FilterHit)) {
        let mut ring = self.hits.lock();
        while let Some(item) = ring.next() {
            if let Ok((hit, _)) = FilterHit::read_from_prefix(&item) {
                report(hit);
            }
        }
    }
}
