//! Export and import of the configuration: as plain JSON without secrets, or encrypted with all secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_ctl::services::backup::encryption::{self, Form};
use gateway_ctl::services::backup::node;
use gateway_ctl::store::{RollbackOptions, SnapshotReason};
use gateway_model::bulk_edit::Mode;
use gateway_model::export::Document;
use gateway_model::problem::code;
use gateway_model::settings::groups::PASSPHRASE_MIN;
use gateway_model::{EditError, Problems, Secret, State, Warning};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::{self, PlanResult};
use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::{Answer, Content, Reply, WithHeaders};
use crate::request::{Body, Query, Req, Request, decode};
use crate::table::{Audit, Effect, Endpoint, Placeholder, Table};

const OCTETS: &str = "application/octet-stream";

pub fn rows(t: &mut Table) {
    t.view("/config/export", "export_config", export)
        .summary("The configuration as JSON, without secrets")
        .doc("Excludes accounts and the keys of the configuration file. /config/import reads it.")
        .access(Access::Export);
    let acts = |action| Effect::Acts(Audit { action, resource_type: "config" });
    let file = |row: &mut Endpoint| {
        row.summary("The configuration with its secrets, encrypted: an age file, which `age -d` opens too")
            .access(Access::Administer)
            .input_required = true;
        row.media = Some(OCTETS);
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
        .input_required = true;
    let stores = |action| Effect::Stores(Audit { action, resource_type: "config" });
    importing(
        t.action("/config/import", "import_config", stores("import_config"), import)
            .summary("Import a plain export, all or nothing"),
    );
    importing(
        t.upload::<SealedImport, _, _, _>(
            "/backup/import",
            "import_backup",
            stores("import_backup"),
            import_sealed,
        )
        .summary("Import an encrypted export, all or nothing"),
    );
}

fn importing(row: &mut Endpoint) {
    row.doc(
        "Validates, stores and applies the import in one transaction, with a snapshot taken first. Secrets \
         that are not in the export stay as they are where the object is there. Accounts are not touched.",
    )
    .access(Access::Administer)
    .parameter(
        "mode",
        Placeholder::Text,
        "replace (the export replaces the configuration; the default) or merge.",
    )
    .parameter("dry_run", Placeholder::Boolean, "Dry run: returns the changes and stores nothing.")
    .parameter(
        "confirm_timeout_sec",
        Placeholder::Integer,
        "Deadline in seconds for /apply/confirm, after which the change is rolled back.",
    )
    .answers(&[Code::PreconditionFailed])
    .input_required = true;
}

/// A file as the whole response body.
struct File(Vec<u8>);

impl Answer for File {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "binary" })
    }

    fn reply(self) -> Result<Reply, ApiError> {
        Ok(Reply::content(Content::Bytes { content_type: OCTETS, bytes: self.0.into() }))
    }
}

/// Secret that decrypts the export.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Passphrase {
    /// Passphrase of at least 12 characters.
    pub passphrase: Secret,
}

