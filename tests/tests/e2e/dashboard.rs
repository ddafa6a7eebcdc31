//! The dashboard of a running daemon, in a browser and with curl: contents and codings, its own content security policy,
//! and the stream of events of a signed-in user.
//!
//! Without `ui/dist` the daemon was built without it, and the tests require its page that says so.

use std::fs;
use std::path::{Path, PathBuf};

use gateway_tests::browser::{Browser, BrowserOptions, Page};
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::SOON;

const URL: &str = "http://127.0.0.1:8080";
const PASSWORD: &str = "correct horse battery";

/// Violations of the policy since the document was loaded.
const VIOLATIONS: &str = "new Promise(done => {
    const report = one => `${one.body.effectiveDirective} of ${one.body.blockedURL} at ${one.body.sourceFile}`;
    new ReportingObserver(list => done(list.map(report)), {buffered: true, types: ['csp-violation']}).observe();
    setTimeout(() => done([]), 1000);
})";

/// Returns the folder of the dashboard that the daemon embeds.
fn dist() -> Option<PathBuf> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/dist");
    dist.join("index.html").is_file().then_some(dist)
}

fn browse(testbed: &Testbed) -> Browser {
    Browser::start(&testbed.network.gateway, &BrowserOptions::default()).expect("a browser")
}

fn wait_for(page: &mut Page, what: &str, expression: &str) {
    wait_ok(SOON, what, || {
        let value = page.evaluate(expression)?;
        anyhow::ensure!(value == true, "{expression} is {value}");
        Ok(())
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", text(page)));
}

fn text(page: &mut Page) -> Value {
    page.evaluate("document.body.innerText.slice(0, 2000)").expect("the text of the page")
}

fn assert_no_violation(page: &mut Page, path: &str) {
    assert_eq!(page.evaluate(VIOLATIONS).expect("the observer"), json!([]), "{path}");
}

#[test]
fn pages_obey_their_own_policy() {
    let testbed = Testbed::start().expect("scene");
    let browser = browse(&testbed);
    let mut page = browser.open().expect("a page");
    for path in ["/", "/devices/7"] {
        page.load(&format!("{URL}{path}")).expect("loaded");
        let shown = match dist() {
            Some(_) => "document.querySelector('script[src]') && document.body.innerText.trim() !== ''",
            None => "document.body.innerText.includes('cargo xtask ui')",
        };
        wait_for(&mut page, "the page to show something", shown);
        assert_no_violation(&mut page, path);
    }
    // The observer sees what the policy refuses: an inline style, and a request to another server.
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('style'), {textContent: 'p {}'}))",
    )
    .expect("appended");
    let refused =
        page.evaluate("fetch('http://127.0.0.2/').then(() => 'sent', () => 'refused')").expect("fetch");
    assert_eq!(refused, "refused");
    let violations = page.evaluate(VIOLATIONS).expect("the observer").to_string();
    for directive in ["style-src-elem of inline", "connect-src of http://127.0.0.2/"] {
        assert!(violations.contains(directive), "{directive} is not in {violations}");
    }
}

#[test]
fn documentation_is_drawn_and_searched() {
    let testbed = Testbed::start().expect("scene");
    let browser = browse(&testbed);
    let mut page = browser.open().expect("a page");
    page.load(&format!("{URL}/api/docs")).expect("loaded");
    if !dist().is_some_and(|dist| dist.join("docs.html").is_file()) {
        wait_for(&mut page, "the page", "document.body.innerText.includes('cargo xtask ui')");
        return;
    }
    wait_for(&mut page, "the operations", "document.querySelectorAll('.opblock').length > 5");
    // The field belongs to React, which reads it by its own setter.
    page.evaluate(
        "{
            const field = document.querySelector('.operation-filter-input');
            Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, 'leak-check');
            field.dispatchEvent(new Event('input', {bubbles: true}));
        }",
    )
    .expect("typed");
    wait_for(
        &mut page,
        "the operation that was searched",
        "[...document.querySelectorAll('.opblock-summary-path')].map(path => path.innerText.replace(/\\u200b/g, ''))
            .join() === '/privacy/leak-check'",
    );
    page.evaluate("document.querySelector('.opblock-summary-control').click()").expect("clicked");
    wait_for(&mut page, "the details", "!!document.querySelector('.opblock-body .responses-wrapper')");
    assert_no_violation(&mut page, "/api/docs");
}

