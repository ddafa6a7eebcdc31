//! The maps of the dataplane with the types from `gateway_common::maps`.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};

use aya::maps::lpm_trie::{Key as TrieKey, LpmTrie};
use aya::maps::{Array, HashMap, IterableMap, Map, MapData, MapError, PerCpuArray, PerCpuHashMap, RingBuf};
use aya::{Ebpf, Pod};
use gateway_common::maps::{self as spec, MapSpec, Wire};
use zerocopy::FromZeros as _;

use super::Error;
use super::mapped::{Mapped, write_words};
use super::syscall::{Position, delete_batch, lookup_batch, update_batch};

/// Number of entries that one call reads. A hash table needs more than its largest bucket has.
const BATCH: usize = 4096;

/// Maximum size of the values that one call reads of an array.
const BATCH_BYTES: usize = 1 << 18;

/// Maximum number of entries that one call reads.
const MAX_BATCH: usize = 1 << 20;

/// Wrapper that lets aya use a wire structure.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Raw<T: Wire>(pub T);

// SAFETY: `Wire` types are plain bytes without padding, valid for every bit pattern, and `Raw` is
// transparent.
unsafe impl<T: Wire> Pod for Raw<T> {}

type RawKey<M> = Raw<<M as MapSpec>::Key>;
type RawValue<M> = Raw<<M as MapSpec>::Value>;

pub struct ArrayMap<M: MapSpec>(pub(super) Array<MapData, RawValue<M>>);
pub struct HashTable<M: MapSpec>(pub(super) HashMap<MapData, RawKey<M>, RawValue<M>>);
pub struct Trie<M: MapSpec>(LpmTrie<MapData, RawKey<M>, RawValue<M>>);
pub struct CounterArray<M: MapSpec>(pub(super) PerCpuArray<MapData, RawValue<M>>);
pub struct CounterTable<M: MapSpec>(PerCpuHashMap<MapData, RawKey<M>, RawValue<M>>);

type PerProcessor<M> = (<M as MapSpec>::Key, Vec<<M as MapSpec>::Value>);

pub struct Maps {
    pub live: ArrayMap<spec::ActiveSlot>,
    pub plans: ArrayMap<spec::PlanHeaders>,
    pub interfaces: HashTable<spec::Interfaces>,
    pub vlans: HashTable<spec::Vlans>,
    pub device_macs: HashTable<spec::DeviceMacs>,
    pub device_addresses: HashTable<spec::DeviceAddresses>,
    pub sources4: Trie<spec::Sources4>,
    pub sources6: Trie<spec::Sources6>,
    pub destinations4: Trie<spec::Destinations4>,
    pub destinations6: Trie<spec::Destinations6>,
    pub destination_ports4: Trie<spec::DestinationPorts4>,
    pub destination_ports6: Trie<spec::DestinationPorts6>,
    pub prefix_levels: ArrayMap<spec::PrefixLevels>,
    pub prefix_bits: ArrayMap<spec::PrefixBits>,
    pub lan_sources4: Trie<spec::LanSources4>,
    pub lan_sources6: Trie<spec::LanSources6>,
    pub locals4: Trie<spec::Locals4>,
    pub locals6: Trie<spec::Locals6>,
    pub doh_servers4: Trie<spec::DohServers4>,
    pub doh_servers6: Trie<spec::DohServers6>,
    pub doh_names: HashTable<spec::DohNames>,
    pub shared_addresses: HashTable<spec::SharedAddresses>,
    pub actions: ArrayMap<spec::Actions>,
    pub turns: ArrayMap<spec::RoundRobinCounters>,
    pub domains: HashTable<spec::FqdnIps>,
    pub authorised: HashTable<spec::EgressAllow>,
    pub egress_legs: HashTable<spec::EgressLegs>,
    pub flows4: ArrayMap<spec::Flows4>,
    pub flows6: ArrayMap<spec::Flows6>,
    pub flow_places4: ArrayMap<spec::FlowPlaces4>,
    pub flow_places6: ArrayMap<spec::FlowPlaces6>,
    pub hellos: HashTable<spec::Hellos>,
    pub new_flows: ArrayMap<spec::NewFlowCounts>,
    pub unrecorded: CounterArray<spec::Unrecorded>,
    pub counter_log: CounterArray<spec::CounterLogs>,
    pub policy_counters: CounterArray<spec::PolicyCounters>,
    pub device_counters: CounterArray<spec::DeviceCounters>,
    pub reason_counters: CounterArray<spec::ReasonCounters>,
    pub block_hits: CounterTable<spec::BlockHits>,
    pub prevented: CounterTable<spec::GuardDrops>,
    pub escaped: CounterTable<spec::Escaped>,
    pub host_bytes: HashTable<spec::HostBytes>,
    pub announcements: RingBuf<MapData>,
    pub link_messages: RingBuf<MapData>,
    pub initials: RingBuf<MapData>,
    pub hello_segments: RingBuf<MapData>,
    pub events: RingBuf<MapData>,
}

