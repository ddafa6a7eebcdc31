//! The dashboard as the API serves it: headers, codings, caching, the paths of its views, and a build without it.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::body::Body;
use flate2::{Compression, write::GzEncoder};
use gateway_api::context::Settings;
use gateway_api::endpoints;
use gateway_api::pages::{Embedded, File, HTML, Pages};
use http::Request;

use crate::contract::client::{Answer, Client, settings};

const SCRIPT: &str = "text/javascript; charset=utf-8";

const INDEX: &[u8] = b"<!doctype html><title>Dashboard</title>";

static COMPRESSED_INDEX: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(INDEX).and_then(|()| encoder.finish()).expect("memory takes all")
});

static FILES: LazyLock<[File; 5]> = LazyLock::new(|| {
    [
        File::uncompressed("/docs.html", HTML, "d0c5", b"<!doctype html><title>Documentation</title>"),
        File { path: "/index.html", media: HTML, digest: "1de0", content: Embedded::Gzip(&COMPRESSED_INDEX) },
        File::uncompressed("/logo.svg", "image/svg+xml", "1090", b"<svg/>"),
        File::uncompressed("/theme.js", SCRIPT, "7e3e", b"theme()"),
        File::uncompressed("/assets/index-B1_x-9.js", SCRIPT, "a55e", b"draw()"),
    ]
});

/// Returns a small dashboard, of which one file is compressed.
pub(super) fn fixture() -> Pages {
    Pages(&*FILES)
}

/// `Accept` of a browser for a page.
const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

async fn send(client: &Client, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "192.0.2.1");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.raw(request.body(Body::empty()).expect("a request")).await
}

async fn get(client: &Client, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(client, "GET", path, headers).await
}

fn assert_index(answer: &Answer, path: &str) {
    assert_eq!((answer.status, answer.header("content-type")), (200, HTML), "{path}: {}", answer.text);
    assert!(answer.text.contains("Dashboard"), "{path}: {}", answer.text);
}

#[tokio::test]
async fn pages_have_a_strict_policy() {
    let client = Client::new();
    for path in ["/", "/devices", "/theme.js", "/logo.svg", "/api/docs", "/assets/index-B1_x-9.js"] {
        let answer = get(&client, path, &[BROWSER]).await;
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
        for part in ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "connect-src 'self'"]
        {
            assert!(policy.split("; ").any(|have| have == part), "{part} in {policy}");
        }
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), value, "{path}");
        }
        assert!(answer.header("permissions-policy").contains("camera=()"));
    }
    let api = client.get("/version").await;
    assert!(api.header("content-security-policy").starts_with("default-src 'none'; base-uri 'none'"));
    assert_eq!(api.header("cache-control"), "no-store");
}

#[tokio::test]
async fn files_with_a_hash_in_their_name_are_cached_for_ever_and_others_are_asked_for() {
    let client = Client::new();
    let script = get(&client, "/assets/index-B1_x-9.js", &[]).await;
    assert_eq!((script.status, script.text.as_str()), (200, "draw()"));
    assert_eq!(script.header("content-type"), SCRIPT);
    assert_eq!(script.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(script.header("vary"), "Accept-Encoding");
    for (path, media) in
        [("/theme.js", SCRIPT), ("/logo.svg", "image/svg+xml"), ("/", HTML), ("/api/docs", HTML)]
    {
        let answer = get(&client, path, &[]).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, media), "{path}");
        assert_eq!(answer.header("cache-control"), "no-cache", "{path}");
        assert_eq!(answer.header("vary"), "Accept, Accept-Encoding", "{path}");
    }
    for unknown in
        ["/assets/index-old.js", "/assets/", "/assets", "/assets/a/b.js", "/favicon.ico", "/index.htm"]
    {
        let answer = get(&client, unknown, &[]).await;
        answer.error(404, "route_not_found");
        assert_eq!(answer.header("cache-control"), "no-store", "{unknown}");
    }
    // A script that a browser looks for as a page is still not there.
    get(&client, "/assets/index-old.js", &[BROWSER]).await.error(404, "route_not_found");
}

#[tokio::test]
async fn the_coding_is_negotiated_and_has_its_own_tag() {
    let client = Client::new();
    let asked = |path: &'static str, codings: &'static str| {
        let client = &client;
        async move { get(client, path, &[("accept-encoding", codings)]).await }
    };
    for codings in ["", "br, zstd", "gzip;q=0"] {
        let plain = asked("/", codings).await;
        assert!(!plain.headers.contains_key("content-encoding"), "{codings}");
        assert_eq!((plain.text.as_bytes(), plain.header("etag")), (INDEX, "\"1de0\""), "{codings}");
    }
    let gzip = asked("/", "gzip, deflate, br").await;
    assert_eq!((gzip.header("content-encoding"), gzip.header("etag")), ("gzip", "\"1de0-gzip\""));
    assert_eq!(gzip.text, String::from_utf8_lossy(&COMPRESSED_INDEX));
    let none = asked("/assets/index-B1_x-9.js", "gzip").await;
    assert!(!none.headers.contains_key("content-encoding"), "there is no smaller content as gzip");
    assert_eq!(none.text, "draw()");
}

