//! Export and import of the configuration: as plain JSON without secrets, or encrypted with all secrets.
//!
//! An export is written object by object by a blocking task, and encrypted on the way. An import goes to a file without
//! a name and is parsed from there, with a limit on the memory of its values: a larger limit on bodies alone would let
//! one request take many times its size. Two transfers may be in progress.

use std::io::{self, BufReader, Read, Write};
use std::marker::PhantomData;
use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_ctl::services::backup::encryption::{self, Form};
use gateway_ctl::services::backup::node;
use gateway_ctl::store::{RollbackOptions, SnapshotReason};
use gateway_model::bulk_edit::Mode;
use gateway_model::export::Document;
use gateway_model::export::read::{ReadError, read};
use gateway_model::problem::code;
use gateway_model::settings::Bootstrap;
use gateway_model::settings::groups::PASSPHRASE_MIN;
use gateway_model::{EditError, Problems, Secret, State, Warning, text_enum};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::interfaces::presence::missing_interfaces;
use super::plan::{self, PlanResult};
use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::{Answer, Content, Reply, WithHeaders};
use crate::request::{Body as RequestBody, Query, Req, Request, decode};
use crate::streamed::{self, InJsonString};
use crate::table::{Audit, Effect, Endpoint, Input, Output, Table};

const OCTETS: &str = "application/octet-stream";
/// Memory that the objects of an import may take, in bytes.
const MEMORY_BYTES: usize = 1 << 30;

pub(super) fn rows(t: &mut Table) {
    t.view("/config/export", "export_config", export)
        .summary("The configuration as JSON, without secrets")
        .doc(
            "Has all objects but accounts, the pending changes of policies, and every setting that was set at run time. \
             Keys that only the configuration file sets are not in it. /config/import reads it.",
        )
        .access(Access::Export);
    let acts = |action| Effect::Acts(Audit { action, resource_type: "config" });
    let file = |row: &mut Endpoint| {
        row.summary("The configuration with its secrets, encrypted: an age file, which `age -d` opens too")
            .access(Access::Administer)
            .requires_input();
        row.output = Output::Bytes(OCTETS);
    };
    file(t.action(
        "/config/export-encrypted",
        "export_config_encrypted",
        acts("export_config_encrypted"),
        sealed,
    ));
    file(t.action(
        "/backup/export-encrypted",
        "export_backup_encrypted",
        acts("export_backup_encrypted"),
        sealed,
    ));
    t.action("/backup/export", "export_backup", acts("export_backup"), armored)
        .summary("The configuration with its secrets, encrypted, as text inside JSON")
        .doc("Same content as /backup/export-encrypted, in the ASCII armor of age.")
        .access(Access::Administer)
        .requires_input();
    let stores = |action| Effect::Stores(Audit { action, resource_type: "config" });
    let row = t.upload::<Document, _, _, _>(
        "/config/import",
        "import_config",
        stores("import_config"),
        Input::Document,
        import,
    );
    importing(row.summary("Import a plain export, all or nothing"));
    let row = t.upload::<SealedImport, _, _, _>(
        "/backup/import",
        "import_backup",
        stores("import_backup"),
        Input::File,
        import_sealed,
    );
    importing(row.summary("Import an encrypted export, all or nothing").answers(&[Code::DecryptFailed]));
}

fn importing(row: &mut Endpoint) {
    row.doc(
        "Validates, stores and applies the import in one transaction, with a snapshot taken first. Secrets \
         that are not in the export stay as they are where the object is there. What was pending stays pending. \
         Accounts are not touched.",
    )
    .access(Access::Administer)
    .query::<ImportQuery>()
    .answers(&[Code::PreconditionFailed]);
}

text_enum! {
    /// Treatment of the configuration by an import.
    #[derive(Default)]
    pub enum ImportMode {
        /// The export replaces it.
        #[default]
        Replace = "replace",
        Merge = "merge",
    }
}

/// Query of an import.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ImportQuery {
    /// replace (the export replaces the configuration; the default) or merge.
    mode: ImportMode,
    /// Imports although gating tests fail; warnings and the audit entry name them.
    force: bool,
    /// Dry run: returns the changes and stores nothing.
    dry_run: bool,
    /// Deadline in seconds for /apply/confirm, after which the change is rolled back.
    confirm_timeout_sec: u32,
}

/// A file as the whole response body, written while it is sent.
struct File(Body);

impl Answer for File {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "binary" })
    }

    fn reply(self) -> Result<Reply, ApiError> {
        Ok(Reply::content(Content::Stream { content_type: OCTETS, body: self.0 }))
    }
}

/// A response of this type in the envelope, written while it is sent.
struct Streamed<T>(Body, PhantomData<T>);

impl<T: JsonSchema> Answer for Streamed<T> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }

    fn reply(self) -> Result<Reply, ApiError> {
        Ok(Reply::content(Content::Stream { content_type: "application/json", body: self.0 }))
    }
}

