//! `gatewayd user`: accounts from the command line of the gateway, for root.
//!
//! While the daemon runs it has the store open, and the command uses its API through the socket in the runtime
//! directory. Otherwise the command opens the store itself. Rules and audit trail are the same.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use gateway_ctl::store::{AuditTicket, CommitError, Store};
use gateway_model::kinds::User;
use gateway_model::settings::bootstrap::Bootstrap;
use gateway_model::{EditError, Id, Role, Secret};
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::auth::accounts::{self, UserInput, UserView};
use crate::auth::password;
use crate::error::ApiError;
use crate::table::API_ROOT;
use crate::{config, daemon};

/// Environment variable of the password, used instead of standard input.
pub const PASSWORD_VARIABLE: &str = "GATEWAY_USER_PASSWORD";
/// Maximum length of the input line. A wrong file on standard input must not be read completely.
const LONGEST_LINE: u64 = 4096;

/// Command to run.
#[derive(Clone, Debug)]
pub enum Command {
    Add { username: String, role: Role },
    List,
    Del { id: String },
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} is empty", PASSWORD_VARIABLE)]
    EmptyVariable,
    #[error("cannot read the password from standard input")]
    Read(#[source] io::Error),
    #[error("the two passwords differ")]
    Differ,
    #[error(transparent)]
    Store(#[from] daemon::Error),
    /// Error that the API would return.
    #[error("{0}")]
    Refused(String),
    #[error("the daemon holds the store, and its socket {} does not answer", path.display())]
    Socket {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Runs the command and returns its output.
pub async fn run(config: &Bootstrap, command: Command) -> Result<String, Error> {
    // Before the store is opened: it must not be locked while the user types.
    let password = match command {
        Command::Add { .. } => read_password()?,
        Command::List | Command::Del { .. } => Secret::default(),
    };
    run_with(config, command, password).await
}

/// Runs the command with the given password.
pub async fn run_with(config: &Bootstrap, command: Command, password: Secret) -> Result<String, Error> {
    match daemon::open_store(config) {
        Ok(store) => run_in_store(&store, command, password),
        Err(daemon::Error::AlreadyRunning { .. }) => {
            run_by_socket(&config::socket_path(config), command, &password).await
        }
        Err(error) => Err(error.into()),
    }
}

fn run_in_store(store: &Store, command: Command, password: Secret) -> Result<String, Error> {
    let ticket = |action: &str| AuditTicket::system(action, "user");
    match command {
        Command::Add { username, role } => {
            let input = UserInput { username, password, role: Some(role.to_string()), enabled: true };
            let role = input.check(true).map_err(refused)?;
            let hash = password::hash(&input.password).map_err(|error| Error::Refused(error.message))?;
            let made =
                store.commit(ticket("create_user"), |draft| accounts::create(draft, input, role, hash));
            Ok(format!("{}\n", made.map_err(not_committed)?.meta.id))
        }
        Command::List => {
            let state = store.current();
            let users = state.users.iter();
            let rows = users.map(|user| UserView::new(user, store.last_sign_in(user.meta.id)));
            Ok(table(&json!(rows.collect::<Vec<_>>())))
        }
        Command::Del { id } => {
            let unknown = || EditError::NotFound { resource_type: "user", id: id.clone() };
            let row: Id = id.parse().map_err(|_| refused(unknown()))?;
            let gone =
                store.commit(ticket("delete_user"), |draft| draft.remove::<User>(row, None, false).map(drop));
            gone.map_err(not_committed)?;
            Ok(format!("{row}\n"))
        }
    }
}

/// Returns the human-readable message of the API.
fn refused(error: EditError) -> Error {
    refusal(&ApiError::from(error).to_json(""))
}

fn not_committed(error: CommitError<EditError>) -> Error {
    match error {
        CommitError::Refused { error, .. } => refused(error),
        CommitError::Store(error) => Error::Store(daemon::Error::Store(error)),
    }
}

/// Returns the message of an error body, with all wrong fields.
fn refusal(body: &Value) -> Error {
    let error = &body["error"];
    let mut text = error["message"].as_str().unwrap_or("the daemon gave no reason").to_owned();
    let fields = error["details"]["fields"].as_array();
    if let Some(fields) = fields.filter(|fields| fields.len() > 1) {
        for field in fields {
            let (path, message) = (field["path"].as_str(), field["message"].as_str());
            text.push_str(&format!("\n  {}: {}", path.unwrap_or_default(), message.unwrap_or_default()));
        }
    }
    Error::Refused(text)
}

async fn run_by_socket(path: &Path, command: Command, password: &Secret) -> Result<String, Error> {
    let (method, target, body) = match &command {
        Command::Add { username, role } => {
            let body = json!({"username": username, "role": role, "password": password.expose()});
            (Method::POST, "/auth/users".to_owned(), body.to_string())
        }
        Command::List => (Method::GET, "/auth/users".to_owned(), String::new()),
        Command::Del { id } => {
            let unknown = EditError::NotFound { resource_type: "user", id: id.clone() };
            let id: Id = id.parse().map_err(|_| refused(unknown))?;
            (Method::DELETE, format!("/auth/users/{id}"), String::new())
        }
    };
    let (status, answer) = ask(path, method, &target, body)
        .await
        .map_err(|source| Error::Socket { path: path.to_owned(), source })?;
    if !status.is_success() {
        return Err(refusal(&answer));
    }
    let data = &answer["data"];
    match command {
        Command::List => Ok(table(data)),
        Command::Add { .. } | Command::Del { .. } => {
            Ok(format!("{}\n", data["id"].as_str().unwrap_or_default()))
        }
    }
}

async fn ask(
    path: &Path,
    method: Method,
    target: &str,
    body: String,
) -> Result<(StatusCode, Value), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TokioIo::new(UnixStream::connect(path).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    let driver = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(format!("{API_ROOT}{target}"))
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(bytes::Bytes::from(body)))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    driver.abort();
    Ok((status, serde_json::from_slice(&bytes)?))
}

/// Formats a tab-separated table with a header line.
fn table(users: &Value) -> String {
    let columns = ["id", "username", "role", "enabled", "last_login"];
    let mut text = format!("{}\n", columns.join("\t").to_uppercase());
    for user in users.as_array().into_iter().flatten() {
        let cells = columns.map(|column| match &user[column] {
            Value::String(text) => text.clone(),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        });
        text.push_str(&cells.join("\t"));
        text.push('\n');
    }
    text
}

/// Reads the password from the environment, else from the terminal without echo, else from the first line of standard
/// input.
fn read_password() -> Result<Secret, Error> {
    if let Some(text) = std::env::var_os(PASSWORD_VARIABLE) {
        return match text.into_string() {
            Ok(text) if !text.is_empty() => Ok(Secret::new(text)),
            _ => Err(Error::EmptyVariable),
        };
    }
    let input = io::stdin();
    if !input.is_terminal() {
        return read_line(&mut input.lock()).map_err(Error::Read);
    }
    let first = prompt("Password: ").map_err(Error::Read)?;
    if prompt("Again: ").map_err(Error::Read)? != first {
        return Err(Error::Differ);
    }
    Ok(first)
}

fn read_line(input: &mut impl BufRead) -> io::Result<Secret> {
    let mut line = String::new();
    io::Read::take(input, LONGEST_LINE).read_line(&mut line)?;
    let text = line.strip_suffix('\n').unwrap_or(&line);
    Ok(Secret::new(text.strip_suffix('\r').unwrap_or(text)))
}

/// Reads a line from the terminal without echo.
fn prompt(text: &str) -> io::Result<Secret> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

    eprint!("{text}");
    io::stderr().flush()?;
    let input = io::stdin();
    let before = tcgetattr(&input)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(&input, OptionalActions::Flush, &silent)?;
    let line = read_line(&mut input.lock());
    tcsetattr(&input, OptionalActions::Flush, &before)?;
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line_without_its_end() {
        for (given, password) in [
            ("secret words here\n", "secret words here"),
            ("secret words here\r\nmore\n", "secret words here"),
            ("  spaces count  ", "  spaces count  "),
            ("", ""),
        ] {
            let read = read_line(&mut given.as_bytes()).expect("read");
            assert_eq!(read.expose(), password, "{given:?}");
        }
    }

    #[test]
    fn every_wrong_field_is_named() {
        let input =
            UserInput { username: "a b".into(), password: Secret::new("short"), ..UserInput::default() };
        let text = refused(input.check(true).expect_err("wrong")).to_string();
        for part in ["username: ", "password: ", "role: "] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("short"), "{text}");
    }
}
