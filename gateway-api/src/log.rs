//! Log: one line per event on standard error. The level can change at runtime. The last lines are kept in memory for
//! support bundles.

mod recent_lines;

use std::io::{self, Write};
use std::sync::OnceLock;

use gateway_model::settings::bootstrap::LogLevel;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt};

use recent_lines::RecentLines;

static FILTER: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();
static LAST_LINES: RecentLines = RecentLines::new();

/// Writer of one line: to standard error, and to the last lines.
struct LineWriter;

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LAST_LINES.push(&String::from_utf8_lossy(line));
        io::stderr().write_all(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Starts logging. Must be called once per process.
pub fn start(level: LogLevel) {
    let (filter, handle) = reload::Layer::new(filter(level));
    let lines = fmt::layer().with_writer(|| LineWriter).with_ansi(false);
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

/// Returns the last lines, the oldest first. `None` if the process does not log.
pub(crate) fn last_lines() -> Option<Vec<String>> {
    FILTER.get().map(|_| LAST_LINES.all())
}

/// Forgets the last lines.
pub(crate) fn forget() {
    LAST_LINES.clear();
}

/// Filter of the most verbose level. Debug output of libraries is about their internals, and some of it would contain
/// keys. The WireGuard library repeats a line each few seconds while a peer is silent, without the name of the tunnel;
/// the watcher of the tunnels logs each change once, with the name.
pub const MOST: &str = "debug,aya=info,aya_obj=info,hyper=info,hyper_util=info,netlink_proto=info,boringtun=off,\
    rustls=info,mio=info,russh=info,h2=info";

fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::new(match level {
        LogLevel::Debug => MOST,
        LogLevel::Info => "info,boringtun=off",
        LogLevel::Warn => "warn,boringtun=off",
        LogLevel::Error => "error,boringtun=off",
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_wireguard_library_writes_no_line_at_any_level() {
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error] {
            let written = Written::default();
            let writer = written.clone();
            let lines = fmt::layer().with_writer(move || writer.clone()).with_ansi(false);
            let subscriber = tracing_subscriber::registry().with(filter(level)).with(lines);
            tracing::subscriber::with_default(subscriber, || {
                tracing::error!(target: "boringtun::noise::timers", "CONNECTION_EXPIRED(REJECT_AFTER_TIME * 3)");
                tracing::warn!(target: "boringtun::noise::timers", "HANDSHAKE(REKEY_TIMEOUT)");
                tracing::error!(tunnel = "wg-a", "own line");
            });
            let text = String::from_utf8(written.0.lock().clone()).expect("text");
            assert_eq!(text.lines().count(), 1, "{level:?}: {text}");
            assert!(text.contains("own line"), "{level:?}: {text}");
        }
    }
}