#[tokio::test]
async fn a_browser_that_has_the_file_gets_304() {
    let client = Client::new();
    let known = [("accept-encoding", "gzip"), ("if-none-match", "W/\"0\", \"1de0-gzip\"")];
    for path in ["/", "/devices/7"] {
        let answer = get(&client, path, &[BROWSER, known[0], known[1]]).await;
        assert_eq!((answer.status, answer.text.as_str()), (304, ""), "{path}");
        assert_eq!(answer.header("etag"), "\"1de0-gzip\"");
        assert_eq!(answer.header("cache-control"), "no-cache");
        assert_eq!(answer.header("vary"), "Accept, Accept-Encoding");
        assert!(
            !answer.headers.contains_key("content-encoding") && !answer.headers.contains_key("content-type")
        );
    }
    for other in ["\"1de0\"", "\"1de0-br\"", "\"1de\""] {
        let answer = get(&client, "/", &[("accept-encoding", "gzip"), ("if-none-match", other)]).await;
        assert_eq!(answer.status, 200, "{other}");
    }
}

#[tokio::test]
async fn the_path_of_a_view_is_answered_by_the_dashboard() {
    let client = Client::new();
    for path in [
        "/",
        "/?theme=dark",
        "/devices",
        "/devices/",
        "/devices/0198b1c2-0000-7000-8000-000000000000",
        "/dns/log?device=laptop&before=%ff&x",
        "/policies",
        "/apis/x",
        "/theme.json",
    ] {
        assert_index(&get(&client, path, &[BROWSER]).await, path);
    }
    for path in ["/devices", "/devices/7", "/policies"] {
        get(&client, path, &[]).await.error(404, "route_not_found");
        get(&client, path, &[("accept", "*/*")]).await.error(404, "route_not_found");
        get(&client, path, &[("accept", "application/json")]).await.error(404, "route_not_found");
    }
    for path in
        ["/api", "/api/", "/api/v1", "/api/v1/nothing", "/api/v2/devices", "/api/docs/x", "/metrics/x"]
    {
        get(&client, path, &[BROWSER]).await.error(404, "route_not_found");
    }
}

#[tokio::test]
async fn head_and_other_methods_are_answered_as_elsewhere() {
    let client = Client::new();
    for path in ["/", "/devices/7", "/assets/index-B1_x-9.js", "/api/docs"] {
        let whole = get(&client, path, &[BROWSER]).await;
        let head = send(&client, "HEAD", path, &[BROWSER]).await;
        assert_eq!((head.status, head.text.as_str()), (200, ""), "{path}");
        assert_eq!(head.header("content-length"), whole.text.len().to_string(), "{path}");
        assert_eq!(head.header("etag"), whole.header("etag"), "{path}");
        for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
            let answer = send(&client, method, path, &[BROWSER]).await;
            answer.error(405, "method_not_allowed");
            assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS", "{method} {path}");
        }
        let options = send(&client, "OPTIONS", path, &[]).await;
        assert_eq!((options.status, options.header("allow")), (204, "GET, HEAD, OPTIONS"), "{path}");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_table() {
    let client = Client::new();
    for path in [
        "/../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/assets/../../Cargo.toml",
        "/assets/..%2findex.html",
        "/assets/%2e%2e%2fdocs.html",
        "/assets/%00",
        "/assets/index-B1-x-9.js",
        "/theme.js%00.html",
        "/theme.js/",
        "/./theme.js",
        "//theme.js",
        "//etc/passwd",
        "/etc//passwd",
        "/%ff",
        "/%",
        "/file:/etc/passwd",
        "/INDEX.HTML",
    ] {
        let answer = get(&client, path, &[]).await;
        if path == "/theme.js/" {
            // A slash at the end counts nowhere.
            assert_eq!(answer.status, 200);
            continue;
        }
        answer.error(404, "route_not_found");
    }
    // A browser gets the dashboard at most.
    for path in ["/../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/etc/passwd"] {
        assert_index(&get(&client, path, &[BROWSER]).await, path);
    }
    for path in ["//etc/passwd", "/%ff", "/etc//passwd"] {
        get(&client, path, &[BROWSER]).await.error(404, "route_not_found");
    }
}

#[tokio::test]
async fn pages_are_refused_to_foreign_host_names() {
    let client = Client::new();
    for path in ["/", "/devices", "/assets/index-B1_x-9.js", "/theme.js", "/api/docs"] {
        get(&client, path, &[BROWSER, ("host", "evil.example")]).await.error(403, "origin_not_allowed");
        assert_eq!(get(&client, path, &[BROWSER, ("host", "localhost:8080")]).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn pages_work_while_the_gateway_is_blocked() {
    let client = Client::blocked("the store is of a newer version");
    assert_index(&get(&client, "/", &[]).await, "/");
    assert_index(&get(&client, "/devices", &[BROWSER]).await, "/devices");
}

#[tokio::test]
async fn a_build_without_the_dashboard_says_so() {
    let client = Client::with(endpoints::table(), Settings { pages: Pages(&[]), ..settings() });
    for path in ["/", "/devices/7", "/api/docs"] {
        let answer = get(&client, path, &[BROWSER]).await;
        assert_eq!((answer.status, answer.header("content-type")), (503, HTML), "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert!(!answer.headers.contains_key("etag"), "{path}");
        assert!(answer.text.contains("cargo xtask ui"), "{path}");
        assert!(answer.text.contains("href=\"/api/v1/openapi.json\""), "{path}");
        assert!(!answer.text.contains("<style") && !answer.text.contains("<script"), "{path}");
        assert!(
            answer.header("content-security-policy").starts_with("default-src 'none'; script-src 'self'")
        );
        let head = send(&client, "HEAD", path, &[BROWSER]).await;
        assert_eq!((head.status, head.text.as_str()), (503, ""), "{path}");
    }
    for path in ["/theme.js", "/assets/index-B1_x-9.js", "/devices"] {
        get(&client, path, &[]).await.error(404, "route_not_found");
    }
    assert_eq!(client.get("/version").await.status, 200);
}
