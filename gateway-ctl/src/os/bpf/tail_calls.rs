//! Maps of tail calls. A map has its programs for as long as the daemon has the map.

use aya::Ebpf;
use aya::maps::{MapData, MapError, ProgramArray};
use aya::programs::ProgramFd;

use super::Error;

/// Map of tail calls from one program to others.
pub(super) struct TailCalls {
    map: ProgramArray<MapData>,
    name: &'static str,
}

impl TailCalls {
    /// Takes the empty map out of a loaded object.
    pub(super) fn take(ebpf: &mut Ebpf, name: &'static str) -> Result<TailCalls, Error> {
        let map = ebpf.take_map(name).ok_or_else(|| Error::Missing { what: "map", name: name.to_owned() })?;
        let map = ProgramArray::try_from(map).map_err(|error| failed("open", name, error))?;
        Ok(TailCalls { map, name })
    }

    /// Puts programs into the map.
    pub(super) fn fill(&mut self, programs: &[ProgramFd]) -> Result<(), Error> {
        // The first program calls the others, so it comes last.
        for (index, program) in (0..).zip(programs).collect::<Vec<_>>().into_iter().rev() {
            self.map.set(index, program, 0).map_err(|error| failed("fill", self.name, error))?;
        }
        Ok(())
    }

    /// Removes as many programs from the map.
    pub(super) fn clear(&mut self, programs: &[ProgramFd]) -> Result<(), Error> {
        for (index, _) in (0..).zip(programs) {
            self.map.clear_index(&index).map_err(|error| failed("empty", self.name, error))?;
        }
        Ok(())
    }
}

fn failed(operation: &'static str, map: &'static str, source: MapError) -> Error {
    Error::Map { operation, map, source: Box::new(source) }
}
