//! Folder of a WebDAV server (RFC 4918).

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use ::http::request::Builder;
use ::http::{Request, Response, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gateway_model::settings::groups::BackupTarget;
use percent_encoding::percent_decode_str;
use quick_xml::NsReader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use quick_xml::name::{Namespace, ResolveResult};
use url::Url;

use super::error::Error;
use super::http::{Transport, refusal};

/// PROPFIND body that requests only which entries are folders (RFC 4918, section 15.9).
const PROPERTIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>";
const DAV: Namespace<'static> = Namespace("DAV:");

pub(super) struct Webdav {
    /// Base URL without a trailing slash.
    endpoint: Url,
    /// Folders below it.
    path: Vec<String>,
    authorization: Option<HeaderValue>,
    transport: Transport,
}

impl Webdav {
    /// Creates the target without sending anything.
    pub(super) fn new(config: &BackupTarget, transport: Transport) -> Result<Webdav, Error> {
        let setup = |what: String| Error::Setup(what);
        let mut endpoint = Url::parse(&config.url).map_err(|error| setup(format!("the address: {error}")))?;
        match endpoint.path_segments_mut() {
            Ok(mut segments) => drop(segments.pop_if_empty()),
            Err(()) => return Err(setup("the address is not https://host/path".to_owned())),
        }
        let path = config.path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let secret = config.secret.expose();
        let authorization = match (config.username.is_empty(), secret.is_empty()) {
            (true, true) => None,
            _ => {
                // HTTP Basic authentication (RFC 7617).
                let value = format!("Basic {}", STANDARD.encode(format!("{}:{secret}", config.username)));
                let value = HeaderValue::try_from(value);
                let mut value = value.map_err(|_| setup("the user or the secret is not text".to_owned()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Webdav { endpoint, path, authorization, transport })
    }

    /// Returns the names of the files in the folder; none if the folder does not exist yet.
    pub(super) async fn list(&self) -> Result<Vec<String>, Error> {
        let request = self.request("PROPFIND", &self.folder(self.path.len())).header("Depth", "1");
        let request = request.header(CONTENT_TYPE, "application/xml; charset=utf-8");
        let (status, body) = self.answer(request, PROPERTIES.into()).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(Vec::new()),
            _ => match refusal(status, &body) {
                Some(error) => Err(error),
                None => read_list(&body),
            },
        }
    }

    /// Writes a file. Creates the folder if it does not exist.
    pub(super) async fn write(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        let put = || self.request("PUT", &self.file(name));
        let (status, body) = self.answer(put(), bytes.clone()).await?;
        // RFC 4918, section 9.7.1, requires 409; some servers return 404.
        if !matches!(status, StatusCode::CONFLICT | StatusCode::NOT_FOUND) {
            return refusal(status, &body).map_or(Ok(()), Err);
        }
        self.make_folders().await?;
        self.accepted(put(), bytes).await.map(drop)
    }

    pub(super) async fn read(&self, name: &str) -> Result<Bytes, Error> {
        self.accepted(self.request("GET", &self.file(name)), Bytes::new()).await
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let request = self.request("MOVE", &self.file(from)).header("Overwrite", "T");
        let request = request.header("Destination", self.file(to).as_str());
        self.accepted(request, Bytes::new()).await.map(drop)
    }

    /// Removes a file. A file that no longer exists is no error.
    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let (status, body) = self.answer(self.request("DELETE", &self.file(name)), Bytes::new()).await?;
        if status == StatusCode::NOT_FOUND { Ok(()) } else { refusal(status, &body).map_or(Ok(()), Err) }
    }

    async fn make_folders(&self) -> Result<(), Error> {
        for depth in 1..=self.path.len() {
            let (status, body) =
                self.answer(self.request("MKCOL", &self.folder(depth)), Bytes::new()).await?;
            // The folder exists already (RFC 4918, section 9.3.1).
            if status != StatusCode::METHOD_NOT_ALLOWED
                && let Some(error) = refusal(status, &body)
            {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the URL of the folder at a depth of the path, with a trailing slash.
    fn folder(&self, depth: usize) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(self.path.iter().take(depth)).push("");
        }
        url
    }

    fn file(&self, name: &str) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(&self.path).push(name);
        }
        url
    }

    fn request(&self, method: &str, url: &Url) -> Builder {
        let request = Request::builder().method(method).uri(url.as_str());
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        }
    }

    async fn accepted(&self, request: Builder, body: Bytes) -> Result<Bytes, Error> {
        self.transport.accepted(built(request, body)?).await
    }

    async fn answer(&self, request: Builder, body: Bytes) -> Result<(StatusCode, Bytes), Error> {
        let answer: Response<Bytes> = self.transport.answer(built(request, body)?).await?;
        Ok((answer.status(), answer.into_body()))
    }
}

