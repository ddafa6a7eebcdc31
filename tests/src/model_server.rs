//! Server of language models in both protocols, with replies in the forms that Ollama and servers of llama.cpp have.
//! Its model is a function of the test.

use std::collections::BTreeSet;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::webhook_receiver::{Recorded, lock, read};

const ACCEPT_INTERVAL: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(60);
/// Model that is installed at the start.
pub const MODEL: &str = "small:latest";
/// Name of a model whose download never ends.
pub const ENDLESS: &str = "endless";

/// API of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Ollama,
    /// Chat completions that take `json_schema`.
    Openai,
    /// Chat completions that take only `json_object`, as llama-cpp-python does.
    LlamaCpp,
}

/// Answer of the model to a request; `None`: none, until the client gives up.
type Model = dyn Fn(&Value) -> Option<String> + Send + Sync;

/// Running server. Dropping it ends it.
pub struct ModelServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    protocol: Protocol,
    model: Box<Model>,
    /// Key that each request must carry; empty for none.
    key: String,
    requests: Mutex<Vec<Recorded>>,
    installed: Mutex<BTreeSet<String>>,
    loaded: Mutex<BTreeSet<String>>,
    /// Number of clients that gave up.
    abandoned: AtomicUsize,
    is_ending: AtomicBool,
}

impl ModelServer {
    /// Starts on a free port of loopback.
    pub fn start(
        protocol: Protocol,
        key: &str,
        model: impl Fn(&Value) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
        let address = listener.local_addr().context("address")?;
        listener.set_nonblocking(true).context("listener")?;
        let shared = Arc::new(Shared {
            protocol,
            model: Box::new(model),
            key: key.to_owned(),
            requests: Mutex::default(),
            installed: Mutex::new([MODEL.to_owned()].into()),
            loaded: Mutex::default(),
            abandoned: AtomicUsize::new(0),
            is_ending: AtomicBool::new(false),
        });
        let server = shared.clone();
        let thread = std::thread::spawn(move || serve(&server, &listener));
        Ok(Self { address, shared, thread: Some(thread) })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }

    /// Returns the number of clients that gave up before they had the whole answer.
    pub fn abandoned(&self) -> usize {
        self.shared.abandoned.load(Ordering::SeqCst)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

fn serve(shared: &Arc<Shared>, listener: &TcpListener) {
    while !shared.is_ending.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                let shared = shared.clone();
                // A client that disconnects does not need the answer.
                std::thread::spawn(move || drop(shared.answer(stream)));
            }
            Err(_) => std::thread::sleep(ACCEPT_INTERVAL),
        }
    }
}

/// Reply to a request.
enum Reply {
    Json(u16, Value),
    /// Lines of progress.
    Lines(Vec<Value>),
    /// Lines of progress until the client gives up.
    EndlessLines(Value),
    /// Nothing until the client gives up.
    Silence,
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let request = read(BufReader::new(stream.try_clone()?))?;
        lock(&self.requests).push(request.clone());
        match self.reply(&request) {
            Reply::Json(status, value) => send(&mut stream, status, "application/json", &value.to_string()),
            Reply::Lines(lines) => {
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                send(&mut stream, 200, "application/x-ndjson", &text)
            }
            Reply::EndlessLines(line) => {
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n")?;
                while !self.is_ending.load(Ordering::Relaxed) {
                    if writeln!(stream, "{line}").is_err() {
                        self.abandoned.fetch_add(1, Ordering::SeqCst);
                        break;
                    }
                    std::thread::sleep(ACCEPT_INTERVAL);
                }
                Ok(())
            }
            Reply::Silence => {
                if stream.read(&mut [0; 1]).is_ok_and(|length| length == 0) {
                    self.abandoned.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            }
        }
    }

    fn reply(&self, request: &Recorded) -> Reply {
        let expected = format!("Bearer {}", self.key);
        if !self.key.is_empty() && request.header("authorization") != Some(expected.as_str()) {
            let given = request.header("authorization").unwrap_or_default();
            // As careless as a server may be: it repeats what it got.
            let message = format!("Incorrect API key provided: {given}");
            return Reply::Json(401, json!({"error": {"message": message, "type": "invalid_request_error"}}));
        }
        match self.protocol {
            Protocol::Ollama => self.ollama(request),
            Protocol::Openai | Protocol::LlamaCpp => self.openai(request),
        }
    }

