//! Private texts of this gateway, and the words that are its own.

use std::io;

use gateway_core::compile::tunnel_interface;
use gateway_core::pseudonyms::{PrivateTerms, Vocabulary, for_each_string};
use gateway_ctl::services::dhcp::DhcpServer;
use gateway_ctl::services::hosts::HostInventory;
use gateway_model::State;
use gateway_model::secrets::Scope;
use gateway_model::settings::Bootstrap;
use gateway_model::settings::group::GROUPS;
use serde::Serialize;
use serde_json::Value;

use super::parts::reply_of;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;

/// Operations whose texts are private: configuration, accounts, and what was observed.
const SOURCES: &[&str] = &["export_config", "list_users", "list_api_keys"];

/// Returns the words of the gateway and the private texts.
pub(super) async fn collect(cx: &Cx) -> io::Result<(Vocabulary, PrivateTerms)> {
    let failed = |error: ApiError| io::Error::other(error.message);
    let (vocabulary, mut terms) = of_gateway(cx, |_, _| Ok(())).await?;
    for source in SOURCES {
        let reply = reply_of(cx, source, &[]).await.map_err(failed)?;
        let added = blocking(move || {
            for_each_string(io::BufReader::with_capacity(1 << 16, reply), |text| terms.add_name(text))?;
            io::Result::Ok(terms)
        });
        terms = added.await.map_err(failed)??;
    }
    Ok((vocabulary, terms))
}

/// Returns the words of the gateway and the private texts of its objects, without those of accounts. Needs no rights.
pub(crate) async fn private_terms(cx: &Cx) -> io::Result<(Vocabulary, PrivateTerms)> {
    of_gateway(cx, |open, terms| {
        add_texts(&gateway_model::bulk_edit::export(&open.store.current(), false), terms)
    })
    .await
}

/// Returns the words of the gateway, and the private texts of its secrets and of what it has observed, with more.
async fn of_gateway(
    cx: &Cx,
    more: impl FnOnce(&Open, &mut PrivateTerms) -> io::Result<()> + Send + 'static,
) -> io::Result<(Vocabulary, PrivateTerms)> {
    let failed = |error: ApiError| io::Error::other(error.message);
    let (own, document) = (cx.clone(), cx.api.openapi());
    let collected = blocking(move || {
        let open = own.open().map_err(failed)?;
        let vocabulary = vocabulary(open, &serde_json::from_slice(&document)?)?;
        let mut terms = PrivateTerms::default();
        add_secrets(open, &mut terms);
        add_observed(open, &mut terms)?;
        more(open, &mut terms)?;
        io::Result::Ok((vocabulary, terms))
    });
    collected.await.map_err(failed)?
}

/// Returns the words of the API, the defaults, and the names that the program gives to its parts.
fn vocabulary(open: &Open, document: &Value) -> io::Result<Vocabulary> {
    let mut vocabulary = Vocabulary::default();
    vocabulary.add_schema(document);
    vocabulary.add_values(&serde_json::to_value(Bootstrap::default())?);
    for group in GROUPS {
        vocabulary.add_values(&Value::String(group.key.to_owned()));
    }
    let builtin = gateway_model::bulk_edit::export(&State::new(open.now()), false);
    vocabulary.add_values(&Value::Object(builtin));
    for services in open.all_services() {
        services.names().iter().for_each(|name| vocabulary.add(name));
    }
    open.worlds.last().facts.links.keys().for_each(|name| vocabulary.add_interface(name));
    open.checks.last().iter().for_each(|check| vocabulary.add(check.check.name));
    open.world().status.subsystems.keys().for_each(|name| vocabulary.add(name));
    Ok(vocabulary)
}

/// Adds the secrets that were opened. No other one has been in the memory of this process.
fn add_secrets(open: &Open, terms: &mut PrivateTerms) {
    let mut state = State::clone(&open.store.current());
    state.visit_secrets(Scope::All, &mut |_, secret| {
        if secret.is_opened() {
            terms.add_secret(secret.expose());
        }
    });
    for key in &open.worlds.configuration().file().auth.api_keys {
        terms.add_secret(key.key.expose());
    }
}

/// Adds names that the configuration file has, and those that hosts gave themselves.
fn add_observed(open: &Open, terms: &mut PrivateTerms) -> io::Result<()> {
    terms.add_name(&rustix::system::uname().nodename().to_string_lossy());
    // Interfaces of tunnels have their names, or the beginning of them.
    open.store.current().tunnels.iter().for_each(|tunnel| terms.add_name(&tunnel_interface(tunnel)));
    open.worlds.last().facts.links.keys().for_each(|name| terms.add_name(name));
    add_texts(&*open.worlds.in_force().config, terms)?;
    for host in &open.handles.get::<HostInventory>().list().hosts {
        add_texts(host, terms)?;
    }
    for lease in open.handles.get::<DhcpServer>().leases(open.now()) {
        lease.lease.hostname.iter().for_each(|name| terms.add_name(name));
    }
    Ok(())
}

fn add_texts(value: &impl Serialize, terms: &mut PrivateTerms) -> io::Result<()> {
    let text = serde_json::to_vec(value)?;
    for_each_string(&text[..], |text| terms.add_name(text))
}
