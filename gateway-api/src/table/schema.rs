//! Source of the schema of a type, for the document of the API.
//!
//! The document is committed and embedded (`openapi.json`), and a test generates it again. The daemon that is installed
//! generates none, so a release build leaves the code out.

use schemars::{Schema, SchemaGenerator};

/// Generates the schema of an input or an output.
#[derive(Clone, Copy)]
pub struct SchemaSource(#[cfg(debug_assertions)] fn(&mut SchemaGenerator) -> Schema);

impl SchemaSource {
    #[cfg(debug_assertions)]
    pub const fn new(generate: fn(&mut SchemaGenerator) -> Schema) -> Self {
        Self(generate)
    }

    #[cfg(not(debug_assertions))]
    pub const fn new(_: fn(&mut SchemaGenerator) -> Schema) -> Self {
        Self()
    }

    #[cfg(debug_assertions)]
    pub fn generate(self, generator: &mut SchemaGenerator) -> Schema {
        (self.0)(generator)
    }
}