/// Secret that decrypts the export.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Passphrase {
    /// Passphrase of at least 12 characters.
    pub passphrase: Secret,
}

/// An encrypted export in text form.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ArmoredExport {
    /// Suggested file name.
    pub name: String,
    pub created_at: Timestamp,
    /// File format: `age-armored`.
    pub format: &'static str,
    /// Size of the content in bytes.
    pub size: usize,
    /// The encrypted file as text (armored age).
    pub content: String,
}

/// An encrypted export inside JSON.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct SealedImport {
    pub passphrase: Secret,
    /// The file: its text form unchanged, its binary form in base64.
    pub content: String,
    /// Fields of the response of /backup/export. They may be sent back and are ignored.
    #[serde(rename = "name")]
    #[schemars(skip)]
    _name: Value,
    #[serde(rename = "created_at")]
    #[schemars(skip)]
    _created_at: Value,
    #[serde(rename = "format")]
    #[schemars(skip)]
    _format: Value,
    #[serde(rename = "size")]
    #[schemars(skip)]
    _size: Value,
}

/// A state that is written as a document.
struct Export {
    state: Arc<State>,
    file: Bootstrap,
    secrets: bool,
    now: Timestamp,
}

impl Export {
    fn of(cx: &Cx, secrets: bool) -> Result<Export, ApiError> {
        let open = cx.open()?;
        let file = open.worlds.configuration().file().clone();
        Ok(Export { state: open.store.current(), file, secrets, now: open.now() })
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Export { state, file, secrets, now } = self;
        Document::write(state, file, *secrets, env!("CARGO_PKG_VERSION"), &node(state), *now, out)
    }
}

async fn export(cx: Cx, _: Req<()>) -> Result<Streamed<Document>, ApiError> {
    let permit = cx.api.heavy.transfer().await?;
    let export = Export::of(&cx, false)?;
    let body = streamed::body(permit, move |out| {
        out.write_all(b"{\"data\":")?;
        export.write(out)?;
        out.write_all(b"}")
    });
    Ok(Streamed(body, PhantomData))
}

async fn sealed(cx: Cx, request: Req<Passphrase>) -> Result<File, ApiError> {
    let passphrase = checked(request.input.passphrase)?;
    let permit = cx.api.heavy.transfer().await?;
    let export = Export::of(&cx, true)?;
    Ok(File(streamed::body(permit, move |out| {
        encryption::seal_stream(out, passphrase.expose(), Form::Binary, |out| export.write(out))
    })))
}

async fn armored(cx: Cx, request: Req<Passphrase>) -> Result<Streamed<ArmoredExport>, ApiError> {
    let passphrase = checked(request.input.passphrase)?;
    let permit = cx.api.heavy.transfer().await?;
    let export = Export::of(&cx, true)?;
    let head = json!({
        "name": format!("gateway-{}.age", export.now.strftime("%Y%m%dT%H%M%SZ")),
        "created_at": export.now,
        "format": "age-armored",
    });
    let body = streamed::body(permit, move |out| {
        let head = head.to_string();
        write!(out, "{{\"data\":{},\"content\":\"", head.trim_end_matches('}'))?;
        let mut text = InJsonString { out: &mut *out, length: 0 };
        encryption::seal_stream(&mut text, passphrase.expose(), Form::Armored, |out| export.write(out))?;
        let length = text.length;
        write!(out, "\",\"size\":{length}}}}}")
    });
    Ok(Streamed(body, PhantomData))
}

fn checked(passphrase: Secret) -> Result<Secret, ApiError> {
    let mut problems = Problems::new();
    if !passphrase.is_set() {
        problems.required("passphrase");
    } else if passphrase.expose().chars().count() < PASSPHRASE_MIN {
        problems.add(code::RANGE, "passphrase", format!("At least {PASSPHRASE_MIN} characters."));
    }
    if problems.is_empty() { Ok(passphrase) } else { Err(ApiError::validation(&problems)) }
}

async fn import(cx: Cx, request: Request) -> Result<WithHeaders<PlanResult>, ApiError> {
    let Request { body, query, if_match, .. } = request;
    let RequestBody::Spooled(spooled) = body else { return Err(no_file()) };
    let (document, spooled) = blocking(move || {
        let document = read_value(&spooled.file).map_err(unreadable).and_then(decode_document);
        (document, spooled)
    })
    .await?;
    let answer = take_in(&cx, document?, &query, if_match).await;
    drop(spooled);
    answer
}

async fn import_sealed(cx: Cx, request: Request) -> Result<WithHeaders<PlanResult>, ApiError> {
    let Request { body, passphrase, query, if_match, .. } = request;
    let RequestBody::Spooled(spooled) = body else { return Err(no_file()) };
    let (document, spooled) = blocking(move || {
        let document = if spooled.is_json {
            opened_text(&spooled.file, passphrase)
        } else {
            opened(&spooled.file, &passphrase)
        };
        (document, spooled)
    })
    .await?;
    let answer = take_in(&cx, document?, &query, if_match).await;
    drop(spooled);
    answer
}

