//! Log: one line per event on standard error. The level can change at runtime.

use std::sync::OnceLock;

use gateway_model::settings::bootstrap::LogLevel;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt};

static FILTER: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging. Must be called once per process.
pub fn start(level: LogLevel) {
    let (filter, handle) = reload::Layer::new(filter(level));
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(filter).with(lines).init();
    // A second call has panicked above.
    let _ = FILTER.set(handle);
}

/// Changes the log level. Has no effect if the process does not log.
pub fn set_level(level: LogLevel) {
    if let Some(handle) = FILTER.get()
        && let Err(error) = handle.reload(filter(level))
    {
        tracing::warn!(%error, "failed to change the log level");
    }
}

/// Filter of the most verbose level. Debug output of libraries is about their internals, and some of it would contain
/// keys.
pub const MOST: &str = "debug,aya=info,aya_obj=info,hyper=info,hyper_util=info,netlink_proto=info,boringtun=warn,\
    rustls=info,mio=info,russh=info";

fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::new(match level {
        LogLevel::Debug => MOST,
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    })
}
