//! From a question to its answer.
//!
//! Two paths lead there. What can be answered at once (filtered names, what is stored here, what is cached) is answered by
//! the threads that read the sockets ([`immediate`]); everything else goes to tasks that may wait ([`resolve`]). Both write
//! their answers with the same functions ([`asking`]), so nobody can tell which one answered.

pub mod asking;
pub mod clock;
pub mod counts;
pub mod fate;
pub mod fetch;
pub mod general;
pub mod immediate;
pub mod limit;
pub mod listen;
mod notified;
pub mod repeat;
pub mod resolve;
pub mod secure;
pub mod settings;
pub mod stream;
pub mod trace;
pub mod transport;
pub mod udp;

#[cfg(test)]
pub(crate) mod doubles;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use crate::cache::Cache;
use crate::log::Log;
use crate::seam::{Ask, Book, Clients, Failure, Learn, Query, Reply, Supervise};

pub use asking::Asking;
pub use clock::{Clock, Moment};
pub use fate::Fate;
pub use fetch::Flights;
pub use repeat::Repeater;
pub use secure::Tls;
pub use settings::Settings;
pub use trace::{Status, Trace};
pub use transport::Transport;

/// What answers are made by; replaced as a whole.
#[derive(Clone)]
pub struct State {
    pub settings: Arc<Settings>,
    pub clients: Arc<dyn Clients>,
    pub book: Arc<dyn Book>,
    pub learn: Arc<dyn Learn>,
}

/// What all paths share.
pub struct Shared {
    pub state: ArcSwap<State>,
    pub cache: Cache,
    pub clock: Clock,
    /// Workers write to the lanes of their numbers, tasks to those that follow.
    pub log: Arc<Log>,
    pub counts: counts::Counts,
    pub limit: limit::Limit,
    pub crowd: stream::Crowd,
    pub repeater: Repeater,
    /// Without it nobody is answered over TLS.
    pub(crate) tls: OnceLock<Arc<dyn Tls>>,
    pub(crate) flights: Flights,
    pub(crate) ask: Box<dyn AskAny>,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) supervisor: Arc<dyn Supervise>,
    this: std::sync::Weak<Shared>,
}

/// `Ask` behind a pointer.
pub(crate) trait AskAny: Send + Sync {
    fn ask(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send + '_>>;
}

impl<A: Ask> AskAny for A {
    fn ask(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send + '_>> {
        Box::pin(Ask::ask(self, query))
    }
}

impl Shared {
    /// Tasks run on the runtime that this is called in.
    pub fn new(
        state: State,
        ask: impl Ask,
        log: Arc<Log>,
        repeater: Repeater,
        supervisor: Arc<dyn Supervise>,
    ) -> Arc<Shared> {
        Arc::new_cyclic(|this| Shared {
            supervisor,
            cache: Cache::new(state.settings.cache.bytes),
            state: ArcSwap::from_pointee(state),
            clock: Clock::new(log.wall().clone()),
            log,
            counts: counts::Counts::default(),
            limit: limit::Limit::default(),
            crowd: stream::Crowd::default(),
            repeater,
            tls: OnceLock::new(),
            flights: Flights::default(),
            ask: Box::new(ask),
            runtime: tokio::runtime::Handle::current(),
            this: this.clone(),
        })
    }
}
