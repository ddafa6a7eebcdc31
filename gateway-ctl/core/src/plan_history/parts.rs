//! Parts of inputs: what a record holds of them.

use std::collections::BTreeMap;

use gateway_model::state::PartError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Parts of inputs, by key.
pub type Parts = BTreeMap<String, Vec<u8>>;

/// Part of inputs that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub key: String,
    /// `None`: the part is gone.
    pub value: Option<Vec<u8>>,
}

impl Part {
    /// Replaces or removes the part.
    pub fn apply(self, parts: &mut Parts) {
        match self.value {
            Some(value) => drop(parts.insert(self.key, value)),
            None => drop(parts.remove(&self.key)),
        }
    }
}

/// Error: inputs cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("the part {key} of the inputs cannot be read")]
    Json {
        key: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("the part {0} of the inputs is unknown")]
    Unknown(String),
    #[error("the state cannot be put together")]
    State(#[from] PartError),
}

pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain values with text keys")
}

/// Reads a part; without it, returns the default.
pub(super) fn read<T: DeserializeOwned + Default>(parts: &Parts, key: &str) -> Result<T, RestoreError> {
    let Some(bytes) = parts.get(key) else { return Ok(T::default()) };
    serde_json::from_slice(bytes).map_err(|source| RestoreError::Json { key: key.to_owned(), source })
}
