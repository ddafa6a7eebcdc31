//! Answers that the ingress program gives by itself. They end with this: without the daemon the resolver is silent, and
//! so is the program.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aya::maps::{MapData, ProgramArray, RingBuf};
use gateway_common::maps as spec;
use gateway_common::wire::{AnswerGiven, AnswerKey, AnswerValue};
use gateway_dns::serve::kernel_cache;
use zerocopy::FromBytes as _;

use super::load::ANSWER;
use super::maps::{ArrayMap, Entries as _, HashTable, open};
use super::{Error, Programs};

/// The name of the map of programs, which holds no data of ours.
const CALLS: &str = "gw_calls";

pub struct Answers {
    maps: Mutex<Maps>,
    given: Mutex<RingBuf<MapData>>,
    /// The program is called while this is held.
    _calls: ProgramArray<MapData>,
}

struct Maps {
    answers: HashTable<spec::Answers>,
    epoch: ArrayMap<spec::Epoch>,
}

impl Programs {
    /// Lets the ingress program answer out of what the resolver puts there; once.
    pub fn answers(&mut self) -> Result<Answers, Error> {
        let maps = Maps {
            answers: HashTable(open::<spec::Answers, _>(&mut self.ebpf)?),
            epoch: ArrayMap(open::<spec::Epoch, _>(&mut self.ebpf)?),
        };
        let given = open::<spec::Given, _>(&mut self.ebpf)?;
        let missing = || Error::Missing { what: "map", name: CALLS.to_owned() };
        let calls = self.ebpf.take_map(CALLS).ok_or_else(missing)?;
        let failed = |source| Error::Map { operation: "open", map: CALLS, source: Box::new(source) };
        let mut calls = ProgramArray::try_from(calls).map_err(failed)?;
        let refused = |source| Error::Program { name: ANSWER, source: Box::new(source) };
        let program = self.program(ANSWER)?.fd().map_err(refused)?.try_clone().map_err(|error| {
            let source = Box::new(aya::programs::ProgramError::IOError(error));
            Error::Program { name: ANSWER, source }
        })?;
        calls.set(0, &program, 0).map_err(failed)?;
        Ok(Answers { maps: Mutex::new(maps), given: Mutex::new(given), _calls: calls })
    }
}

/// Shared, so that the resolver has it and tests can look.
#[derive(Clone)]
pub struct KernelDnsCache(pub Arc<Answers>);

impl kernel_cache::Dataplane for KernelDnsCache {
    fn set_epoch(&self, epoch: u64) {
        if let Err(error) = lock(&self.0.maps).epoch.set(0, epoch) {
            tracing::error!(%error, "answers that may have changed cannot be taken back from the dataplane");
        }
    }

    fn put(&self, key: &AnswerKey, value: &AnswerValue) {
        // A full map, say: then the resolver goes on answering.
        let _ = lock(&self.0.maps).answers.put(key, value);
    }

    fn remove(&self, keys: &[AnswerKey]) {
        let mut maps = lock(&self.0.maps);
        for key in keys {
            // One that is not there was never taken.
            let _ = maps.answers.remove(key);
        }
    }

    fn given(&self, tell: &mut dyn FnMut(AnswerGiven)) {
        let mut ring = lock(&self.0.given);
        while let Some(item) = ring.next() {
            if let Ok((given, _)) = AnswerGiven::read_from_prefix(&item) {
                tell(given);
            }
        }
    }
}

/// What is behind these locks is whole between calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
