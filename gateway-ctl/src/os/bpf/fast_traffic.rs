//! Packets and bytes of the flows that passed the IP stack by.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use aya::Ebpf;
use aya::maps::{MapData, RingBuf};
use gateway_common::maps::{self as spec, MapSpec, Wire};
use gateway_common::wire::{
    FAST_PLACES, FastEntry4, FastEntry6, FastReplaced, FastTags, FastTraffic as Words,
};
use gateway_core::flow_log::{CountedPlaces, CountedTraffic, PresentEntry, ReplacedEntry, Tuple};
use parking_lot::Mutex;
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::Error;
use super::maps::{ArrayMap, open};

/// Reader of the counters of the fast path. Clones are the same reader.
#[derive(Clone)]
pub struct FastTraffic(Arc<Mutex<Inner>>);

struct Inner {
    four: Table<spec::FastFlows4, spec::FastTags4, spec::FastTraffic4>,
    six: Table<spec::FastFlows6, spec::FastTags6, spec::FastTraffic6>,
    replaced: RingBuf<MapData>,
    places4: CountedPlaces<Tuple>,
    places6: CountedPlaces<Tuple>,
}

struct Table<F: MapSpec, T: MapSpec, W: MapSpec> {
    flows: ArrayMap<F>,
    tags: ArrayMap<T>,
    words: ArrayMap<W>,
}

/// Entry of one of the tables.
trait Entry: Wire {
    /// Returns its key. `None` for a place without an entry.
    fn tuple(&self) -> Option<Tuple>;
}

impl Entry for FastEntry4 {
    fn tuple(&self) -> Option<Tuple> {
        let address = |word: u32| IpAddr::V4(Ipv4Addr::from(word.to_ne_bytes()));
        (self.state.protocol != 0).then(|| Tuple {
            source: address(self.source),
            destination: address(self.destination),
            source_port: u16::from_be(self.source_port),
            destination_port: u16::from_be(self.destination_port),
            protocol: self.state.protocol,
        })
    }
}

impl Entry for FastEntry6 {
    fn tuple(&self) -> Option<Tuple> {
        (self.state.protocol != 0).then(|| Tuple {
            source: self.source.into(),
            destination: self.destination.into(),
            source_port: u16::from_be(self.source_port),
            destination_port: u16::from_be(self.destination_port),
            protocol: self.state.protocol,
        })
    }
}

impl FastTraffic {
    pub(super) fn take(
        ebpf: &mut Ebpf,
        (flows4, flows6): (ArrayMap<spec::FastFlows4>, ArrayMap<spec::FastFlows6>),
    ) -> Result<FastTraffic, Error> {
        let four = Table {
            flows: flows4,
            tags: ArrayMap(open::<spec::FastTags4, _>(ebpf)?),
            words: ArrayMap(open::<spec::FastTraffic4, _>(ebpf)?),
        };
        let six = Table {
            flows: flows6,
            tags: ArrayMap(open::<spec::FastTags6, _>(ebpf)?),
            words: ArrayMap(open::<spec::FastTraffic6, _>(ebpf)?),
        };
        let replaced = open::<spec::FastReplacements, _>(ebpf)?;
        let (places4, places6) = Default::default();
        Ok(FastTraffic(Arc::new(Mutex::new(Inner { four, six, replaced, places4, places6 }))))
    }

    /// Returns the traffic since the last call, by the tuple before address translation. `None` where it is unknown,
    /// because the program had no room for a report.
    pub fn read(&self) -> Result<CountedTraffic<Tuple>, Error> {
        self.0.lock().read()
    }
}

impl Inner {
    fn read(&mut self) -> Result<CountedTraffic<Tuple>, Error> {
        let four = self.four.entries::<FastEntry4>()?;
        let six = self.six.entries::<FastEntry6>()?;
        // Behind the tables: a report of an entry that was read is later than its reading.
        let (mut replaced4, mut replaced6) = (Vec::new(), Vec::new());
        while let Some(item) = self.replaced.next() {
            let Ok((report, _)) = FastReplaced::read_from_prefix(&item) else { continue };
            let all = if report.ipv6 == 0 { &mut replaced4 } else { &mut replaced6 };
            all.extend(replaced(&report));
        }
        let mut traffic = self.places4.advance(four, replaced4);
        traffic.extend(self.places6.advance(six, replaced6));
        Ok(traffic)
    }
}

fn replaced(report: &FastReplaced) -> Option<ReplacedEntry<Tuple>> {
    let bytes = report.entry.as_bytes();
    let key = if report.ipv6 == 0 {
        FastEntry4::read_from_prefix(bytes).ok()?.0.tuple()
    } else {
        FastEntry6::read_from_prefix(bytes).ok()?.0.tuple()
    };
    Some(ReplacedEntry { place: report.place, key: key?, word: report.word })
}

impl<F, T, W> Table<F, T, W>
where
    F: MapSpec,
    T: MapSpec<Value = FastTags>,
    W: MapSpec<Value = Words>,
{
    /// Returns the entries of all places that have, or had, one.
    fn entries<E: Entry>(&self) -> Result<Vec<PresentEntry<Tuple>>, Error>
    where
        F: MapSpec<Value = [E; FAST_PLACES]>,
    {
        let (flows, tags, words) = (self.flows.mapped()?, self.tags.mapped()?, self.words.mapped()?);
        let mut entries = Vec::new();
        for bucket in 0..T::CAPACITY as usize {
            let found: FastTags = tags.read(bucket * size_of::<FastTags>());
            if found.0 == 0 {
                continue;
            }
            for place in 0..FAST_PLACES {
                let number = bucket * FAST_PLACES + place;
                let read = || flows.read::<E>(number * size_of::<E>()).tuple();
                let (before, word) = (read(), words.read::<u64>(number * size_of::<u64>()));
                // A program that replaces the entry meanwhile reports it. The next reading has the new one.
                if let Some(key) = before.filter(|_| read() == before) {
                    let place = u32::try_from(number).unwrap_or(u32::MAX);
                    entries.push(PresentEntry { place, key, word });
                }
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use gateway_common::wire::{Address, FastState};

    use super::*;

    #[test]
    fn keys_are_read_as_the_programs_write_them() {
        let state = FastState { protocol: 17, ..FastState::default() };
        let four = FastEntry4 {
            source: u32::from_ne_bytes([10, 0, 0, 2]),
            destination: u32::from_ne_bytes([192, 0, 2, 1]),
            source_port: 50_000_u16.to_be(),
            destination_port: 53_u16.to_be(),
            state,
        };
        let tuple = four.tuple().expect("a key");
        assert_eq!((tuple.source.to_string(), tuple.source_port), ("10.0.0.2".to_owned(), 50_000));
        assert_eq!((tuple.destination.to_string(), tuple.destination_port), ("192.0.2.1".to_owned(), 53));
        assert_eq!(FastEntry4::default().tuple(), None);
        let six = FastEntry6 { source: Address::v6([0xfd; 16]), state, ..FastEntry6::default() };
        assert!(six.tuple().is_some_and(|tuple| tuple.source.is_ipv6() && tuple.protocol == 17));
        let mut entry = [0; 16];
        let words: &[u32; 8] = zerocopy::transmute_ref!(&four);
        entry[..8].copy_from_slice(words);
        let report = FastReplaced { word: 7, place: 9, ipv6: 0, entry };
        assert_eq!(replaced(&report), Some(ReplacedEntry { place: 9, key: tuple, word: 7 }));
    }
}
