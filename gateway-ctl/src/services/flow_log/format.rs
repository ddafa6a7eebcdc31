//! Format of the journal of the flow log, with a summary of each block by which searches skip it.

use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::time::Duration;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use gateway_core::flow_log::{
    ClientCondition, FlowFilter, FlowRecord, FlowView, from_columns, to_columns, views,
};
use gateway_journal::{Block, Format, Summary, View};
use gateway_model::Id;

/// Words of the Bloom filter of a block, of some 600 records.
const WORDS: usize = 128;
const LENGTH: usize = 8 * WORDS;
/// Bits of a property.
const BITS: u32 = 4;
/// Maximum length of the columns of a block. One has 64 KiB of records, which are longer.
const MAX_COLUMNS: u64 = 4 << 20;

/// Records of flows.
#[derive(Debug)]
pub(super) struct FlowFormat;

/// View of a record in the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredFlow<'a>(pub FlowView<'a>);

impl Format for FlowFormat {
    const VERSIONS: &'static [([u8; 4], usize)] = &[(*b"gfl\x01", LENGTH)];
    const SUFFIX: &'static str = "flowlog";
    const NAME: &'static str = "flow log";
    const MAX_FILE_SPAN: Duration = Duration::from_secs(86_400);

    type View<'a> = StoredFlow<'a>;
    type Filter = FlowFilter;
    type Summary = PropertyFilter;

    fn views(bytes: &[u8]) -> impl Iterator<Item = StoredFlow<'_>> {
        views(bytes).map(StoredFlow)
    }

    fn is_match(view: &StoredFlow<'_>, filter: &FlowFilter) -> bool {
        let has_no_condition = *filter == FlowFilter::default();
        has_no_condition || view.0.record().is_some_and(|record| filter.is_match(&record))
    }

    /// Packs a block by columns, by which it takes a fourth of the bytes.
    fn pack(records: &[u8]) -> Option<Vec<u8>> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&to_columns(records)?).ok()?;
        encoder.finish().ok()
    }

    fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
        from_columns(&columns(packed)?)
    }
}

/// Returns the columns of a packed block. `None` if the bytes are none.
pub(super) fn columns(packed: &[u8]) -> Option<Vec<u8>> {
    let mut columns = Vec::new();
    DeflateDecoder::new(packed).take(MAX_COLUMNS).read_to_end(&mut columns).ok()?;
    Some(columns)
}

impl View for StoredFlow<'_> {
    fn time(&self) -> i64 {
        self.0.time()
    }

    fn length(&self) -> usize {
        self.0.length()
    }
}

/// Bloom filter of the properties of a block's records: clients, destinations, policies and egresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PropertyFilter(Box<[u64; WORDS]>);

impl PropertyFilter {
    fn bits(property: &[u8]) -> impl Iterator<Item = (usize, u64)> + use<> {
        // The seed is the same in every run, because files contain the bits.
        let hash = rapidhash::v3::rapidhash_v3(property);
        (0..BITS).map(move |number| {
            let part = (hash >> (16 * number)) as usize;
            (part / 64 % WORDS, 1 << (part % 64))
        })
    }

    fn add(&mut self, property: &[u8]) {
        Self::bits(property).for_each(|(word, bit)| self.0[word] |= bit);
    }

    fn may_have(&self, property: &[u8]) -> bool {
        Self::bits(property).all(|(word, bit)| self.0[word] & bit != 0)
    }
}

impl Summary for PropertyFilter {
    type Filter = FlowFilter;

    fn nothing() -> PropertyFilter {
        PropertyFilter(Box::new([0; WORDS]))
    }

    fn read(_: [u8; 4], bytes: &[u8]) -> PropertyFilter {
        let mut words = [u64::MAX; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
        }
        PropertyFilter(Box::new(words))
    }

    fn write(&self, out: &mut [u8]) {
        for (word, bytes) in self.0.iter().zip(out.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn may_match(&self, filter: &FlowFilter, _: u64) -> bool {
        let client = filter.client.as_ref().map(|client| match client {
            ClientCondition::Address(address) => property(b'a', &address_bytes(*address)),
            ClientCondition::Mac(mac) => property(b'm', &mac.octets()),
            ClientCondition::Device(device) => property(b'v', device.as_bytes()),
        });
        let destination = filter.destination.map(|address| property(b'd', &address_bytes(address)));
        let policy = filter.policy.map(|policy| property(b'p', policy.as_bytes()));
        let egress = filter.egress.as_ref().map(|name| property(b'e', name.as_bytes()));
        let flow = filter.flow_id.map(|id| property(b'f', &id.raw().to_le_bytes()));
        let wanted = [client, destination, policy, egress, flow];
        wanted.into_iter().flatten().all(|property| self.may_have(&property))
    }
}

/// Adds a record to the summary of its block.
pub(super) fn note(view: &StoredFlow<'_>, block: &mut Block<PropertyFilter>) {
    let Some(record) = view.0.record() else { return };
    properties(&record).iter().for_each(|property| block.summary.add(property));
}

fn properties(record: &FlowRecord) -> Vec<Vec<u8>> {
    let mut all = vec![
        property(b'd', &address_bytes(record.destination)),
        property(b'f', &record.flow_id.raw().to_le_bytes()),
    ];
    if let Some(client) = &record.client {
        all.push(property(b'a', &address_bytes(client.address)));
        all.push(property(b'm', &client.mac.octets()));
        all.extend(client.device.as_ref().map(|device| property(b'v', device.as_bytes())));
    }
    for path in &record.paths {
        all.extend(path.policy.as_ref().map(|policy: &Id| property(b'p', policy.as_bytes())));
        all.extend(path.egress.as_ref().map(|name| property(b'e', name.as_bytes())));
    }
    all
}

fn property(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], bytes].concat()
}

fn address_bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(four) => four.octets().to_vec(),
        IpAddr::V6(six) => six.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_block_has_no_records() {
        let packed = FlowFormat::pack(&[]).expect("no records are records");
        assert_eq!(FlowFormat::unpack(&packed), Some(Vec::new()));
        assert_eq!(FlowFormat::unpack(&[0xff; 40]), None);
        assert_eq!(FlowFormat::pack(&[1, 2, 3]), None, "no records");
    }
}
