//! A headless Chromium in a namespace, controlled through its DevTools protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>).

mod connection;

use std::fs;
use std::net::IpAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::certificate::ServerCertificate;
use crate::netns::Namespace;
use crate::process::Process;
use connection::{Connection, Session};

/// Timeout of a load, and of an expression.
const ANSWER: Duration = Duration::from_secs(60);

/// Gives the browser its own files of the resolver, and its pipes the numbers that `--remote-debugging-pipe` uses.
const START: &str = "for file in resolv.conf hosts; do \
                     [ ! -e \"$0/$file\" ] || mount --bind \"$0/$file\" \"/etc/$file\" || exit; done; \
                     exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null";

const ARGUMENTS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
];

/// Sources of addresses for a browser, and its further arguments.
#[derive(Clone, Debug, Default)]
pub struct BrowserOptions {
    /// Resolver in place of that of the machine.
    pub resolver: Option<IpAddr>,
    /// Lines in place of those of `/etc/hosts`.
    pub hosts: Option<String>,
    pub arguments: Vec<String>,
}

impl BrowserOptions {
    /// Trusts the certificate for a name, also over QUIC.
    pub fn trust(&mut self, certificate: &ServerCertificate, name: &str) {
        self.arguments.push(format!("--ignore-certificate-errors-spki-list={}", certificate.pin));
        // QUIC wants a public root except for hosts in this list. The port that no server has leaves the choice of the
        // protocol to the browser.
        self.arguments.push(format!("--origin-to-force-quic-on={name}:1"));
    }
}

/// A running browser. Dropping it ends it with its children, and removes its files.
#[derive(Debug)]
pub struct Browser {
    // Field order is drop order: the process before its files.
    process: Process,
    connection: Connection,
    session: Arc<Mutex<Session>>,
    _directory: TempDir,
}

impl Browser {
    pub fn start(namespace: &Namespace, options: &BrowserOptions) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("gateway-browser-").tempdir().context("folder")?;
        if let Some(resolver) = options.resolver {
            fs::write(directory.path().join("resolv.conf"), format!("nameserver {resolver}\n"))?;
        }
        if let Some(hosts) = &options.hosts {
            fs::write(directory.path().join("hosts"), hosts)?;
        }
        let (commands, to_browser) = std::io::pipe().context("pipe")?;
        let (from_browser, answers) = std::io::pipe().context("pipe")?;
        let mut command = namespace.command("unshare");
        command.args(["--mount", "sh", "-c", START]).arg(directory.path()).arg("chromium").args(ARGUMENTS);
        command.arg(format!("--user-data-dir={}", directory.path().join("profile").display()));
        command.args(&options.arguments).arg("about:blank");
        for variable in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env(variable, directory.path());
        }
        let log_file = directory.path().join("log");
        let log = fs::File::create(&log_file).context("log of the browser")?;
        command.stdin(Stdio::from(commands)).stdout(Stdio::from(answers)).stderr(log);
        let process = namespace.spawn(command)?;
        let connection = Connection::new(to_browser, from_browser);
        let mut session = connection.session("");
        session
            .call("Browser.getVersion", &json!({}), ANSWER)
            .with_context(|| fs::read_to_string(&log_file).unwrap_or_default())
            .context("Chromium")?;
        Ok(Self { process, connection, session: Arc::new(Mutex::new(session)), _directory: directory })
    }

    /// Opens an empty page that shares no cache, connection or knowledge of servers with others.
    pub fn open(&self) -> Result<Page> {
        let call = |method: &str, parameters: &Value| call(&self.session, method, parameters);
        let context = string(&call("Target.createBrowserContext", &json!({}))?, "browserContextId")?;
        let target = json!({"url": "about:blank", "browserContextId": context});
        let target = string(&call("Target.createTarget", &target)?, "targetId")?;
        let attach = json!({"targetId": target, "flatten": true});
        let name = string(&call("Target.attachToTarget", &attach)?, "sessionId")?;
        let session = self.connection.session(&name);
        let mut page = Page { session, context, browser: self.session.clone() };
        page.call("Page.enable", &json!({}))?;
        page.call("Page.setLifecycleEventsEnabled", &json!({"enabled": true}))?;
        Ok(page)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It fails only if the browser has ended already.
        let _ = self.process.kill_group();
    }
}

/// An open page. Dropping it closes it.
#[derive(Debug)]
pub struct Page {
    session: Session,
    context: String,
    /// Session of the browser itself.
    browser: Arc<Mutex<Session>>,
}

impl Page {
    /// Loads a document with everything that it contains.
    pub fn load(&mut self, url: &str) -> Result<()> {
        let answer = self.call("Page.navigate", &json!({"url": url}))?;
        if let Some(error) = answer["errorText"].as_str() {
            bail!("{url}: {error}");
        }
        let loader = string(&answer, "loaderId")?;
        let is_loaded = |event: &Value| {
            event["method"] == "Page.lifecycleEvent"
                && event["params"]["name"] == "load"
                && event["params"]["loaderId"] == loader.as_str()
        };
        self.session.wait_for_event(is_loaded, ANSWER).with_context(|| format!("load {url}"))
    }

    /// Returns the value of an expression, or of the promise that it is.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &parameters)?;
        let exception = &answer["exceptionDetails"];
        ensure!(exception.is_null(), "{expression}: {exception}");
        Ok(answer["result"]["value"].take())
    }

    /// Returns the protocol by which the document came (RFC 7301, section 6).
    pub fn protocol(&mut self) -> Result<String> {
        let protocol = self.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol")?;
        protocol.as_str().map(str::to_owned).with_context(|| format!("no protocol: {protocol}"))
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.session.call(method, parameters, ANSWER)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let context = json!({"browserContextId": self.context});
        // It fails only if the browser has ended, and its pages with it.
        let _ = call(&self.browser, "Target.disposeBrowserContext", &context);
    }
}

fn call(browser: &Mutex<Session>, method: &str, parameters: &Value) -> Result<Value> {
    browser.lock().unwrap_or_else(PoisonError::into_inner).call(method, parameters, ANSWER)
}

fn string(answer: &Value, field: &str) -> Result<String> {
    answer[field].as_str().map(str::to_owned).with_context(|| format!("no {field} in {answer}"))
}