    fn ollama(&self, request: &Recorded) -> Reply {
        let body = request.json();
        let name = tagged(body["model"].as_str().unwrap_or_default());
        let unknown = || Reply::Json(404, json!({"error": format!("model '{name}' not found")}));
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/api/version") => Reply::Json(200, json!({"version": "0.5.7"})),
            ("GET", "/api/tags") => {
                Reply::Json(200, json!({"models": models(&lock(&self.installed), false)}))
            }
            ("GET", "/api/ps") => Reply::Json(200, json!({"models": models(&lock(&self.loaded), true)})),
            ("POST", "/api/pull") => self.pull(&name),
            ("POST", _) | ("DELETE", _) if !lock(&self.installed).contains(&name) => unknown(),
            ("POST", "/api/generate") => {
                let unloads = body["keep_alive"] == 0;
                match unloads {
                    true => drop(lock(&self.loaded).remove(&name)),
                    false => drop(lock(&self.loaded).insert(name.clone())),
                }
                let reason = if unloads { "unload" } else { "load" };
                Reply::Json(
                    200,
                    json!({"model": name, "created_at": "2026-11-30T12:00:00.0Z", "response": "", "done": true,
                           "done_reason": reason}),
                )
            }
            ("DELETE", "/api/delete") => {
                lock(&self.loaded).remove(&name);
                lock(&self.installed).remove(&name);
                Reply::Json(200, json!({}))
            }
            ("POST", "/api/chat") => match (self.model)(&body) {
                Some(content) => Reply::Json(
                    200,
                    json!({"model": name, "created_at": "2026-11-30T12:00:00.0Z",
                           "message": {"role": "assistant", "content": content}, "done_reason": "stop",
                           "done": true, "total_duration": 1, "prompt_eval_count": 26, "eval_count": 298}),
                ),
                None => Reply::Silence,
            },
            _ => Reply::Json(404, json!({"error": "404 page not found"})),
        }
    }

    fn pull(&self, name: &str) -> Reply {
        let layer = "sha256:74701a8c35f6c8d9a4b91f3f3497643001d63e0c7a84e085bed452548fa88d45";
        let step = json!({"status": format!("pulling {}", &layer[7..19]), "digest": layer, "total": 807_694_464_u64,
                          "completed": 241_970_u64});
        if name == tagged(ENDLESS) {
            return Reply::EndlessLines(step);
        }
        if name.starts_with("missing") {
            let error = json!({"error": "pull model manifest: file does not exist"});
            return Reply::Lines(vec![json!({"status": "pulling manifest"}), error]);
        }
        lock(&self.installed).insert(name.to_owned());
        Reply::Lines(vec![
            json!({"status": "pulling manifest"}),
            step,
            json!({"status": "verifying sha256 digest"}),
            json!({"status": "writing manifest"}),
            json!({"status": "success"}),
        ])
    }

    fn openai(&self, request: &Recorded) -> Reply {
        let body = request.json();
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/models") => Reply::Json(
                200,
                json!({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "me"}]}),
            ),
            ("POST", "/v1/chat/completions") => {
                let form = &body["response_format"]["type"];
                if self.protocol == Protocol::LlamaCpp && form != "json_object" {
                    let detail = json!([{"type": "literal_error", "loc": ["body", "response_format", "type"],
                                         "msg": "Input should be 'text' or 'json_object'"}]);
                    return Reply::Json(422, json!({"detail": detail}));
                }
                match (self.model)(&body) {
                    Some(content) => Reply::Json(
                        200,
                        json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_732_968_000,
                               "model": body["model"], "choices": [{"index": 0, "logprobs": null,
                               "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
                               "usage": {"prompt_tokens": 26, "completion_tokens": 298, "total_tokens": 324}}),
                    ),
                    None => Reply::Silence,
                }
            }
            _ => Reply::Json(404, json!({"detail": "Not Found"})),
        }
    }
}

/// Returns the name with its tag.
fn tagged(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { format!("{name}:latest") }
}

fn models(names: &BTreeSet<String>, is_loaded: bool) -> Vec<Value> {
    let model = |name: &String| {
        let mut model = json!({"name": name, "model": name, "size": 98_000_000, "digest": "a80c4f17acd5",
            "details": {"format": "gguf", "family": "llama", "parameter_size": "134.52M",
                        "quantization_level": "Q4_1"}});
        match is_loaded {
            true => {
                model["size_vram"] = json!(0);
                model["expires_at"] = json!("2026-11-30T12:05:00.0Z");
            }
            false => model["modified_at"] = json!("2026-11-29T12:00:00.0Z"),
        }
        model
    };
    names.iter().map(model).collect()
}

fn send(stream: &mut TcpStream, status: u16, media: &str, body: &str) -> Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} -\r\nContent-Type: {media}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    Ok(())
}