impl Maps {
    /// Takes the maps out of a loaded object.
    pub fn take(ebpf: &mut Ebpf) -> Result<Maps, Error> {
        Ok(Maps {
            live: ArrayMap(open::<spec::ActiveSlot, _>(ebpf)?),
            plans: ArrayMap(open::<spec::PlanHeaders, _>(ebpf)?),
            interfaces: HashTable(open::<spec::Interfaces, _>(ebpf)?),
            vlans: HashTable(open::<spec::Vlans, _>(ebpf)?),
            device_macs: HashTable(open::<spec::DeviceMacs, _>(ebpf)?),
            device_addresses: HashTable(open::<spec::DeviceAddresses, _>(ebpf)?),
            sources4: Trie(open::<spec::Sources4, _>(ebpf)?),
            sources6: Trie(open::<spec::Sources6, _>(ebpf)?),
            destinations4: Trie(open::<spec::Destinations4, _>(ebpf)?),
            destinations6: Trie(open::<spec::Destinations6, _>(ebpf)?),
            destination_ports4: Trie(open::<spec::DestinationPorts4, _>(ebpf)?),
            destination_ports6: Trie(open::<spec::DestinationPorts6, _>(ebpf)?),
            prefix_levels: ArrayMap(open::<spec::PrefixLevels, _>(ebpf)?),
            prefix_bits: ArrayMap(open::<spec::PrefixBits, _>(ebpf)?),
            lan_sources4: Trie(open::<spec::LanSources4, _>(ebpf)?),
            lan_sources6: Trie(open::<spec::LanSources6, _>(ebpf)?),
            locals4: Trie(open::<spec::Locals4, _>(ebpf)?),
            locals6: Trie(open::<spec::Locals6, _>(ebpf)?),
            doh_servers4: Trie(open::<spec::DohServers4, _>(ebpf)?),
            doh_servers6: Trie(open::<spec::DohServers6, _>(ebpf)?),
            doh_names: HashTable(open::<spec::DohNames, _>(ebpf)?),
            shared_addresses: HashTable(open::<spec::SharedAddresses, _>(ebpf)?),
            actions: ArrayMap(open::<spec::Actions, _>(ebpf)?),
            turns: ArrayMap(open::<spec::RoundRobinCounters, _>(ebpf)?),
            domains: HashTable(open::<spec::FqdnIps, _>(ebpf)?),
            authorised: HashTable(open::<spec::EgressAllow, _>(ebpf)?),
            egress_legs: HashTable(open::<spec::EgressLegs, _>(ebpf)?),
            flows4: ArrayMap(open::<spec::Flows4, _>(ebpf)?),
            flows6: ArrayMap(open::<spec::Flows6, _>(ebpf)?),
            flow_places4: ArrayMap(open::<spec::FlowPlaces4, _>(ebpf)?),
            flow_places6: ArrayMap(open::<spec::FlowPlaces6, _>(ebpf)?),
            hellos: HashTable(open::<spec::Hellos, _>(ebpf)?),
            new_flows: ArrayMap(open::<spec::NewFlowCounts, _>(ebpf)?),
            unrecorded: CounterArray(open::<spec::Unrecorded, _>(ebpf)?),
            counter_log: CounterArray(open::<spec::CounterLogs, _>(ebpf)?),
            policy_counters: CounterArray(open::<spec::PolicyCounters, _>(ebpf)?),
            device_counters: CounterArray(open::<spec::DeviceCounters, _>(ebpf)?),
            reason_counters: CounterArray(open::<spec::ReasonCounters, _>(ebpf)?),
            block_hits: CounterTable(open::<spec::BlockHits, _>(ebpf)?),
            prevented: CounterTable(open::<spec::GuardDrops, _>(ebpf)?),
            escaped: CounterTable(open::<spec::Escaped, _>(ebpf)?),
            host_bytes: HashTable(open::<spec::HostBytes, _>(ebpf)?),
            announcements: open::<spec::Announcements, _>(ebpf)?,
            link_messages: open::<spec::LinkMessages, _>(ebpf)?,
            initials: open::<spec::Initials, _>(ebpf)?,
            hello_segments: open::<spec::HelloSegments, _>(ebpf)?,
            events: open::<spec::Events, _>(ebpf)?,
        })
    }
}

