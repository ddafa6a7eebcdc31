//! Writes to a store in an endless loop, and prints on standard output each intended write and each completed one. The
//! durability test kills it.
//!
//! Lines: `ready`, `+ ID` created, `? ID` about to delete, `- ID` deleted, `= KEY VALUE` set.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use gateway_ctl::clock::SystemClock;
use gateway_ctl::store::{AuditTicket, CommitError, Store};
use gateway_model::kinds::Device;
use gateway_model::{EditError, Id};
use serde_json::json;

const WRITERS: u32 = 3;

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).filter(|path| !path.to_string_lossy().starts_with('-'));
    let path = path.context("usage: store_writer STORE")?;
    let store = Arc::new(Store::open(path, SystemClock::shared())?);
    say("ready")?;
    let writers = (0..WRITERS).map(|writer| {
        let store = store.clone();
        std::thread::spawn(move || write(&store, writer))
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.join().map_err(|_| anyhow!("a writer panicked"))??;
    }
    Ok(())
}

fn write(store: &Store, writer: u32) -> Result<()> {
    let mut own: Vec<Id> = Vec::new();
    let key = format!("test.writer{writer}");
    let last = store.current().settings.get(&key).and_then(serde_json::Value::as_u64);
    for round in last.map_or(0, |last| last + 1).. {
        let device = Device { name: format!("w{writer} {round}"), ..Device::default() };
        let (made, _) = commit(store, "create_device", |draft| draft.create(device))?;
        say(&format!("+ {}", made.meta.id))?;
        own.push(made.meta.id);
        if own.len() > 4 {
            let gone = own.remove(0);
            say(&format!("? {gone}"))?;
            commit(store, "delete_device", |draft| draft.remove::<Device>(gone, None, true))?;
            say(&format!("- {gone}"))?;
        }
        commit(store, "set", |draft| {
            draft.set(&key, json!(round));
            Ok(())
        })?;
        say(&format!("= {key} {round}"))?;
    }
    Ok(())
}

fn commit<T>(
    store: &Store,
    action: &str,
    edit: impl FnOnce(&mut gateway_model::State) -> Result<T, EditError>,
) -> Result<T> {
    store.commit(AuditTicket::system(action, "device"), edit).map_err(|error| match error {
        CommitError::Refused { error, .. } => anyhow!("refused: {error}"),
        CommitError::Store(error) => anyhow!(error),
    })
}

/// One write per line, so that lines of several writers do not mix.
fn say(line: &str) -> Result<()> {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).context("standard output")
}
