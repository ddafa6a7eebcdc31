//! Panics of this process: each is logged, counted, and wakes the reconcile loop.
//!
//! A panic of a short-lived task (a connection, an exchange) ends only that task, which releases its resources. After
//! a panic of a task of a plan object (a tunnel device, a listener), the reconcile loop finds the object missing and
//! recreates it. The [supervisor](crate::supervise) restarts long-lived tasks.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::sync::LazyLock;

use tokio::sync::watch;

/// Panics since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panics {
    pub count: u64,
    /// Latest panic.
    pub last: Option<Panic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    pub thread: String,
    /// File and line.
    pub location: String,
}

static PANICS: LazyLock<watch::Sender<Panics>> = LazyLock::new(|| watch::channel(Panics::default()).0);

/// Installs the hook that logs and counts every panic. Call it at the start of the daemon, after its log.
pub fn install_hook() {
    std::panic::set_hook(Box::new(note));
}

/// Returns a receiver of the panics so far, which wakes with each further one.
pub fn watch() -> watch::Receiver<Panics> {
    PANICS.subscribe()
}

fn note(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    let location = panic.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
    let message = text(panic.payload());
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(thread, location, message, backtrace, "task or thread panicked");
    PANICS.send_modify(|panics| {
        panics.count += 1;
        panics.last = Some(Panic { thread, location });
    });
}

/// Returns the message of a panic.
pub(crate) fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
