//! The handle of the resolver: starts it, changes it while it runs, and tells of it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_core::dns::NameRef;
use tokio::task::{AbortHandle, JoinHandle};

use crate::cache::{Entry, Figures, Glob};
use crate::hooks::{ClientLookup, Daemon, FqdnPolicy, LocalAnswers, StartTask, Upstream};
use crate::query_log::{QueryLog, Totals};
use crate::serve::kernel_cache::{Dataplane, KernelCache};
use crate::serve::listen::{Listeners, Listening};
use crate::serve::slow_path::tasks::QUEUE;
use crate::serve::udp::Worker;
use crate::serve::udp::worker::Reins;
use crate::serve::{QueryOutcome, Settings, Shared, State, Tls};
use crate::threads;

/// What could not be bound is tried again after this.
const AGAIN: Duration = Duration::from_secs(5);
/// Longest wait for the threads at the end.
const THREAD_END_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs until it is stopped or dropped.
pub struct Resolver {
    shared: Arc<Shared>,
    listeners: Arc<Mutex<Listeners>>,
    reins: Arc<[Arc<Reins>]>,
    /// Threads that end by themselves once they are told to.
    threads: Mutex<Vec<JoinHandle<()>>>,
    log_thread: Mutex<Option<JoinHandle<()>>>,
    tasks: Vec<AbortHandle>,
}

/// Inputs of answers that change together; none leaves an input as it is.
#[derive(Default)]
pub struct Inputs {
    pub settings: Option<Settings>,
    pub clients: Option<Arc<dyn ClientLookup>>,
    pub local_answers: Option<Arc<dyn LocalAnswers>>,
}

/// How it is.
#[derive(Clone, Debug)]
pub struct Status {
    pub listening: Vec<Listening>,
    /// Where it listens for TLS and HTTPS, or why not.
    pub secure: Vec<(SocketAddr, Result<SocketAddr, String>)>,
    /// Threads that read sockets.
    pub workers: usize,
    pub cache: Figures,
    /// Questions that the dataplane answered by itself, since the start.
    pub repeated: u64,
    /// Questions that are with an upstream.
    pub asking: usize,
    /// Connections that are open.
    pub connections: usize,
    /// Questions that were dropped since the start: because too many waited, and by the limit of their network.
    pub overloaded: u64,
    pub limited: u64,
    /// Connections that were closed since the start because there were too many.
    pub crowded: u64,
    /// Since midnight.
    pub today: Totals,
    /// Records that the log lost since the start, and why it writes no files.
    pub unlogged: u64,
    pub log_error: Option<String>,
}

