//! Backends of the egresses that the daemon runs itself: tunnels, their bridges, and the relay to proxies. A run
//! treats each as a stage; it knows their order, not their kinds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;

use gateway_core::plan::Plan;
use tokio::sync::{Mutex, MutexGuard};

use crate::os::{Backend, LastApplied, Outcome, SyncPass};

pub(super) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Kind of egress backend, with the state that it last applied.
pub trait EgressBackend: Send + Sync {
    /// Returns the name for outcomes.
    fn name(&self) -> &'static str;

    /// Reports whether its entries are links of the kernel. New links are facts of the next plan.
    fn makes_links(&self) -> bool;

    /// Reads the current state and compares it with the plan.
    fn open<'a>(&'a self, plan: &'a Plan) -> Pending<'a, Box<dyn Stage + 'a>>;
}

/// Part of a run for one backend.
pub trait Stage: Send {
    fn put(&mut self) -> Pending<'_, ()>;

    fn remove(&mut self) -> Pending<'_, ()>;

    fn close(self: Box<Self>) -> (&'static str, Outcome);
}

type DesiredEntries<'a, B> = Cow<'a, BTreeMap<<B as Backend>::Key, <B as Backend>::Value>>;

/// [`EgressBackend`] over a [`Backend`].
pub struct SyncedBackend<B: Backend> {
    name: &'static str,
    makes_links: bool,
    backend: B,
    want: fn(&Plan) -> DesiredEntries<'_, B>,
    memory: Mutex<LastApplied<B::Key, B::Value>>,
}

impl<B: Backend> SyncedBackend<B> {
    pub fn new(name: &'static str, backend: B, want: fn(&Plan) -> DesiredEntries<'_, B>) -> Self {
        Self { name, makes_links: false, backend, want, memory: Mutex::default() }
    }

    pub fn making_links(self) -> Self {
        Self { makes_links: true, ..self }
    }
}

impl<B: Backend + Send> EgressBackend for SyncedBackend<B> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn makes_links(&self) -> bool {
        self.makes_links
    }

    fn open<'a>(&'a self, plan: &'a Plan) -> Pending<'a, Box<dyn Stage + 'a>> {
        Box::pin(async move {
            let memory = self.memory.lock().await;
            let pass = SyncPass::over(&self.backend, (self.want)(plan), &memory).await;
            Box::new(Open { name: self.name, pass, memory }) as Box<dyn Stage + 'a>
        })
    }
}

struct Open<'a, B: Backend> {
    name: &'static str,
    pass: SyncPass<'a, B>,
    memory: MutexGuard<'a, LastApplied<B::Key, B::Value>>,
}

impl<B: Backend> Stage for Open<'_, B> {
    fn put(&mut self) -> Pending<'_, ()> {
        Box::pin(self.pass.put())
    }

    fn remove(&mut self) -> Pending<'_, ()> {
        Box::pin(self.pass.remove())
    }

    fn close(self: Box<Self>) -> (&'static str, Outcome) {
        let Self { name, pass, mut memory } = *self;
        (name, pass.close(&mut memory))
    }
}
