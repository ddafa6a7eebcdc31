//! Objects on trial, for the tables of good and bad inputs of the kinds.

use serde_json::{Value, json};

use crate::edit::{EditError, Written};
use crate::registry::{Kind, kind};
use crate::state::State;

pub(super) fn draft() -> State {
    let mut state = State::new("2026-11-20T12:00:00Z".parse().unwrap());
    create(&mut state, "dns_zone", json!({"name": "home.lan"})).unwrap();
    state.begin("2026-11-20T12:00:01Z".parse().unwrap())
}

pub(super) fn of(noun: &str) -> &'static Kind {
    kind(noun).unwrap()
}

pub(super) fn create(state: &mut State, noun: &str, input: Value) -> Result<Written, EditError> {
    of(noun).create(state, input)
}

/// Returns paths and codes of problems, or the name of another refusal.
pub(super) fn refusal(result: Result<Written, EditError>) -> Vec<String> {
    match result {
        Ok(written) => panic!("accepted: {}", written.value),
        Err(EditError::Invalid(problems)) => {
            problems.iter().map(|p| format!("{} {}", p.path, p.code)).collect()
        }
        Err(EditError::Conflict { field, .. }) => vec![format!("{field} taken")],
        Err(EditError::InUse { references, .. }) => vec![format!("in use {:?}", references.referenced_by)],
        Err(EditError::Protected { .. }) => vec!["protected".to_owned()],
        Err(other) => panic!("{other}"),
    }
}

pub(super) fn refused(noun: &str, cases: &[(Value, &[&str])]) {
    for (input, want) in cases {
        assert_eq!(refusal(create(&mut draft(), noun, input.clone())), *want, "{noun} {input}");
    }
}

/// Fields of the created object, and paths of warnings besides those for the whole of it.
pub(super) fn made(state: &mut State, noun: &str, input: Value) -> (Value, Vec<String>) {
    let written =
        create(state, noun, input.clone()).unwrap_or_else(|error| panic!("{noun} {input}: {error}"));
    let paths = written.warnings.into_iter().map(|warning| warning.path).filter(|path| !path.is_empty());
    (written.value, paths.collect())
}