fn no_file() -> ApiError {
    ApiError::bad_request("This operation needs a file or a JSON object as its body.")
}

/// Reads a file as JSON, within the limit of memory.
fn read_value(file: impl Read) -> Result<Value, ReadError> {
    read(BufReader::with_capacity(64 << 10, file), MEMORY_BYTES)
}

fn decode_document(value: Value) -> Result<(Document, Vec<Warning>), ApiError> {
    if !value.is_object() {
        return Err(ApiError::bad_request("The body must be a JSON object."));
    }
    Document::decode(value).map_err(|problems| ApiError::validation(&problems))
}

fn unreadable(error: ReadError) -> ApiError {
    match error {
        ReadError::TooLarge { limit } => too_large(limit),
        ReadError::Json(error) => ApiError::bad_request(format!("The body is not JSON: {error}."))
            .detail("line", error.line())
            .detail("column", error.column()),
    }
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(Code::PayloadTooLarge, format!("The objects take more than {limit} bytes of memory."))
        .detail("limit_bytes", limit)
}

/// Decrypts and decodes an encrypted export.
fn opened(sealed: impl Read, passphrase: &Secret) -> Result<(Document, Vec<Warning>), ApiError> {
    if !passphrase.is_set() {
        let mut problems = Problems::new();
        problems.required("passphrase");
        return Err(ApiError::validation(&problems).detail("header", "X-Passphrase"));
    }
    let undecryptable = |error: encryption::Error| {
        ApiError::new(Code::DecryptFailed, format!("Nothing was changed: {error}."))
    };
    let plain = encryption::open_stream(sealed, passphrase.expose()).map_err(undecryptable)?;
    let value = read_value(plain).map_err(|error| match error {
        ReadError::TooLarge { limit } => too_large(limit),
        ReadError::Json(error) if error.is_io() => undecryptable(encryption::Error::Decrypt),
        ReadError::Json(error) => {
            let mut problems = Problems::new();
            problems.add(code::FORMAT, "", format!("This is no export of a gateway: {error}."));
            ApiError::validation(&problems)
        }
    })?;
    decode_document(value)
}

/// Decrypts and decodes an encrypted export inside JSON.
fn opened_text(file: impl Read, header: Secret) -> Result<(Document, Vec<Warning>), ApiError> {
    let value = read_value(file).map_err(unreadable)?;
    if !value.is_object() {
        return Err(ApiError::bad_request("The body must be a JSON object."));
    }
    let (input, warnings) = decode::<SealedImport>(unwrapped(value))?;
    // Base64 has no hyphens; the text form begins with them.
    let bytes = match STANDARD.decode(input.content.trim()) {
        Ok(bytes) => bytes,
        Err(_) => input.content.into_bytes(),
    };
    let given = if input.passphrase.is_set() { input.passphrase } else { header };
    let (document, more) = opened(&bytes[..], &given)?;
    Ok((document, warnings.into_iter().chain(more).collect()))
}

/// Unwraps the response of /backup/export, with a passphrase added beside its `data`. Returns other bodies unchanged.
fn unwrapped(body: Value) -> Value {
    let Value::Object(mut body) = body else { return body };
    match body.shift_remove("data") {
        Some(Value::Object(mut data)) if !body.contains_key("content") => {
            if let Some(passphrase) = body.shift_remove("passphrase") {
                data.insert("passphrase".to_owned(), passphrase);
            }
            Value::Object(data)
        }
        Some(other) => {
            body.insert("data".to_owned(), other);
            Value::Object(body)
        }
        None => Value::Object(body),
    }
}

async fn take_in(
    cx: &Cx,
    (document, decoded): (Document, Vec<Warning>),
    query: &Query,
    if_match: Option<String>,
) -> Result<WithHeaders<PlanResult>, ApiError> {
    let ImportQuery { mode, force, dry_run, confirm_timeout_sec: seconds } = query.read()?;
    let mode = match mode {
        ImportMode::Replace => Mode::Replace,
        ImportMode::Merge => Mode::Merge,
    };
    plan::check_timeout(seconds)?;
    let gate = if force { plan::Gate::Forced } else { plan::Gate::Tests };
    let world = cx.open()?.world();
    let file = cx.open()?.worlds.configuration().file().clone();
    let edit = move |draft: &mut State| {
        let mut outcome = document.import(draft, &file, mode).map_err(EditError::Invalid)?;
        outcome.warnings.splice(0..0, decoded);
        let (config, _) = file.overlaid_or_less(&draft.settings);
        outcome.warnings.extend(missing_interfaces(draft, &config, &world.facts));
        Ok(outcome)
    };
    if dry_run {
        return Ok(WithHeaders::new(plan::dry_run(cx, if_match, gate, edit).await?));
    }
    let safety =
        RollbackOptions { reason: SnapshotReason::PreImport, confirm: plan::confirm_within(seconds) };
    plan::execute(cx, if_match, safety, gate, edit).await
}