fn built(request: Builder, body: Bytes) -> Result<Request<Bytes>, Error> {
    request.body(body).map_err(|error| Error::Setup(format!("the address: {error}")))
}

/// Returns the names of the files of a multistatus response (RFC 4918, section 13), without folders.
fn read_list(body: &[u8]) -> Result<Vec<String>, Error> {
    let failed = |what: &str| Error::failed("listing the folder", format!("the answer is no list: {what}"));
    let text = String::from_utf8_lossy(body);
    let mut reader = NsReader::from_str(&text);
    let (mut names, mut href, mut is_folder, mut in_href, mut depth) =
        (Vec::new(), String::new(), false, false, 0);
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|error| failed(&error.to_string()))?;
        let is_dav = namespace == ResolveResult::Bound(DAV);
        match event {
            Event::Start(tag) => {
                depth += 1;
                match tag.local_name().as_ref() {
                    "response" if is_dav => (href, is_folder) = (String::new(), false),
                    "href" if is_dav => in_href = true,
                    "collection" if is_dav => is_folder = true,
                    _ => {}
                }
            }
            Event::Empty(tag) if is_dav && tag.local_name().as_ref() == "collection" => is_folder = true,
            Event::Text(text) if in_href => href.push_str(&text),
            Event::GeneralRef(entity) if in_href => {
                href.push_str(resolve_predefined_entity(&entity).ok_or_else(|| failed("an unknown entity"))?);
            }
            Event::End(tag) => {
                depth -= 1;
                match tag.local_name().as_ref() {
                    "href" if is_dav => in_href = false,
                    "response" if is_dav && !is_folder => names.extend(file_name(href.trim())),
                    _ => {}
                }
            }
            Event::Eof if depth == 0 => return Ok(names),
            Event::Eof => return Err(failed("it ends early")),
            _ => {}
        }
    }
}

/// Returns the last segment of a path or URL, decoded; `None` for a folder.
fn file_name(href: &str) -> Option<String> {
    let name = href.rsplit('/').next().filter(|name| !name.is_empty())?;
    let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    (!name.contains('/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_are_listed_and_folders_are_not() {
        let answer = r#"<?xml version="1.0" encoding="utf-8"?><D:multistatus xmlns:D="DAV:" xmlns:x="other:">
            <D:response><D:href>/dav/gateway/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype>
            </D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
            <D:response><D:href>http://host/dav/gateway/a%20b.gwb</D:href><D:propstat><D:prop><D:resourcetype/></D:prop>
            </D:propstat></D:response>
            <D:response><D:href>/dav/gateway/c.gwb</D:href><x:collection/></D:response>
            <D:response><D:href>/dav/gateway/below</D:href><D:propstat><D:prop><D:resourcetype><D:collection></D:collection>
            </D:resourcetype></D:prop></D:propstat></D:response></D:multistatus>"#;
        assert_eq!(read_list(answer.as_bytes()).expect("a list"), ["a b.gwb", "c.gwb"]);
        assert!(read_list(b"<D:multistatus xmlns:D=\"DAV:\"><D:response>").is_err());
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(text in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_list(text.as_bytes());
            let _ = read_list(&bytes);
            let _ = read_list(format!("<response xmlns=\"DAV:\"><href>{text}</href></response>").as_bytes());
        }
    }
}
