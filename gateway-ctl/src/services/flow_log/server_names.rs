//! Names of servers in the ClientHellos of a short time, for the records of their flows.
//!
//! Names of TLS over TCP are read in copies of the first segments, those of QUIC come from the service that decrypts its Initial
//! packets. Nothing is kept while the log has no names.
//!
//! Decision 0200 says why.

use std::collections::HashMap;
use std::sync::Arc;

use gateway_common::wire::{FlowKey, HelloSegment};
use gateway_core::flow_log::Tuple;
use gateway_dissect::requested_server_name;
use parking_lot::Mutex;

/// Maximum number of names of one reading. Flows beyond it have no name.
const MAX_NAMES: usize = 65_536;
/// Maximum number of connections whose ClientHello goes on in a further segment.
const MAX_OPEN: usize = 4096;
/// Maximum number of bytes in which a name is looked for.
const MAX_HELLO: usize = 16_384;

/// Names of servers by flow. Clones are the same names.
#[derive(Clone, Debug, Default)]
pub struct ServerNames(Arc<Mutex<Names>>);

#[derive(Debug, Default)]
struct Names {
    is_wanted: bool,
    /// Names since the last reading.
    new: HashMap<Tuple, String>,
    /// Names of the reading before: a connection may show in the next one only.
    before: HashMap<Tuple, String>,
    open: HashMap<Tuple, OpenHello>,
}

/// Beginning of a ClientHello.
#[derive(Debug)]
struct OpenHello {
    bytes: Vec<u8>,
    /// Sequence number of the byte that follows.
    next: u32,
    /// Readings since it began.
    age: u8,
}

impl ServerNames {
    /// Sets whether the log has names of servers. If not, those that are known are forgotten.
    pub(super) fn want(&self, is_wanted: bool) {
        let mut names = self.0.lock();
        names.is_wanted = is_wanted;
        if !is_wanted {
            *names = Names::default();
        }
    }

    /// Notes the name in the ClientHello of a flow. The caller knows that the log has names, maybe before the log does.
    pub fn note(&self, flow: &FlowKey, name: String) {
        self.0.lock().note(tuple(flow), name);
    }

    /// Takes copies of segments, in the order in which they came.
    pub(super) fn add(&self, segments: &[Box<HelloSegment>]) {
        let mut names = self.0.lock();
        segments.iter().for_each(|segment| names.add(segment));
    }

    /// Returns the names since the last call, and those before.
    pub(super) fn take(&self) -> HashMap<Tuple, String> {
        let mut names = self.0.lock();
        names.open.retain(|_, open| {
            open.age += 1;
            open.age < 2
        });
        let new = std::mem::take(&mut names.new);
        let mut all = std::mem::replace(&mut names.before, new.clone());
        all.extend(new);
        all
    }

    /// Forgets all names.
    pub(super) fn clear(&self) {
        let mut names = self.0.lock();
        *names = Names { is_wanted: names.is_wanted, ..Names::default() };
    }
}

impl Names {
    fn note(&mut self, flow: Tuple, name: String) {
        if self.new.len() < MAX_NAMES {
            self.new.insert(flow, name);
        }
    }

    fn add(&mut self, segment: &HelloSegment) {
        if !self.is_wanted {
            return;
        }
        let flow = tuple(&segment.flow);
        let length = usize::try_from(segment.length).unwrap_or(usize::MAX);
        let Some(bytes) = segment.bytes.get(..length) else { return };
        let goes_on = |open: &OpenHello| open.next == segment.sequence && open.bytes.len() < MAX_HELLO;
        let bytes = match self.open.remove(&flow).filter(goes_on) {
            Some(open) => [&open.bytes, bytes].concat(),
            None => bytes.to_vec(),
        };
        match requested_server_name(&bytes) {
            Some(name) => self.note(flow, name),
            None if self.open.len() < MAX_OPEN => {
                let next = segment.sequence.wrapping_add(segment.length);
                self.open.insert(flow, OpenHello { bytes, next, age: 0 });
            }
            None => {}
        }
    }
}

fn tuple(flow: &FlowKey) -> Tuple {
    Tuple {
        source: flow.source.into(),
        destination: flow.destination.into(),
        source_port: flow.source_port,
        destination_port: flow.destination_port,
        protocol: flow.protocol,
    }
}

