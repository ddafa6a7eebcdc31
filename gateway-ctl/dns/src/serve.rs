//! Path of a query to its answer.
//!
//! The threads that read the sockets answer at once from local data and the cache ([`fast_path`]). Tasks answer all
//! other queries and may wait ([`slow_path`]). Both write answers with the same functions ([`query`]).
//!
//! Two thirds of the cost of an answer is the kernel's socket I/O, so a thread reads up to 64 queries by one call and
//! sends by one call. Answers of upstreams are composed again (the alias chain, the records at its end, DNSSEC records
//! if asked for), so that the filter rules check every address. Each client is decided separately: answers are shared,
//! rules are not. A test compares both paths byte by byte.

pub(crate) mod accept;
pub(crate) mod clock;
pub(crate) mod connection_limiter;
pub(crate) mod drop_counters;
pub(crate) mod dry_run;
pub(crate) mod encrypted;
pub(crate) mod fast_path;
pub(crate) mod fetch;
pub mod kernel_cache;
pub mod kernel_filter;
pub(crate) mod listen;
mod notify;
pub(crate) mod pending_queries;
pub(crate) mod query;
pub mod query_trace;
pub(crate) mod rate_limit;
pub mod settings;
pub(crate) mod slow_path;
pub(crate) mod state;
pub(crate) mod tcp;
pub mod tls;
pub(crate) mod transport;
pub(crate) mod udp;

#[cfg(test)]
pub(crate) mod test_doubles;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use crate::cache::Cache;
use crate::hooks::{Failure, Query, Reply, Supervise, Upstream};
use crate::query_log::QueryLog;

pub use clock::{Clock, Now};
pub use connection_limiter::ConnectionLimiter;
pub use dry_run::QueryOutcome;
pub use kernel_cache::KernelCache;
pub use kernel_filter::KernelFilter;
pub use pending_queries::PendingQueries;
pub use query::QueryContext;
pub use query_trace::{QueryStatus as Status, Trace};
pub use settings::Settings;
pub use state::State;
pub use tls::Tls;
pub use transport::Transport;

/// State that all paths share.
pub struct Shared {
    pub state: ArcSwap<State>,
    pub cache: Cache,
    pub clock: Clock,
    /// Query log. Each worker writes to the buffer at its index; tasks write to the last buffer.
    pub log: Arc<QueryLog>,
    pub counts: drop_counters::Counts,
    pub limit: rate_limit::Limit,
    pub connection_limiter: ConnectionLimiter,
    pub kernel_cache: KernelCache,
    pub kernel_filter: KernelFilter,
    /// TLS acceptor. The resolver listens for DoT and DoH only if it is set.
    pub(crate) tls: OnceLock<Arc<dyn Tls>>,
    pub(crate) pending_queries: PendingQueries,
    pub(crate) ask: Box<dyn DynUpstream>,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) supervisor: Arc<dyn Supervise>,
    this: std::sync::Weak<Shared>,
}

/// Object-safe form of [`Upstream`].
pub(crate) trait DynUpstream: Send + Sync {
    fn send_query(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send + '_>>;
}

impl<A: Upstream> DynUpstream for A {
    fn send_query(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send + '_>> {
        Box::pin(Upstream::send_query(self, query))
    }
}

impl Shared {
    /// Creates the shared state. Tasks run on the Tokio runtime of the caller.
    pub fn new(
        state: State,
        ask: impl Upstream,
        log: Arc<QueryLog>,
        kernel_cache: KernelCache,
        supervisor: Arc<dyn Supervise>,
    ) -> Arc<Shared> {
        Arc::new_cyclic(|this| Shared {
            supervisor,
            cache: Cache::new(state.settings.cache.bytes),
            state: ArcSwap::from_pointee(state),
            clock: Clock::new(log.wall().clone()),
            log,
            counts: drop_counters::Counts::default(),
            limit: rate_limit::Limit::default(),
            connection_limiter: ConnectionLimiter::default(),
            kernel_filter: KernelFilter::new(kernel_cache.dataplane()),
            kernel_cache,
            tls: OnceLock::new(),
            pending_queries: PendingQueries::default(),
            ask: Box::new(ask),
            runtime: tokio::runtime::Handle::current(),
            this: this.clone(),
        })
    }
}
