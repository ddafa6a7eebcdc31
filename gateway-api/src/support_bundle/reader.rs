//! Replies of handlers as readers for blocking work.

use std::io::{self, Read};

use bytes::{Buf as _, Bytes};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use crate::error::ApiError;
use crate::reply::{Content, Reply};

/// Number of parts of a streamed body that wait for the reader.
const WAITING_PARTS: usize = 4;

/// Reader of the body of a reply.
pub(super) struct ReplyReader {
    parts: Option<mpsc::Receiver<io::Result<Bytes>>>,
    current: Bytes,
}

impl ReplyReader {
    /// Returns the reader of the body that the API would send.
    pub(super) fn new(reply: Reply) -> Result<ReplyReader, ApiError> {
        let failed = |error: serde_json::Error| ApiError::internal(&error);
        let whole = |bytes: Bytes| Ok(ReplyReader { parts: None, current: bytes });
        match reply.content {
            Content::Data(data) => {
                let text = Reply::text_with(&data).map_err(failed)?;
                whole(Reply::seal(text, &reply.warnings).map_err(failed)?.0.into())
            }
            Content::Text(text) => whole(Reply::seal(text, &reply.warnings).map_err(failed)?.0.into()),
            Content::Json { bytes, .. } | Content::Bytes { bytes, .. } => whole(bytes),
            Content::Stream { body, .. } => {
                let (sender, parts) = mpsc::channel(WAITING_PARTS);
                tokio::spawn(async move {
                    let mut frames = body.into_data_stream();
                    while let Some(part) = frames.next().await {
                        // The reader may stop early.
                        if sender.send(part.map_err(io::Error::other)).await.is_err() {
                            break;
                        }
                    }
                });
                Ok(ReplyReader { parts: Some(parts), current: Bytes::new() })
            }
            Content::OpenApi | Content::File(_) => {
                Err(ApiError::internal(&io::Error::other("this reply is no part of a bundle")))
            }
        }
    }
}

impl Read for ReplyReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            let Some(parts) = &mut self.parts else { return Ok(0) };
            match parts.blocking_recv() {
                Some(part) => self.current = part?,
                None => return Ok(0),
            }
        }
        let length = self.current.len().min(into.len());
        self.current.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}
