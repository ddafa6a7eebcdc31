//! Who tells the resolver of changes: the engine before a plan is live, the store, lists and copies that came, the clock.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::picture::Picture;
use super::{Names, lists, secondaries};
use crate::engine::Engine;
use crate::store::Store;

/// Changes that come in a row are taken together.
const PAUSE: Duration = Duration::from_millis(30);
/// How often what was learned is brought to what still holds.
const SWEEP: Duration = Duration::from_secs(4);
/// How often signatures are looked at; they are made anew days before they end.
const RESIGN: Duration = Duration::from_secs(60);

pub fn all(names: &Arc<Names>, store: Arc<Store>, engine: Arc<Engine>) {
    plans(names, &engine);
    tokio::spawn(changes(Arc::downgrade(names), store.clone(), engine.clone()));
    tokio::spawn(signatures(Arc::downgrade(names), store));
    tokio::spawn(learned(Arc::downgrade(names), engine));
}

/// A plan is taken over before it is live: no question leaves by a way that its packets no longer take.
fn plans(names: &Arc<Names>, engine: &Engine) {
    let (names, network) = (Arc::downgrade(names), engine.network().clone());
    engine.before_live(move |lowered| {
        if let Some(names) = names.upgrade() {
            names.renew(|| Arc::new(Picture::of_lowered(&names.config, lowered, &network)));
        }
    });
}

/// Follows the store and the plan until the resolver is gone.
async fn changes(names: Weak<Names>, store: Arc<Store>, engine: Arc<Engine>) {
    let (mut revisions, mut runs) = (store.watch(), engine.status());
    let Some(shelved) = names.upgrade().map(|names| names.shelf.changed.clone()) else { return };
    let mut seen = None;
    loop {
        // First without a reason: something may have changed between the start and here.
        revisions.mark_unchanged();
        runs.mark_unchanged();
        let Some(names) = names.upgrade() else { return };
        let known = (store.current().revision, engine.facts().neighbours.clone());
        let stored = seen.as_ref() != Some(&known);
        seen = Some(known);
        let (store, engine) = (store.clone(), engine.clone());
        let work = move || {
            let picture = names.renew(|| Arc::new(Picture::of(&names.config, &store, &engine)));
            // Lists are large and names of machines many; most runs change neither.
            if stored {
                let wanted = lists::wanted(&picture.state);
                names.subscriptions.set(&wanted);
                names.shelf.keep(&wanted);
                names.secondaries.set(&secondaries::wanted(&picture.state, &picture.dns));
                names.reread(&picture);
            }
        };
        if tokio::task::spawn_blocking(work).await.is_err() {
            tracing::error!("the resolver could not take over a change");
        }
        tokio::select! {
            changed = revisions.changed() => if changed.is_err() { return },
            changed = runs.changed() => if changed.is_err() { return },
            () = shelved.notified() => seen = None,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Has zones signed anew before their signatures end.
async fn signatures(names: Weak<Names>, store: Arc<Store>) {
    loop {
        tokio::time::sleep(RESIGN).await;
        let Some(names) = names.upgrade() else { return };
        if names.signatures.are_due(store.clock().now()) {
            names.shelf.changed.notify_one();
        }
    }
}

async fn learned(names: Weak<Names>, engine: Arc<Engine>) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if names.strong_count() == 0 {
            return;
        }
        let dataplane = engine.dataplane();
        let swept =
            tokio::task::spawn_blocking(move || dataplane.with(|programs| programs.sweep_learned())).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "what clients learned cannot be brought up to date");
        }
    }
}
