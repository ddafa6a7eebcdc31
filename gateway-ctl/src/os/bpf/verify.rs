//! Verification of the programs by the kernel, which takes most of the time of a start.
//!
//! The verifier takes no lock, so each program is loaded in a thread of its own.
//!
//! Decision 0131 says why.

use std::collections::BTreeMap;
use std::thread;

use aya::Ebpf;
use aya::programs::{Program, ProgramError};

use super::Error;

/// Result of the kernel for each program.
pub(super) struct Verified(BTreeMap<String, Result<(), ProgramError>>);

impl Verified {
    /// Removes the result for a program.
    pub(super) fn take(&mut self, name: &'static str) -> Result<(), Error> {
        match self.0.remove(name) {
            Some(result) => result.map_err(|e| Error::Program { name, source: Box::new(e) }),
            None => Err(Error::Missing { what: "program", name: name.to_owned() }),
        }
    }
}

/// Returns whether a program runs in drivers. Only some interfaces need those.
pub(super) fn is_xdp(program: &Program) -> bool {
    matches!(program, Program::Xdp(_))
}

/// Loads the programs of the object that are `wanted`. The `longest` one begins first.
pub(super) fn load(ebpf: &mut Ebpf, wanted: impl Fn(&Program) -> bool, longest: &str) -> Verified {
    let all = ebpf.programs_mut();
    let mut programs: Vec<(&str, &mut Program)> = all.filter(|(_, program)| wanted(program)).collect();
    programs.sort_by_key(|(name, _)| *name != longest);
    thread::scope(|scope| {
        let threads: Vec<_> = programs
            .into_iter()
            .map(|(name, program)| (name.to_owned(), scope.spawn(move || load_one(program))))
            .collect();
        let results = threads.into_iter().map(|(name, thread)| {
            (name, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        Verified(results.collect())
    })
}

fn load_one(program: &mut Program) -> Result<(), ProgramError> {
    match program {
        Program::SchedClassifier(program) => program.load(),
        Program::SocketFilter(program) => program.load(),
        Program::Xdp(program) => program.load(),
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}