#[cfg(test)]
mod tests {
    use gateway_common::wire::{Address, Mac, SEGMENT};
    use zerocopy::FromZeros as _;

    use super::*;

    /// ClientHello for `www.example`, whose name is behind another extension.
    fn hello() -> Vec<u8> {
        let name = b"www.example";
        let length = u8::try_from(name.len()).expect("short");
        let mut extensions = vec![0, 51, 0, 90];
        extensions.extend([7; 90]);
        extensions.extend([0, 0, 0, length + 5, 0, length + 3, 0, 0, length]);
        extensions.extend(name);
        let mut body = vec![3, 3];
        body.extend([5; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0, 0, u8::try_from(extensions.len()).expect("short")]);
        body.extend(extensions);
        let message = [&[1, 0, 0, u8::try_from(body.len()).expect("short")][..], &body].concat();
        [&[22, 3, 1, 0, u8::try_from(message.len()).expect("short")][..], &message].concat()
    }

    fn segment(port: u16, sequence: u32, bytes: &[u8]) -> Box<HelloSegment> {
        let mut segment = Box::new(HelloSegment::new_zeroed());
        segment.flow = FlowKey {
            source: Address::v4([10, 0, 0, 2]),
            destination: Address::v4([203, 0, 113, 7]),
            interface: 2,
            source_port: port,
            destination_port: 443,
            mac: Mac::new([2; 6]),
            vlan: 0,
            protocol: 6,
            fragment: 0,
            _pad: [0; 2],
        };
        (segment.sequence, segment.length) = (sequence, u32::try_from(bytes.len()).expect("short"));
        segment.bytes[..bytes.len()].copy_from_slice(bytes);
        segment
    }

    fn wanted() -> ServerNames {
        let names = ServerNames::default();
        names.want(true);
        names
    }

    fn name_at(names: &HashMap<Tuple, String>, port: u16) -> Option<&str> {
        names.get(&tuple(&segment(port, 0, &[]).flow)).map(String::as_str)
    }

    #[test]
    fn a_name_is_there_in_two_readings() {
        let names = wanted();
        names.add(&[segment(1, 7, &hello())]);
        assert_eq!(name_at(&names.take(), 1), Some("www.example"));
        assert_eq!(name_at(&names.take(), 1), Some("www.example"));
        assert_eq!(name_at(&names.take(), 1), None);
    }

    #[test]
    fn a_name_in_a_further_segment_is_read() {
        let hello = hello();
        for cut in 1..hello.len() {
            let (first, second) = hello.split_at(cut);
            let names = wanted();
            // The sequence number wraps around.
            let begin = u32::MAX - 3;
            names.add(&[segment(1, begin, first)]);
            names.add(&[segment(1, begin.wrapping_add(u32::try_from(cut).expect("short")), second)]);
            assert_eq!(name_at(&names.take(), 1), Some("www.example"), "cut at {cut}");
        }
        let names = wanted();
        names.add(&[segment(1, 0, &hello[..40]), segment(1, 41, &hello[41..]), segment(2, 40, &hello[40..])]);
        assert!(names.take().is_empty(), "a gap, and another connection");
    }

    #[test]
    fn nothing_is_kept_of_names_that_are_not_wanted_or_erased() {
        let names = ServerNames::default();
        names.add(&[segment(1, 0, &hello()), segment(2, 0, &hello()[..9])]);
        let is_empty = |names: &ServerNames| {
            let names = names.0.lock();
            names.new.is_empty() && names.before.is_empty() && names.open.is_empty()
        };
        assert!(is_empty(&names));
        let erasures: [fn(&ServerNames); 2] = [ServerNames::clear, |names| names.want(false)];
        for erase in erasures {
            let names = wanted();
            names.add(&[segment(1, 0, &hello()), segment(2, 0, &hello()[..9])]);
            names.take();
            names.note(&segment(3, 0, &[]).flow, "a.example".to_owned());
            assert!(!is_empty(&names));
            erase(&names);
            assert!(is_empty(&names));
        }
    }

    #[test]
    fn a_length_beyond_the_copy_is_no_segment() {
        let names = wanted();
        let mut broken = segment(1, 0, &hello());
        broken.length = u32::try_from(SEGMENT).expect("small") + 1;
        names.add(&[broken]);
        assert!(names.take().is_empty());
    }
}