#[test]
fn events_reach_a_signed_in_user() {
    let mut testbed = Testbed::prepare().expect("scene");
    // No address grants access without a credential.
    let closed = json!({"auth": {"enabled": true, "local_net": "192.0.2.0/24"}});
    testbed.daemon.configure(&closed).expect("configured");
    testbed.daemon.initialise().expect("initialised");
    let mut command = testbed.daemon.command(&["user", "add", "--username", "anna", "--role", "admin"]);
    let added = command.env("GATEWAY_USER_PASSWORD", PASSWORD).output().expect("gatewayd");
    assert!(added.status.success(), "{added:?}");
    testbed.daemon.start().expect("started");
    let browser = browse(&testbed);
    let mut page = browser.open().expect("a page");
    page.load(URL).expect("the page is open to all");
    let status = |page: &mut Page, path: &str| {
        page.evaluate(&format!("fetch('/api/v1{path}').then(answer => answer.status)")).expect("an answer")
    };
    assert_eq!((status(&mut page, "/devices"), status(&mut page, "/events")), (json!(401), json!(401)));
    let login = format!(
        "fetch('/api/v1/auth/login', {{
            method: 'POST',
            headers: {{'Content-Type': 'application/json'}},
            body: JSON.stringify({{username: 'anna', password: '{PASSWORD}'}}),
        }}).then(answer => answer.json()).then(body => body.data.csrf_token)"
    );
    let token = page.evaluate(&login).expect("signed in");
    assert!(token.as_str().is_some_and(|token| !token.is_empty()), "{token}");
    assert_eq!(page.evaluate("document.cookie").expect("cookies"), "", "scripts cannot read the session");
    page.evaluate(
        "globalThis.seen = [];
        globalThis.stream = new EventSource('/api/v1/events');
        stream.addEventListener('revision', event => seen.push(event.data));
        true",
    )
    .expect("a stream");
    wait_for(&mut page, "the stream to be open", "stream.readyState === EventSource.OPEN");
    let create = |token: &Value| {
        format!(
            "fetch('/api/v1/devices', {{
                method: 'POST',
                headers: {{'Content-Type': 'application/json', 'X-CSRF-Token': {token}}},
                body: JSON.stringify({{name: 'tv', mac: '02:00:00:00:00:07'}}),
            }}).then(answer => answer.status)"
        )
    };
    assert_eq!(page.evaluate(&create(&json!("wrong"))).expect("an answer"), 403);
    assert_eq!(page.evaluate(&create(&token)).expect("an answer"), 201);
    wait_for(&mut page, "the event of the change", "seen.length > 0");
    assert_no_violation(&mut page, "/");
}

#[test]
fn curl_gets_the_built_files_in_every_coding_by_one_connection() {
    let testbed = Testbed::start().expect("scene");
    let Some(dist) = dist() else {
        let arguments = ["-s", "-o", "/dev/null", "-w", "%{http_code}", URL];
        assert_eq!(testbed.network.gateway.run("curl", &arguments).expect("curl"), "503");
        return;
    };
    let mut names = vec!["index.html".to_owned()];
    let assets = fs::read_dir(dist.join("assets")).expect("assets");
    names.extend(assets.map(|entry| format!("assets/{}", entry.expect("a file").file_name().display())));
    let folder = tempfile::tempdir().expect("a folder");
    for coding in ["br", "gzip", "identity"] {
        let header = format!("Accept-Encoding: {coding}");
        let mut arguments: Vec<String> =
            ["-s", "--http1.1", "--compressed", "-H", &header, "-w", "%{num_connects} %{http_code}\n"]
                .map(str::to_owned)
                .to_vec();
        for (number, name) in names.iter().enumerate() {
            let file = folder.path().join(number.to_string()).display().to_string();
            arguments.extend([format!("{URL}/{name}"), "-o".to_owned(), file]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let shown = testbed.network.gateway.run("curl", &arguments).expect("curl");
        let expected = names.iter().enumerate().map(|(number, _)| format!("{} 200\n", u8::from(number == 0)));
        assert_eq!(shown, expected.collect::<String>(), "{coding}: one connection");
        for (number, name) in names.iter().enumerate() {
            let received = fs::read(folder.path().join(number.to_string())).expect("received");
            assert!(received == fs::read(dist.join(name)).expect("built"), "{name} as {coding}");
        }
    }
}
