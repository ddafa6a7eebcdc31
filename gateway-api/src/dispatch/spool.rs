//! Bodies of imports: written to a file while they arrive, because they may be far larger than other bodies.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

use axum::body::{Body as HttpBody, HttpBody as _};
use bytes::BytesMut;
use gateway_ctl::os::nameless_file;
use http_body_util::BodyExt as _;
use tokio::sync::OwnedSemaphorePermit;

use crate::blocking::blocking;
use crate::error::{ApiError, Code};

/// Size of a file in bytes from which it is refused.
pub(super) const LIMIT_BYTES: u64 = 256 << 20;
/// Timeout of a part of the body, and of the whole.
const PART_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_mins(15);
/// Size of the parts that are written to the file.
const PART_BYTES: usize = 1 << 20;

/// A body in a file without a name, from its first byte on.
#[derive(Debug)]
pub struct Spooled {
    pub file: File,
    /// The body is JSON by its media type.
    pub is_json: bool,
    pub length: u64,
    /// Only so many imports are in progress.
    _permit: OwnedSemaphorePermit,
}

/// Writes a body into a file in the folder, which has no name there.
pub(super) async fn spool(
    body: HttpBody,
    folder: &Path,
    is_json: bool,
    permit: OwnedSemaphorePermit,
) -> Result<Spooled, ApiError> {
    if body.size_hint().lower() > LIMIT_BYTES {
        return Err(too_large());
    }
    let folder = folder.to_owned();
    let file = blocking(move || nameless_file::create(&folder)).await?.map_err(failed)?;
    let mut file = tokio::time::timeout(TIMEOUT, write(body, file)).await.map_err(|_| too_late())??;
    let file = blocking(move || file.seek(SeekFrom::Start(0)).map(|_| file)).await?.map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    Ok(Spooled { file, is_json, length, _permit: permit })
}

async fn write(mut body: HttpBody, mut file: File) -> Result<File, ApiError> {
    let (mut part, mut total) = (BytesMut::new(), 0);
    loop {
        let frame = tokio::time::timeout(PART_TIMEOUT, body.frame()).await.map_err(|_| too_late())?;
        let is_last = frame.is_none();
        if let Some(frame) = frame {
            let frame = frame.map_err(|_| ApiError::bad_request("The body is incomplete."))?;
            if let Ok(data) = frame.into_data() {
                total += data.len() as u64;
                if total > LIMIT_BYTES {
                    return Err(too_large());
                }
                part.extend_from_slice(&data);
            }
        }
        if part.len() >= PART_BYTES || is_last {
            let bytes = std::mem::take(&mut part);
            file = blocking(move || file.write_all(&bytes).map(|()| file)).await?.map_err(failed)?;
        }
        if is_last {
            return Ok(file);
        }
    }
}

fn too_large() -> ApiError {
    ApiError::new(Code::PayloadTooLarge, format!("The file is larger than {LIMIT_BYTES} bytes."))
        .detail("limit_bytes", LIMIT_BYTES)
}

fn too_late() -> ApiError {
    ApiError::bad_request("The body stopped for 30 seconds, or did not arrive within 15 minutes.")
}

fn failed(error: io::Error) -> ApiError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ApiError::new(Code::StorageFull, "There is no space for the file to import.")
        }
        _ => ApiError::internal(&error),
    }
}
