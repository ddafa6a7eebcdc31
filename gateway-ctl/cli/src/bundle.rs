//! `gateway-ctl bundle`: builds a support bundle and writes it to a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::failure::Failure;
use crate::grammar::Method;

const PATH: &str = "/diagnostics/bundle";
/// Time within which a bundle is complete.
const TIMEOUT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Builds a bundle and writes it to the file, which must not exist yet.
pub(crate) fn run(client: &Client, file: Option<&str>) -> Result<Answer, Failure> {
    // A file that cannot be written is found before the gateway does any work.
    let mut target = file.map(|file| Target::create(file.into())).transpose()?;
    let started = client.call(Method::Post, PATH, None)?.data;
    let id = word(&started, "id").to_owned();
    let bundle = wait(client, &id)?;
    if word(&bundle, "state") != "done" {
        return Err(Failure::Other(format!("the bundle failed: {}", word(&bundle, "error"))));
    }
    let target = match &mut target {
        Some(target) => target,
        None => target.insert(Target::create(default_name(word(&bundle, "created_at")).into())?),
    };
    client.download(&format!("{PATH}/{id}/archive"), &mut target.file)?;
    let size = target.keep()?;
    let missing: Vec<&Value> =
        bundle["parts"].as_array().into_iter().flatten().filter(|part| !part["error"].is_null()).collect();
    let data = json!({"file": target.path.display().to_string(), "size": size, "missing": missing});
    Ok(Answer { data, warnings: Vec::new(), total: None })
}

fn wait(client: &Client, id: &str) -> Result<Value, Failure> {
    let begun = Instant::now();
    loop {
        let bundle = client.get(&format!("{PATH}/{id}"))?.data;
        if word(&bundle, "state") != "running" {
            return Ok(bundle);
        }
        if begun.elapsed() > TIMEOUT {
            return Err(Failure::Other(format!("the bundle is not complete after {} s", TIMEOUT.as_secs())));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Returns `gateway-bundle-20261130T120000Z.tar.gz` for the time of a bundle.
fn default_name(created_at: &str) -> String {
    let seconds = created_at.split(['.', 'Z']).next().unwrap_or_default();
    let digits: String = seconds.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("gateway-bundle-{digits}Z.tar.gz")
}

/// File of the bundle. It is removed unless it is complete.
struct Target {
    path: PathBuf,
    file: File,
    is_complete: bool,
}

impl Target {
    fn create(path: PathBuf) -> Result<Target, Failure> {
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = created.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::usage(format!("{} exists already", path.display())),
            _ => Failure::usage(format!("{}: {error}", path.display())),
        })?;
        Ok(Target { path, file, is_complete: false })
    }

    /// Keeps the file, and returns its size.
    fn keep(&mut self) -> Result<u64, Failure> {
        let written = self.file.sync_all().and_then(|()| Ok(self.file.metadata()?.len()));
        let size = written.map_err(|error: io::Error| {
            Failure::Other(format!("{} cannot be written: {error}", self.path.display()))
        })?;
        self.is_complete = true;
        Ok(size)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_complete {
            // Nothing can be done about a file that cannot be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_named_after_the_time_of_the_bundle() {
        assert_eq!(default_name("2026-11-30T12:00:05.123Z"), "gateway-bundle-20261130T120005Z.tar.gz");
        assert_eq!(default_name("2026-11-30T12:00:05Z"), "gateway-bundle-20261130T120005Z.tar.gz");
    }

    #[test]
    fn existing_file_is_not_overwritten_and_a_partial_one_does_not_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bundle.tar.gz");
        drop(Target::create(path.clone()).expect("created"));
        assert!(!path.exists());
        let mut target = Target::create(path.clone()).expect("created");
        assert_eq!(target.keep().expect("kept"), 0);
        drop(target);
        assert!(path.exists() && Target::create(path).is_err());
    }
}