pub(super) fn open<M: MapSpec, T: TryFrom<Map, Error = MapError>>(ebpf: &mut Ebpf) -> Result<T, Error> {
    let map =
        ebpf.take_map(M::NAME).ok_or_else(|| Error::Missing { what: "map", name: M::NAME.to_owned() })?;
    T::try_from(map).map_err(failed::<M>("open"))
}

fn failed<M: MapSpec>(operation: &'static str) -> impl FnOnce(MapError) -> Error {
    move |source| Error::Map { operation, map: M::NAME, source: Box::new(source) }
}

impl<M: MapSpec> ArrayMap<M> {
    /// Returns the same map with its own descriptor.
    pub fn try_clone(&self) -> Result<Self, Error> {
        duplicate(IterableMap::map(&self.0))
            .and_then(|data| Array::try_from(Map::Array(data)))
            .map(ArrayMap)
            .map_err(failed::<M>("open"))
    }

    /// Visits the values in parts, so that a large array is never in memory as a whole.
    pub fn for_each(&self, mut visit: impl FnMut(M::Value)) -> Result<(), Error> {
        let most = (BATCH_BYTES / size_of::<M::Value>()).clamp(1, BATCH);
        let mut first = 0;
        while first < M::CAPACITY {
            let count = most.min((M::CAPACITY - first) as usize);
            self.read_from(first, count)?.into_iter().for_each(&mut visit);
            first += count as u32;
        }
        Ok(())
    }

    pub fn get(&self, index: u32) -> Result<M::Value, Error> {
        self.0.get(&index, 0).map(|v| v.0).map_err(failed::<M>("read"))
    }

    pub fn set(&mut self, index: u32, value: M::Value) -> Result<(), Error> {
        self.0.set(index, Raw(value), 0).map_err(failed::<M>("write"))
    }

    /// Writes words of the values, at an offset in bytes. The array must be one that can be mapped into memory.
    pub fn write_in_place(&mut self, offset: usize, words: &[u32]) -> Result<(), Error> {
        write_words(descriptor(IterableMap::map(&self.0)), offset, words)
            .map_err(|error| failed::<M>("write")(MapError::IoError(error)))
    }

    /// Maps the values into memory, one directly behind the other. The array must be one that allows it.
    pub fn mapped(&self) -> Result<Mapped, Error> {
        const { assert!(size_of::<M::Value>().is_multiple_of(8), "the kernel puts nothing between the values") }
        let length = M::CAPACITY as usize * size_of::<M::Value>();
        Mapped::read_only(descriptor(IterableMap::map(&self.0)), length)
            .map_err(|error| failed::<M>("read")(MapError::IoError(error)))
    }

    /// Reads consecutive values.
    pub fn read_from(&self, first: u32, count: usize) -> Result<Vec<M::Value>, Error> {
        let mut position = first.checked_sub(1).map(Position::behind).unwrap_or_default();
        let mut found: Vec<(u32, RawValue<M>)> = Vec::with_capacity(count);
        let map = descriptor(IterableMap::map(&self.0));
        while found.len() < count {
            let most = BATCH.min(count - found.len());
            // SAFETY: an array has indices as keys, and the library has checked the size of the values.
            if !matches!(unsafe { lookup_batch(map, &mut position, most, &mut found) }, Ok(false)) {
                break;
            }
        }
        let mut values: Vec<M::Value> = found.into_iter().map(|(_, value)| value.0).collect();
        // Without batch commands, or behind the end, which is an error.
        for index in (first..).take(count).skip(values.len()) {
            values.push(self.get(index)?);
        }
        Ok(values)
    }

    /// Writes zeroes to all values.
    pub fn clear(&mut self) -> Result<(), Error> {
        let most = (BATCH_BYTES / size_of::<M::Value>()).clamp(1, BATCH);
        let zeroes = vec![M::Value::new_zeroed(); most];
        (0..M::CAPACITY)
            .step_by(most)
            .try_for_each(|first| self.write_from(first, &zeroes[..most.min((M::CAPACITY - first) as usize)]))
    }

