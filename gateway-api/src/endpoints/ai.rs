//! The local language-model assistant.

use gateway_model::capability::Capability;
use gateway_model::settings::groups::AssistantConfig;

use crate::authorization::Access;
use crate::table::Method::{Delete, Get, Post};
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.group::<AssistantConfig>("/ai/config", "replace_ai_config", Access::Administer);
    t.unsupported(
        Capability::Assistant,
        &[
            (Get, "/ai/status"),
            (Post, "/ai/validate"),
            (Post, "/ai/policy"),
            (Post, "/ai/service"),
            (Get, "/ai/models/running"),
            (Post, "/ai/models/load"),
            (Post, "/ai/models/unload"),
            (Post, "/ai/models/pull"),
            (Delete, "/ai/models/{name}"),
            (Post, "/ai/query"),
        ],
    );
}
