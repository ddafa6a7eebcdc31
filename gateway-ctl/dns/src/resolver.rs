//! Handle of the resolver: starts it, reconfigures it while it runs, and reports its status.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::NameRef;
use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinHandle};

use crate::cache::{CacheStats, Entry, Glob};
use crate::hooks::{ClientLookup, Daemon, FqdnPolicy, LocalAnswers, StartTask, Upstream};
use crate::query_log::{QueryLog, Totals};
use crate::serve::kernel_cache::{Dataplane, KernelCache};
use crate::serve::listen::{ListenStatus, Listeners};
use crate::serve::slow_path::tasks::QUEUE;
use crate::serve::udp::Worker;
use crate::serve::udp::worker::WorkerControl;
use crate::serve::{QueryOutcome, Settings, Shared, State, Tls};
use crate::threads;

/// Interval at which failed binds are retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum wait for the threads at the end.
const THREAD_END_TIMEOUT: Duration = Duration::from_secs(5);

/// Running resolver. It stops on [`Resolver::stop`] or when dropped.
pub struct Resolver {
    shared: Arc<Shared>,
    listeners: Arc<Mutex<Listeners>>,
    controls: Arc<[Arc<WorkerControl>]>,
    /// Threads that end by themselves on a stop signal.
    threads: Mutex<Vec<JoinHandle<()>>>,
    log_thread: Mutex<Option<JoinHandle<()>>>,
    tasks: Vec<AbortHandle>,
}

/// Inputs of answers that change together. None leaves an input unchanged.
#[derive(Default)]
pub struct Inputs {
    pub settings: Option<Settings>,
    pub clients: Option<Arc<dyn ClientLookup>>,
    pub local_answers: Option<Arc<dyn LocalAnswers>>,
}

/// Status of the resolver.
#[derive(Clone, Debug)]
pub struct Status {
    pub listening: Vec<ListenStatus>,
    /// Addresses for DoT and DoH, each with the bound address or the error.
    pub secure: Vec<(SocketAddr, Result<SocketAddr, String>)>,
    /// Threads that read sockets.
    pub workers: usize,
    pub cache: CacheStats,
    /// Queries that the dataplane answered from the kernel cache since the start.
    pub repeated: u64,
    /// Queries for blocked names that the dataplane answered from its filter since the start, and those among them that
    /// the resolver could not explain afterwards, because an input of answers had changed.
    pub filtered: u64,
    pub unexplained: u64,
    /// Queries that wait for an upstream.
    pub asking: usize,
    /// Connections that are open.
    pub connections: usize,
    /// Queries dropped since the start because the queue of the slow path was full. `limited` counts those that a rate
    /// limit dropped.
    pub overloaded: u64,
    pub limited: u64,
    /// Queries and connections dropped since the start because the host that sent them is not known.
    pub unidentified: u64,
    /// Connections closed since the start because of a connection limit.
    pub crowded: u64,
    /// Query statistics since midnight.
    pub today: Totals,
    /// Log records lost since the start. `log_error` is the reason why the log writes no files.
    pub unlogged: u64,
    /// Answers withheld since the start because a public name had a local address.
    pub rebinding: u64,
    pub log_error: Option<String>,
}