    /// Writes consecutive values.
    pub fn write_from(&mut self, first: u32, values: &[M::Value]) -> Result<(), Error> {
        let entries = (first..).zip(values.iter().map(|value| Raw(*value)));
        // SAFETY: an array has indices as keys, and the library has checked the size of the values.
        if unsafe { update_batch(descriptor(IterableMap::map(&self.0)), entries) }.is_ok() {
            return Ok(());
        }
        (first..).zip(values).try_for_each(|(index, value)| self.set(index, *value))
    }
}

/// A map whose entries belong to slots. The gateway brings it to the wanted content slot by slot.
///
/// Batch commands take a tenth of the time of one call per entry. A kernel or map without them gets the single calls.
pub trait Entries {
    type Key: Ord + Copy;
    type Value: PartialEq + Copy;

    fn read(&self) -> Result<BTreeMap<Self::Key, Self::Value>, Error>;
    fn put(&mut self, key: &Self::Key, value: &Self::Value) -> Result<(), Error>;
    fn remove(&mut self, key: &Self::Key) -> Result<(), Error>;
    /// Writes entries in one call. Returns `false` if some may be missing.
    fn put_batch(&mut self, entries: &[(Self::Key, Self::Value)]) -> bool;
    /// Removes entries in one call. Returns `false` if some may be left.
    fn remove_batch(&mut self, keys: &[Self::Key]) -> bool;

    fn put_all(&mut self, entries: &[(Self::Key, Self::Value)]) -> Result<(), Error> {
        if entries.is_empty() || self.put_batch(entries) {
            return Ok(());
        }
        entries.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    fn remove_all(&mut self, keys: &[Self::Key]) -> Result<(), Error> {
        if keys.is_empty() || self.remove_batch(keys) {
            return Ok(());
        }
        keys.iter().try_for_each(|key| self.remove(key))
    }
}

pub(super) fn descriptor(map: &MapData) -> BorrowedFd<'_> {
    map.fd().as_fd()
}

/// Returns the same map with a descriptor of its own.
fn duplicate(map: &MapData) -> Result<MapData, MapError> {
    MapData::from_fd(descriptor(map).try_clone_to_owned()?)
}

/// Reads all entries. Returns `None` without batch commands.
///
/// # Safety
///
/// `K` and `V` have the sizes of the keys and values of the map.
unsafe fn read_batches<K: Pod, V: Pod>(map: &MapData) -> Option<Vec<(K, V)>> {
    let (mut position, mut found, mut most) = (Position::default(), Vec::new(), BATCH);
    loop {
        // SAFETY: as above.
        match unsafe { lookup_batch(descriptor(map), &mut position, most, &mut found) } {
            Ok(true) => return Some(found),
            Ok(false) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOSPC) && most < MAX_BATCH => most *= 2,
            Err(_) => return None,
        }
    }
}

/// Maps a missing key to `None`: a read during kernel writes may miss a key.
fn missing_as_none<T>(result: Result<T, MapError>) -> Result<Option<T>, MapError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

impl<M: MapSpec> HashTable<M> {
    pub fn get(&self, key: &M::Key) -> Result<Option<M::Value>, Error> {
        missing_as_none(self.0.get(&Raw(*key), 0))
            .map(|value| value.map(|v| v.0))
            .map_err(failed::<M>("read"))
    }
}

impl<M: MapSpec> Entries for HashTable<M>
where
    M::Key: Ord,
    M::Value: PartialEq,
{
    type Key = M::Key;
    type Value = M::Value;

    fn read(&self) -> Result<BTreeMap<M::Key, M::Value>, Error> {
        // SAFETY: the library has checked the sizes of keys and values.
        if let Some(found) = unsafe { read_batches::<RawKey<M>, RawValue<M>>(IterableMap::map(&self.0)) } {
            return Ok(found.into_iter().map(|(key, value)| (key.0, value.0)).collect());
        }
        self.0
            .iter()
            .filter_map(|entry| missing_as_none(entry).transpose())
            .map(|entry| entry.map(|(k, v)| (k.0, v.0)).map_err(failed::<M>("read")))
            .collect()
    }

    fn put(&mut self, key: &M::Key, value: &M::Value) -> Result<(), Error> {
        self.0.insert(Raw(*key), Raw(*value), 0).map_err(failed::<M>("write"))
    }

    fn remove(&mut self, key: &M::Key) -> Result<(), Error> {
        missing_as_none(self.0.remove(&Raw(*key))).map(|_| ()).map_err(failed::<M>("remove from"))
    }

    fn put_batch(&mut self, entries: &[(M::Key, M::Value)]) -> bool {
        let entries = entries.iter().map(|(key, value)| (Raw(*key), Raw(*value)));
        // SAFETY: the library has checked the sizes of keys and values.
        unsafe { update_batch(descriptor(IterableMap::map(&self.0)), entries) }.is_ok()
    }

    fn remove_batch(&mut self, keys: &[M::Key]) -> bool {
        let keys: Vec<RawKey<M>> = keys.iter().map(|key| Raw(*key)).collect();
        // SAFETY: the library has checked the size of the keys.
        unsafe { delete_batch(descriptor(IterableMap::map(&self.0)), &keys) }.is_ok()
    }
}

