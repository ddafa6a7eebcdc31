//! Rules for what a model reads: no secrets, and pseudonyms if the settings ask for them.

use gateway_core::assistant::privacy::PromptPrivacy;
use gateway_core::pseudonyms::{PseudonymKey, Pseudonymizer};
use gateway_model::State;
use gateway_model::secrets::Scope;

use super::model_access::assistant;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::support_bundle;

/// Returns the rules of one request. Each has pseudonyms of its own.
pub(super) async fn of(cx: &Cx) -> Result<PromptPrivacy, ApiError> {
    let config = assistant(cx)?.config();
    let open = cx.open()?;
    let secrets = opened_secrets(open);
    if !config.pseudonyms {
        return Ok(PromptPrivacy::new(secrets, None));
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key)
        .map_err(|error| ApiError::internal(&std::io::Error::other(error.to_string())))?;
    let (vocabulary, terms) =
        support_bundle::private_terms(cx).await.map_err(|error| ApiError::internal(&error))?;
    let names: Vec<String> = names(&open.store.current());
    blocking(move || {
        let pseudonymizer = Pseudonymizer::new(PseudonymKey::new(&key), vocabulary, terms);
        let mut privacy = PromptPrivacy::new(secrets, Some(pseudonymizer));
        names.iter().for_each(|name| privacy.know(name));
        privacy
    })
    .await
}

/// Returns the secrets that were opened. No other one has been in the memory of this process.
fn opened_secrets(open: &Open) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut state = State::clone(&open.store.current());
    state.visit_secrets(Scope::All, &mut |_, secret| {
        if secret.is_opened() {
            secrets.push(secret.expose().to_owned());
        }
    });
    for key in &open.worlds.configuration().file().auth.api_keys {
        secrets.push(key.key.expose().to_owned());
    }
    secrets
}

/// Returns the names of the objects that an answer may be about.
fn names(state: &State) -> Vec<String> {
    let devices = state.devices.iter().map(|device| device.name.clone());
    let groups = state.device_groups.iter().map(|group| group.name.clone());
    let tunnels = state.tunnels.iter().map(|tunnel| tunnel.name.clone());
    let proxies = state.proxies.iter().map(|proxy| proxy.name.clone());
    let policies = state.routing_policies.iter().map(|policy| policy.name.clone());
    devices.chain(groups).chain(tunnels).chain(proxies).chain(policies).collect()
}
