//! Object store with the S3 protocol: requests with signed URLs (Signature Version 4), buckets in the path.

use std::time::Duration;

use ::http::{Method, Request};
use bytes::Bytes;
use gateway_model::settings::groups::BackupTarget;
use rusty_s3::actions::{ListObjectsV2, S3Action};
use rusty_s3::{Bucket, Credentials, UrlStyle};
use url::Url;

use super::error::Error;
use super::http::Transport;

/// Region for object stores that ignore it.
const REGION: &str = "us-east-1";
/// Validity of a signed URL. Each URL is used at once.
const VALIDITY: Duration = Duration::from_secs(900);

pub(super) struct S3 {
    bucket: Bucket,
    credentials: Credentials,
    /// Prefix of the object keys: empty, or a path that ends with a slash.
    prefix: String,
    transport: Transport,
}

impl S3 {
    /// Creates the target without sending anything.
    pub(super) fn new(config: &BackupTarget, transport: Transport) -> Result<S3, Error> {
        let (bucket, prefix) = config.bucket();
        let region = if config.region.is_empty() { REGION } else { config.region.as_str() };
        let setup = |what: String| Error::Setup(what);
        let url = Url::parse(&config.url).map_err(|error| setup(format!("the address: {error}")))?;
        let bucket = Bucket::new(url, UrlStyle::Path, bucket.to_owned(), region.to_owned())
            .map_err(|error| setup(format!("the address: {error}")))?;
        let credentials = Credentials::new(config.username.as_str(), config.secret.expose());
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(S3 { bucket, credentials, prefix, transport })
    }

    /// Returns the names of the objects directly below the prefix.
    pub(super) async fn list(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        let mut continuation: Option<String> = None;
        loop {
            let mut list = self.bucket.list_objects_v2(Some(&self.credentials));
            list.with_prefix(self.prefix.as_str());
            list.with_delimiter("/");
            if let Some(token) = &continuation {
                list.with_continuation_token(token.as_str());
            }
            let body = self.send(Method::GET, &list.sign(VALIDITY), Bytes::new()).await?;
            let (keys, next) = read_list(&body)?;
            let name = |key: String| key.strip_prefix(&self.prefix).map(str::to_owned);
            names.extend(keys.into_iter().filter_map(name).filter(|name| is_name(name)));
            match next {
                Some(token) => continuation = Some(token),
                None => return Ok(names),
            }
        }
    }

    pub(super) async fn write(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        let put = self.bucket.put_object(Some(&self.credentials), &self.key(name)).sign(VALIDITY);
        self.send(Method::PUT, &put, bytes).await.map(drop)
    }

    pub(super) async fn read(&self, name: &str) -> Result<Bytes, Error> {
        let get = self.bucket.get_object(Some(&self.credentials), &self.key(name)).sign(VALIDITY);
        self.send(Method::GET, &get, Bytes::new()).await
    }

    /// Removes an object. An object that no longer exists is no error.
    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let delete = self.bucket.delete_object(Some(&self.credentials), &self.key(name)).sign(VALIDITY);
        self.send(Method::DELETE, &delete, Bytes::new()).await.map(drop)
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    async fn send(&self, method: Method, url: &Url, body: Bytes) -> Result<Bytes, Error> {
        let request = Request::builder().method(method).uri(url.as_str()).body(body);
        // The error must not contain the URL, which holds the signature.
        let request = request.map_err(|error| Error::Setup(format!("the address: {error}")))?;
        self.transport.accepted(request).await
    }
}

/// Reports whether a key is the name of a file; other keys belong to folders.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/')
}

/// Parses a page of a list. Returns its keys and the token of the next page.
fn read_list(body: &[u8]) -> Result<(Vec<String>, Option<String>), Error> {
    let text = String::from_utf8_lossy(body);
    let page = ListObjectsV2::parse_response(&text)
        .map_err(|error| Error::failed("listing the folder", format!("the answer is no list: {error}")))?;
    let keys = page.contents.into_iter().map(|object| object.key).collect();
    Ok((keys, page.next_continuation_token))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_and_the_token_of_the_next_page_are_read() {
        let page = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><MaxKeys>1000</MaxKeys>
            <IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken>
            <Contents><Key>home/a%20b.gwb</Key><Size>5</Size></Contents>
            <Contents><Key>home/c.gwb</Key><Size>7</Size></Contents>
            <CommonPrefixes><Prefix>home/other/</Prefix></CommonPrefixes>
            <EncodingType>url</EncodingType></ListBucketResult>"#;
        let (keys, next) = read_list(page.as_bytes()).expect("a list");
        assert_eq!(keys, ["home/a b.gwb", "home/c.gwb"]);
        assert_eq!(next.as_deref(), Some("more"));
        assert!(read_list(b"<html>no list</html>").is_err());
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(text in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_list(text.as_bytes());
            let _ = read_list(&bytes);
            let _ = read_list(format!("<ListBucketResult><Contents>{text}</Contents></ListBucketResult>").as_bytes());
        }
    }
}