impl<M: MapSpec> Entries for Trie<M>
where
    M::Key: Ord,
    M::Value: PartialEq,
{
    /// Prefix length in bits, slot and port included, and the data.
    type Key = (u32, M::Key);
    type Value = M::Value;

    fn read(&self) -> Result<BTreeMap<Self::Key, M::Value>, Error> {
        // SAFETY: the library has checked the sizes of keys and values.
        let found = unsafe { read_batches::<TrieKey<RawKey<M>>, RawValue<M>>(IterableMap::map(&self.0)) };
        if let Some(found) = found {
            let entry =
                |(key, value): (TrieKey<RawKey<M>>, RawValue<M>)| ((key.prefix_len(), key.data().0), value.0);
            return Ok(found.into_iter().map(entry).collect());
        }
        self.0
            .iter()
            .filter_map(|entry| missing_as_none(entry).transpose())
            .map(|entry| entry.map(|(k, v)| ((k.prefix_len(), k.data().0), v.0)).map_err(failed::<M>("read")))
            .collect()
    }

    fn put(&mut self, key: &Self::Key, value: &M::Value) -> Result<(), Error> {
        let key = TrieKey::new(key.0, Raw(key.1));
        self.0.insert(&key, Raw(*value), 0).map_err(failed::<M>("write"))
    }

    fn remove(&mut self, key: &Self::Key) -> Result<(), Error> {
        let key = TrieKey::new(key.0, Raw(key.1));
        missing_as_none(self.0.remove(&key)).map(|_| ()).map_err(failed::<M>("remove from"))
    }

    fn put_batch(&mut self, entries: &[(Self::Key, M::Value)]) -> bool {
        let entries =
            entries.iter().map(|((length, key), value)| (TrieKey::new(*length, Raw(*key)), Raw(*value)));
        // SAFETY: the library has checked the sizes of keys and values.
        unsafe { update_batch(descriptor(IterableMap::map(&self.0)), entries) }.is_ok()
    }

    fn remove_batch(&mut self, keys: &[Self::Key]) -> bool {
        let keys: Vec<TrieKey<RawKey<M>>> =
            keys.iter().map(|(length, key)| TrieKey::new(*length, Raw(*key))).collect();
        // SAFETY: the library has checked the size of the keys.
        unsafe { delete_batch(descriptor(IterableMap::map(&self.0)), &keys) }.is_ok()
    }
}

impl<M: MapSpec> CounterArray<M>
where
    M::Value: 'static,
{
    /// Returns the same map with its own descriptor.
    pub fn try_clone(&self) -> Result<Self, Error> {
        duplicate(IterableMap::map(&self.0))
            .and_then(|data| PerCpuArray::try_from(Map::PerCpuArray(data)))
            .map(CounterArray)
            .map_err(failed::<M>("open"))
    }

    /// Returns the values of all processors.
    pub fn get(&self, index: u32) -> Result<Vec<M::Value>, Error> {
        let values = self.0.get(&index, 0).map_err(failed::<M>("read"))?;
        Ok(values.iter().map(|v| v.0).collect())
    }
}

impl<M: MapSpec> CounterTable<M> {
    /// Returns each key with the values of all processors.
    pub fn read(&self) -> Result<Vec<PerProcessor<M>>, Error> {
        let mut all = Vec::new();
        for key in self.0.keys() {
            let key = key.map_err(failed::<M>("read"))?;
            let values = missing_as_none(self.0.get(&key, 0)).map_err(failed::<M>("read"))?;
            if let Some(values) = values {
                all.push((key.0, values.iter().map(|v| v.0).collect()));
            }
        }
        Ok(all)
    }

    /// Removes all keys.
    pub fn clear(&mut self) -> Result<(), Error> {
        for (key, _) in self.read()? {
            missing_as_none(self.0.remove(&Raw(key))).map_err(failed::<M>("remove from"))?;
        }
        Ok(())
    }
}