impl Resolver {
    /// Its tasks run on the runtime that this is called in. Addresses that cannot be bound are told of by
    /// [`Resolver::status`]; an error is that no thread can be started.
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
        // One buffer for each worker, one for answers of the dataplane, one for the tasks.
        let log = QueryLog::new(settings.log.clone(), count + 2, wall);
        let kernel_cache = KernelCache::new(dataplane, log.clone(), count);
        let state = State { settings: Arc::new(settings), clients, local_answers, fqdn_policy };
        let shared = Shared::new(state, ask, log.clone(), kernel_cache, supervisor.clone());
        let (hand, handed) = tokio::sync::mpsc::channel(QUEUE);
        let (mut threads, mut reins) = (Vec::with_capacity(count + 1), Vec::with_capacity(count));
        for index in 0..count {
            let (worker, own) = Worker::new(shared.clone(), hand.clone(), index)?;
            reins.push(own);
            let worker = Mutex::new(worker);
            let run = move || worker.lock().unwrap_or_else(PoisonError::into_inner).run();
            threads.push(threads::supervise(&*supervisor, format!("dns-{index}"), run));
        }
        if shared.kernel_cache.works() {
            let repeating = shared.clone();
            let repeat = move || repeating.run_kernel_cache();
            threads.push(threads::supervise(&*supervisor, "dns-repeat".into(), repeat));
        }
        let log_thread = threads::supervise(&*supervisor, "dns-log".into(), move || log.run());
        let (attending, handed) = (shared.clone(), Arc::new(tokio::sync::Mutex::new(handed)));
        let attend = move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(attending.clone().attend(handed.clone()))
        };
        let attending = supervisor.restart_until_done("dns_slow_path".into(), Box::new(attend));
        let mut resolver = Resolver {
            listeners: Arc::default(),
            reins: reins.into(),
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

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers over TLS and HTTPS from now on, where the settings say.
    pub fn secure(&self, tls: Arc<dyn Tls>) {
        // The first one stays: it follows its certificate by itself.
        let _ = self.shared.tls.set(tls);
        self.bind();
    }

    fn bind(&self) {
        let wanted = self.shared.state.load().settings.clone();
        let mut listeners = self.listeners();
        listeners.set(&self.shared, &wanted.listen, &self.reins);
        listeners.set_secure(&self.shared, &wanted.secure);
    }

    fn rebinding(&self) -> StartTask {
        let (shared, listeners, reins) = (self.shared.clone(), self.listeners.clone(), self.reins.clone());
        Box::new(move || Box::pin(rebind(shared.clone(), listeners.clone(), reins.clone())))
    }

    /// Takes over inputs of answers in one step, from the next question on. What the kernel repeats of older answers has
    /// ended when this returns; nothing else ends it.
    pub fn publish(&self, inputs: Inputs) {
        let Inputs { settings, clients, local_answers } = inputs;
        let settings = settings.map(Arc::new);
        if let Some(settings) = &settings {
            self.shared.cache.set_limit(settings.cache.bytes);
            if settings.log != self.settings().log {
                self.shared.log.set(settings.log.clone());
            }
        }
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

    /// Other settings from the next question on. Listeners that stay are not touched; the number of workers stays as it
    /// was at the start.
    pub fn reconfigure(&self, settings: Settings) -> Vec<Listening> {
        self.publish(Inputs { settings: Some(settings), ..Inputs::default() });
        self.listeners().status()
    }

    /// What would become of a client's question for a name, or for one that nothing is said of.
    pub fn dry_run(&self, from: IpAddr, name: Option<NameRef<'_>>) -> QueryOutcome {
        self.shared.dry_run(from, name)
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.shared.state.load().settings.clone()
    }

    pub fn status(&self) -> Status {
        self.shared.kernel_cache.collect();
        let counts = &self.shared.counts;
        let of = |count: &std::sync::atomic::AtomicU64| count.load(std::sync::atomic::Ordering::Relaxed);
        let (listening, secure) = {
            let listeners = self.listeners();
            (listeners.status(), listeners.secure())
        };
        Status {
            listening,
            secure,
            workers: self.reins.len(),
            cache: self.shared.cache.figures(),
            repeated: self.shared.kernel_cache.hits(),
            asking: self.shared.pending_queries.len(),
            connections: self.shared.connection_limiter.len(),
            overloaded: of(&counts.overloaded),
            limited: self.shared.limit.dropped(),
            crowded: of(&counts.crowded),
            today: self.shared.log.today(),
            unlogged: self.shared.log.lost(),
            log_error: self.shared.log.error(),
        }
    }

    /// Entries of the cache whose names match a glob (`*` and `?`), sorted by name, at most `limit`; with the TTL that each
    /// has left, in seconds: 0 for those that are kept only to stand in for a fresh answer.
    pub fn cached(&self, pattern: &str, limit: usize) -> Vec<(Arc<Entry>, u32)> {
        let now = self.shared.clock.ms();
        let entries = self.shared.cache.list(&Glob::new(pattern), limit);
        entries.into_iter().map(|entry| (entry.clone(), entry.ttl_left(now))).collect()
    }

    /// Forgets the entries whose names match a glob, and says how many; all of them without one.
    pub fn flush(&self, pattern: Option<&str>) -> usize {
        let flushed = self.shared.cache.flush(&pattern.map_or(Glob::ALL, Glob::new));
        self.shared.kernel_cache.invalidate();
        flushed
    }

    /// Forgets what came by a way.
    pub fn flush_partition(&self, partition: u16) -> usize {
        let flushed = self.shared.cache.flush_partition(partition);
        self.shared.kernel_cache.invalidate();
        flushed
    }

    /// Records and figures of clients. Reading old records waits for files.
    pub fn log(&self) -> Arc<QueryLog> {
        self.shared.kernel_cache.collect();
        self.shared.log.clone()
    }

    /// Closes the sockets and waits for the threads.
    pub async fn stop(self) {
        self.halt();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let log = self.log_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // They end within one round; one that has just panicked is not waited for.
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
        self.listeners().close(&self.reins);
        for reins in self.reins.iter() {
            reins.stop();
        }
        self.shared.kernel_cache.end();
    }
}

/// Binds what could not be bound, again and again.
async fn rebind(shared: Arc<Shared>, listeners: Arc<Mutex<Listeners>>, reins: Arc<[Arc<Reins>]>) {
    loop {
        tokio::time::sleep(AGAIN).await;
        let mut listeners = listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.lacking() {
            let wanted = shared.state.load().settings.clone();
            listeners.set(&shared, &wanted.listen, &reins);
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