impl Resolver {
    /// Starts the resolver on the Tokio runtime of the caller. [`Resolver::status`] reports addresses that cannot be
    /// bound. Returns an error if the workers cannot be set up.
    pub async fn start(
        settings: Settings,
        clients: Arc<dyn ClientLookup>,
        local_answers: Arc<dyn LocalAnswers>,
        fqdn_policy: Arc<dyn FqdnPolicy>,
        ask: impl Upstream,
        dataplane: Option<Box<dyn Dataplane>>,
        daemon: Daemon,
    ) -> io::Result<Resolver> {
        let Daemon { supervisor, wall } = daemon;
        let count = match settings.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from).min(4),
            count => count,
        };
        // One buffer for each worker, one for hits of the kernel cache, one for the tasks.
        let log = QueryLog::new(settings.log.clone(), count + 2, wall);
        let kernel_cache = KernelCache::new(dataplane, log.clone(), count);
        let state = State { settings: Arc::new(settings), clients, local_answers, fqdn_policy };
        let shared = Shared::new(state, ask, log.clone(), kernel_cache, supervisor.clone());
        let (slow_path, queries) = tokio::sync::mpsc::channel(QUEUE);
        let (mut threads, mut controls) = (Vec::with_capacity(count + 1), Vec::with_capacity(count));
        for index in 0..count {
            let (worker, own) = Worker::new(shared.clone(), slow_path.clone(), index)?;
            controls.push(own);
            let worker = Mutex::new(worker);
            let run = move || worker.lock().run();
            threads.push(threads::supervise(&*supervisor, format!("dns-{index}"), run));
        }
        if shared.kernel_cache.works() {
            let repeating = shared.clone();
            let repeat = move || repeating.run_kernel_cache();
            threads.push(threads::supervise(&*supervisor, "dns-repeat".into(), repeat));
        }
        let log_thread = threads::supervise(&*supervisor, "dns-log".into(), move || log.run());
        let (attending, queries) = (shared.clone(), Arc::new(tokio::sync::Mutex::new(queries)));
        let attend = move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(attending.clone().serve_queue(queries.clone()))
        };
        let attending = supervisor.restart_until_done("dns_slow_path".into(), Box::new(attend));
        let mut resolver = Resolver {
            listeners: Arc::default(),
            controls: controls.into(),
            threads: Mutex::new(threads),
            log_thread: Mutex::new(Some(log_thread)),
            tasks: vec![attending.abort_handle()],
            shared,
        };
        resolver.bind();
        let rebinding = supervisor.restart_until_done("dns_rebinding".into(), resolver.rebinding());
        resolver.tasks.push(rebinding.abort_handle());
        Ok(resolver)
    }

    /// Enables DoT and DoH on the addresses of the settings.
    pub fn secure(&self, tls: Arc<dyn Tls>) {
        // The first acceptor stays: it follows certificate changes by itself.
        let _ = self.shared.tls.set(tls);
        self.bind();
    }

    fn bind(&self) {
        let wanted = self.shared.state.load().settings.clone();
        let mut listeners = self.listeners.lock();
        listeners.set(&self.shared, &wanted.listen, &self.controls);
        listeners.set_secure(&self.shared, &wanted.secure);
        // A client that a closed socket has just served must not be answered in the kernel.
        self.shared.kernel_cache.invalidate();
    }

    fn rebinding(&self) -> StartTask {
        let (shared, listeners, controls) =
            (self.shared.clone(), self.listeners.clone(), self.controls.clone());
        Box::new(move || Box::pin(rebind(shared.clone(), listeners.clone(), controls.clone())))
    }

    /// Replaces inputs of answers in one step, effective from the next query. Kernel cache entries from older inputs
    /// are invalid when this returns. Every change of an input must go through this call.
    pub fn publish(&self, inputs: Inputs) {
        let Inputs { settings, clients, local_answers } = inputs;
        let settings = settings.map(Arc::new);
        if let Some(settings) = &settings {
            self.shared.cache.set_limit(settings.cache.bytes);
            if settings.log != self.settings().log {
                self.shared.log.set(settings.log.clone());
            }
        }
        // The state before the change explains these hits.
        self.shared.collect_filter_hits();
        self.shared.state.rcu(|state| {
            let mut state = State::clone(state);
            state.settings = settings.clone().unwrap_or(state.settings);
            state.clients = clients.clone().unwrap_or(state.clients);
            state.local_answers = local_answers.clone().unwrap_or(state.local_answers);
            state
        });
        self.shared.kernel_cache.invalidate();
        if settings.is_some() {
            self.bind();
        }
    }

    /// Replaces the settings, effective from the next query. Unchanged listeners stay open; the number of workers stays
    /// as it was at the start. Returns the status of the listeners.
    pub fn reconfigure(&self, settings: Settings) -> Vec<ListenStatus> {
        self.publish(Inputs { settings: Some(settings), ..Inputs::default() });
        self.listeners.lock().status()
    }

    /// Returns the outcome of a client's query for a name without sending it. Without a name, it evaluates a name that
    /// no rule mentions.
    pub fn dry_run(&self, from: IpAddr, name: Option<NameRef<'_>>) -> QueryOutcome {
        self.shared.dry_run(from, name)
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.shared.state.load().settings.clone()
    }

    pub fn status(&self) -> Status {
        self.shared.kernel_cache.collect();
        self.shared.collect_filter_hits();
        let counts = &self.shared.counts;
        let of = |count: &std::sync::atomic::AtomicU64| count.load(std::sync::atomic::Ordering::Relaxed);
        let (listening, secure) = {
            let listeners = self.listeners.lock();
            (listeners.status(), listeners.secure())
        };
        Status {
            listening,
            secure,
            workers: self.controls.len(),
            cache: self.shared.cache.figures(),
            repeated: self.shared.kernel_cache.hits(),
            filtered: self.shared.kernel_filter.hits(),
            unexplained: self.shared.kernel_filter.unexplained(),
            asking: self.shared.pending_queries.len(),
            connections: self.shared.connection_limiter.len(),
            overloaded: of(&counts.overloaded),
            limited: self.shared.limit.dropped(),
            unidentified: of(&counts.unidentified),
            crowded: of(&counts.crowded),
            today: self.shared.log.today(),
            unlogged: self.shared.log.lost(),
            rebinding: self.shared.log.rebinding(),
            log_error: self.shared.log.error(),
        }
    }

    /// Returns at most `limit` cache entries whose names match a glob (`*` and `?`), sorted by name, each with its
    /// remaining TTL in seconds. The TTL is 0 for entries that are kept only as stale answers.
    pub fn cached(&self, pattern: &str, limit: usize) -> Vec<(Arc<Entry>, u32)> {
        let now = self.shared.clock.ms();
        let entries = self.shared.cache.list(&Glob::new(pattern), limit);
        entries.into_iter().map(|entry| (entry.clone(), entry.ttl_left(now))).collect()
    }

    /// Removes the cache entries whose names match a glob, or all entries without one. Returns their number.
    pub fn flush(&self, pattern: Option<&str>) -> usize {
        let flushed = self.shared.cache.flush(&pattern.map_or(Glob::ALL, Glob::new));
        self.shared.kernel_cache.invalidate();
        flushed
    }

    /// Removes the cache entries of a partition. Returns their number.
    pub fn flush_partition(&self, partition: u16) -> usize {
        let flushed = self.shared.cache.flush_partition(partition);
        self.shared.kernel_cache.invalidate();
        flushed
    }

    /// Returns the query log with records and client statistics. Reading old records blocks on files.
    pub fn log(&self) -> Arc<QueryLog> {
        self.shared.kernel_cache.collect();
        self.shared.collect_filter_hits();
        self.shared.log.clone()
    }

    /// Closes the sockets and waits for the threads.
    pub async fn stop(self) {
        self.halt();
        let threads = std::mem::take(&mut *self.threads.lock());
        let log = self.log_thread.lock().take();
        // Threads end within one round. A thread that is restarting after a panic is not waited for.
        let _ = tokio::time::timeout(THREAD_END_TIMEOUT, async {
            for thread in threads {
                let _ = thread.await;
            }
            self.shared.log.end();
            if let Some(log) = log {
                let _ = log.await;
            }
        })
        .await;
    }

    fn halt(&self) {
        for task in &self.tasks {
            task.abort();
        }
        self.listeners.lock().close(&self.controls);
        for control in self.controls.iter() {
            control.stop();
        }
        self.shared.kernel_cache.end();
    }
}

/// Retries failed binds at an interval, forever.
async fn rebind(shared: Arc<Shared>, listeners: Arc<Mutex<Listeners>>, controls: Arc<[Arc<WorkerControl>]>) {
    loop {
        tokio::time::sleep(RETRY_INTERVAL).await;
        let mut listeners = listeners.lock();
        if listeners.lacking() {
            let wanted = shared.state.load().settings.clone();
            listeners.set(&shared, &wanted.listen, &controls);
            listeners.set_secure(&shared, &wanted.secure);
        }
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.halt();
        self.shared.log.end();
    }
}
