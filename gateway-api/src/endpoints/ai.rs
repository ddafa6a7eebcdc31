//! The assistant: a language model that explains and suggests. It never applies anything.

mod in_process;
mod model_access;
mod models;
mod names;
mod privacy;
mod query;
mod runtime;
mod status;
mod suggestions;
mod tools;
mod validate;

use gateway_model::settings::groups::AssistantConfig;

use crate::authorization::Access;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.group::<AssistantConfig>("/ai/config", "replace_ai_config", Access::Administer);
    status::rows(t);
    models::rows(t);
    runtime::rows(t);
    validate::rows(t);
    query::rows(t);
}