/// An encrypted export in text form.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArmoredExport {
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
pub struct SealedImport {
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

/// Returns the document of the current state.
fn document(cx: &Cx, secrets: bool) -> Result<(Document, Timestamp), ApiError> {
    let open = cx.open()?;
    let (state, now) = (open.store.current(), open.now());
    let node = node(&state);
    Ok((Document::of(&state, secrets, env!("CARGO_PKG_VERSION"), &node, now), now))
}

async fn export(cx: Cx, _: Req<()>) -> Result<Document, ApiError> {
    blocking(move || document(&cx, false).map(|(document, _)| document)).await?
}

async fn sealed(cx: Cx, request: Req<Passphrase>) -> Result<File, ApiError> {
    let passphrase = checked(request.input.passphrase)?;
    blocking(move || {
        let (document, _) = document(&cx, true)?;
        seal(&document, &passphrase, Form::Binary).map(File)
    })
    .await?
}

async fn armored(cx: Cx, request: Req<Passphrase>) -> Result<ArmoredExport, ApiError> {
    let passphrase = checked(request.input.passphrase)?;
    blocking(move || {
        let (document, now) = document(&cx, true)?;
        let content = seal(&document, &passphrase, Form::Armored)?;
        Ok(ArmoredExport {
            name: format!("gateway-{}.age", now.strftime("%Y%m%dT%H%M%SZ")),
            created_at: now,
            format: "age-armored",
            size: content.len(),
            content: String::from_utf8_lossy(&content).into_owned(),
        })
    })
    .await?
}

fn seal(document: &Document, passphrase: &Secret, form: Form) -> Result<Vec<u8>, ApiError> {
    encryption::seal(&document.to_bytes(), passphrase.expose(), form)
        .map_err(|error| ApiError::internal(&error))
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

async fn import(cx: Cx, request: Req<Document>) -> Result<WithHeaders<PlanResult>, ApiError> {
    take_in(&cx, request.input, &request.query, request.if_match).await
}

async fn import_sealed(cx: Cx, request: Request) -> Result<WithHeaders<PlanResult>, ApiError> {
    let Request { body, passphrase, query, if_match, .. } = request;
    let (sealed, passphrase, warnings) = match body {
        Body::Bytes(bytes) => (bytes, passphrase, Vec::new()),
        Body::Json(value) => {
            let (input, warnings) = decode::<SealedImport>(unwrapped(value))?;
            // Base64 has no hyphens; the text form begins with them.
            let bytes = match STANDARD.decode(input.content.trim()) {
                Ok(bytes) => bytes,
                Err(_) => input.content.into_bytes(),
            };
            let given = if input.passphrase.is_set() { input.passphrase } else { passphrase };
            (bytes, given, warnings)
        }
        Body::Absent | Body::Text(_) => (Vec::new(), passphrase, Vec::new()),
    };
    if !passphrase.is_set() {
        let mut problems = Problems::new();
        problems.required("passphrase");
        return Err(ApiError::validation(&problems).detail("header", "X-Passphrase"));
    }
    let document = blocking(move || {
        let plain = encryption::open(&sealed, passphrase.expose())
            .map_err(|error| ApiError::new(Code::DecryptFailed, format!("Nothing was changed: {error}.")))?;
        Document::from_bytes(&plain).map_err(|problems| ApiError::validation(&problems))
    })
    .await??;
    let mut answer = take_in(&cx, document, &query, if_match).await?;
    answer.warnings.extend::<Vec<Warning>>(warnings);
    Ok(answer)
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
    document: Document,
    query: &Query,
    if_match: Option<String>,
) -> Result<WithHeaders<PlanResult>, ApiError> {
    let document = document.accept().map_err(|problems| ApiError::validation(&problems))?;
    let mode = match query.get("mode") {
        None | Some("replace") => Mode::Replace,
        Some("merge") => Mode::Merge,
        Some(other) => {
            return Err(ApiError::invalid_parameter(
                "mode",
                format!("mode is replace or merge; {other:?} is not."),
            )
            .detail("allowed", ["replace", "merge"]));
        }
    };
    let seconds = match query.get("confirm_timeout_sec").map(str::parse::<u32>) {
        None => 0,
        Some(Ok(seconds)) => seconds,
        Some(Err(_)) => {
            let message = "confirm_timeout_sec is a number of seconds.";
            return Err(ApiError::invalid_parameter("confirm_timeout_sec", message));
        }
    };
    plan::check_timeout(seconds)?;
    let edit = move |draft: &mut State| document.import(draft, mode).map_err(EditError::Invalid);
    if query.flag("dry_run")? {
        return Ok(WithHeaders::new(plan::dry_run(cx, if_match, plan::Gate::Tests, edit).await?));
    }
    let safety =
        RollbackOptions { reason: SnapshotReason::PreImport, confirm: plan::confirm_within(seconds) };
    plan::execute(cx, if_match, safety, edit).await
}
