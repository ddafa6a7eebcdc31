//! Rights of the four roles.

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
