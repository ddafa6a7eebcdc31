//! Copy of the process output in the gateway's log, without secrets and with a rate limit.

use std::time::Duration;

use gateway_core::plan::OpenVpnProcess;
use tokio::time::Instant;

/// Line limit per window. A remote stranger can cause a log line for each packet.
const MAX_LINES_PER_WINDOW: u32 = 50;
const WINDOW: Duration = Duration::from_secs(1);
/// Minimum length of a secret to hide. Shorter secrets also occur in innocent words.
const MIN_SECRET_LENGTH: usize = 4;

pub(super) struct Log {
    interface: String,
    secrets: Vec<gateway_model::Secret>,
    since: Instant,
    lines: u32,
}

impl Log {
    pub(super) fn new(process: &OpenVpnProcess) -> Log {
        let secrets = [&process.password, &process.key_passphrase].map(Clone::clone);
        let secrets =
            secrets.into_iter().filter(|secret| secret.expose().len() >= MIN_SECRET_LENGTH).collect();
        Log { interface: process.interface.clone(), secrets, since: Instant::now(), lines: 0 }
    }

    pub(super) fn write(&mut self, line: &str) {
        // Traffic of the management socket, which includes names and tokens.
        if line.starts_with("MANAGEMENT: ") {
            return;
        }
        if self.since.elapsed() > WINDOW {
            if self.lines > MAX_LINES_PER_WINDOW {
                let left_out = self.lines - MAX_LINES_PER_WINDOW;
                tracing::debug!(target: "openvpn", interface = self.interface, left_out, "too many lines");
            }
            (self.since, self.lines) = (Instant::now(), 0);
        }
        self.lines += 1;
        if self.lines <= MAX_LINES_PER_WINDOW {
            let line = self.hidden(line);
            tracing::debug!(target: "openvpn", interface = self.interface, "{line}");
        }
    }

    pub(super) fn hidden(&self, line: &str) -> String {
        let mut line = super::super::log_parser::clean(line);
        for secret in &self.secrets {
            line = line.replace(secret.expose(), "***");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use gateway_common::wire::Mark;
    use gateway_model::Secret;

    use super::*;

    #[tokio::test]
    async fn a_line_shows_no_secret() {
        let process = OpenVpnProcess {
            interface: "ov-x".into(),
            config: Secret::default(),
            username: Secret::new("alice"),
            password: Secret::new("wonderland"),
            key_passphrase: Secret::new("abc"),
            mtu: None,
            fwmark: Mark(0),
            randomises_hostname: false,
        };
        let line = Log::new(&process).hidden("password wonderland of\u{7} alice, abc");
        assert_eq!(line, "password *** of  alice, abc");
    }
}
