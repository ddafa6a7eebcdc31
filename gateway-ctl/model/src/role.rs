//! Rights of the four roles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::validated::text_enum;

text_enum! {
    /// Role of a user or an API key.
    pub enum Role {
        Admin = "admin",
        Operator = "operator",
        Viewer = "viewer",
        /// For API keys only: reads, and the diagnostic actions.
        Diagnostics = "diagnostics",
    }
}
