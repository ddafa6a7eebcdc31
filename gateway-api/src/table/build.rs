//! Builders of endpoints outside collections: views, queries, actions, commands, streams, and endpoints that are not
//! implemented.

use std::future::Future;
use std::sync::Arc;

use gateway_model::capability::{Capability, NOT_SUPPORTED};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use super::{
    Availability, Cost, Effect, Endpoint, Handler, Input, Location, Method, Output, SchemaSource, Table,
    Versions, Work, no_endpoint,
};
use crate::authorization::Access;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::pages::Pages;
use crate::reply::{Answer, Content, Reply};
use crate::request::{Body, Req, Request, decode};

impl Table {
    /// Declares a GET of a computed or observed value.
    pub fn view<O, F, Fut>(&mut self, path: &'static str, operation: &str, run: F) -> &mut Endpoint
    where
        O: Answer + 'static,
        F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let endpoint = self.endpoint(Method::Get, path, operation, Effect::Reads, Access::Read);
        endpoint.output = Output::Data(SchemaSource::new(O::schema));
        endpoint.work = Work::Handler(without_input(run));
        endpoint
    }

    /// Declares a POST without effect.
    pub fn question<I, O, F, Fut>(&mut self, path: &'static str, operation: &str, run: F) -> &mut Endpoint
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Answer + 'static,
        F: Fn(Cx, Req<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let endpoint = self.endpoint(Method::Post, path, operation, Effect::Reads, Access::Check);
        endpoint.input = Input::optional_json(SchemaSource::new(schema_of::<I>));
        endpoint.output = Output::Data(SchemaSource::new(O::schema));
        endpoint.work = Work::Handler(with_input(run));
        endpoint
    }

    /// Declares a POST that has an effect and takes a body.
    pub fn action<I, O, F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        effect: Effect,
        run: F,
    ) -> &mut Endpoint
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Answer + 'static,
        F: Fn(Cx, Req<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let endpoint = self.endpoint(Method::Post, path, operation, effect, Access::Operate);
        endpoint.input = Input::optional_json(SchemaSource::new(schema_of::<I>));
        endpoint.output = Output::Data(SchemaSource::new(O::schema));
        endpoint.work = Work::Handler(with_input(run));
        endpoint
    }

    /// Declares a POST that has an effect and takes no body. A body in the request is ignored.
    pub fn command<O, F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        effect: Effect,
        run: F,
    ) -> &mut Endpoint
    where
        O: Answer + 'static,
        F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let endpoint = self.endpoint(Method::Post, path, operation, effect, Access::Operate);
        endpoint.output = Output::Data(SchemaSource::new(O::schema));
        endpoint.work = Work::Handler(without_input(run));
        endpoint
    }

    /// Declares a PUT that replaces one object.
    pub fn change<I, O, F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        effect: Effect,
        run: F,
    ) -> &mut Endpoint
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Answer + 'static,
        F: Fn(Cx, Req<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let endpoint = self.endpoint(Method::Put, path, operation, effect, Access::Operate);
        endpoint.input = Input::json(SchemaSource::new(schema_of::<I>));
        endpoint.output = Output::Data(SchemaSource::new(O::schema));
        endpoint.work = Work::Handler(with_input(run));
        endpoint
    }

    /// Declares a DELETE of one object. A body in the request is ignored.
    pub fn erase<O, F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        effect: Effect,
        run: F,
    ) -> &mut Endpoint
    where
        O: Answer + 'static,
        F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let endpoint = self.endpoint(Method::Delete, path, operation, effect, Access::Operate);
        endpoint.output = Output::Data(SchemaSource::new(O::schema));
        endpoint.work = Work::Handler(without_input(run));
        endpoint
    }

    /// Declares a GET with a streamed response.
    pub fn stream<F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        media: &'static str,
        run: F,
    ) -> &mut Endpoint
    where
        F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<axum::body::Body, ApiError>> + Send + 'static,
    {
        let endpoint = self.endpoint(Method::Get, path, operation, Effect::Reads, Access::Read);
        endpoint.output = Output::Bytes(media);
        let run = Arc::new(run);
        endpoint.work = Work::Handler(Arc::new(move |cx, request| {
            let run = run.clone();
            Box::pin(async move {
                let body = run(cx, bare(request)).await?;
                Ok(Reply::content(Content::Stream { content_type: media, body }))
            })
        }));
        endpoint
    }

    /// Declares a POST whose handler reads the body by itself.
    pub fn upload<I, O, F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        effect: Effect,
        input: fn(SchemaSource) -> Input,
        run: F,
    ) -> &mut Endpoint
    where
        I: JsonSchema + 'static,
        O: Answer + 'static,
        F: Fn(Cx, Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let endpoint = self.endpoint(Method::Post, path, operation, effect, Access::Operate);
        endpoint.input = input(SchemaSource::new(schema_of::<I>));
        endpoint.output = Output::Data(SchemaSource::new(O::schema));
        let run = Arc::new(run);
        endpoint.work = Work::Handler(Arc::new(move |cx, request| {
            let run = run.clone();
            Box::pin(async move { run(cx, request).await?.reply() })
        }));
        endpoint
    }

    /// Declares a GET of a fixed document with its own media type. It works at any time.
    pub fn document(
        &mut self,
        path: &'static str,
        operation: &str,
        media: &'static str,
        run: impl Fn(&Cx) -> Reply + Send + Sync + 'static,
    ) -> &mut Endpoint {
        let endpoint = self.endpoint(Method::Get, path, operation, Effect::Reads, Access::Open);
        endpoint.output = Output::Bytes(media);
        endpoint.always();
        endpoint.work = Work::Handler(Arc::new(move |cx, _| {
            let reply = run(&cx);
            Box::pin(async move { Ok(reply) })
        }));
        endpoint
    }

    /// Declares a GET of a file of the dashboard. It works at any time, for anyone, and with any query. Without a file
    /// the path is unknown.
    pub fn page(
        &mut self,
        path: &'static str,
        operation: &str,
        media: &'static str,
        run: impl Fn(&Pages, &Request) -> Option<Reply> + Send + Sync + 'static,
    ) -> &mut Endpoint {
        let endpoint = self.endpoint(Method::Get, path, operation, Effect::Reads, Access::Open);
        endpoint.output = Output::Page(media);
        endpoint.always().outside();
        endpoint.answers = vec![Code::NotReady];
        endpoint.work = Work::Handler(Arc::new(move |cx, request| {
            let reply = run(&cx.api.settings.pages, &request).ok_or_else(|| {
                let value = |path: String, (name, value): (&&str, &String)| {
                    path.replace(&format!("{{{name}}}"), value)
                };
                no_endpoint(&request.params.0.iter().fold(path.to_owned(), value))
            });
            Box::pin(async move { reply })
        }));
        endpoint
    }

    /// Declares endpoints of the interface specification that are not implemented.
    pub fn unsupported(&mut self, capability: Capability, endpoints: &[(Method, &'static str)]) {
        for (method, path) in endpoints {
            let operation = operation_name(*method, path);
            let endpoint = self.endpoint(*method, path, &operation, Effect::Reads, Access::Read);
            if *method != Method::Get {
                endpoint.access = Access::Operate;
            }
            endpoint.summary = NOT_SUPPORTED;
            endpoint.work = Work::Unsupported { needs: capability.needs() };
        }
    }

    /// Declares another path for an endpoint with the same method. For compatibility.
    pub fn alias(&mut self, method: Method, path: &'static str, of: &'static str, operation: &str) {
        let position =
            self.endpoints.iter().position(|endpoint| endpoint.method == method && endpoint.path == of);
        // An alias of an unknown path shows up as a missing endpoint in the specification test.
        if let Some(position) = position {
            let mut endpoint = self.endpoints[position].clone();
            endpoint.path = path;
            endpoint.operation = operation.to_owned();
            self.endpoints.push(endpoint);
        }
    }

    /// Sets the access class of an endpoint. Returns false if there is no such endpoint.
    pub fn assign(&mut self, method: Method, path: &str, access: Access) -> bool {
        let endpoint =
            self.endpoints.iter_mut().find(|endpoint| endpoint.method == method && endpoint.path == path);
        endpoint.map(|endpoint| endpoint.access = access).is_some()
    }

    pub(super) fn endpoint(
        &mut self,
        method: Method,
        path: &'static str,
        operation: &str,
        effect: Effect,
        access: Access,
    ) -> &mut Endpoint {
        let position = self.endpoints.len();
        self.endpoints.push(Endpoint {
            area: self.area,
            method,
            path,
            location: Location::Api,
            operation: operation.to_owned(),
            access,
            effect,
            summary: "",
            doc: "",
            queries: Vec::new(),
            headers: Vec::new(),
            input: Input::None,
            output: Output::None,
            status: 200,
            dry_run_status: None,
            answers: Vec::new(),
            versions: Versions::Unknown,
            cost: Cost::Light,
            availability: Availability::WithStore,
            work: Work::Unsupported { needs: "a handler" },
        });
        &mut self.endpoints[position]
    }
}

/// Derives an operation id: `GET /dns/cache/{id}` gives `get_dns_cache_by_id`.
fn operation_name(method: Method, path: &str) -> String {
    let mut name = method.as_str().to_ascii_lowercase();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        name.push('_');
        match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(parameter) => {
                name.push_str("by_");
                name.push_str(parameter);
            }
            None => name.push_str(&segment.replace(['-', '.'], "_")),
        }
    }
    name
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn bare(request: Request) -> Req<()> {
    Req { input: (), params: request.params, query: request.query, if_match: request.if_match }
}

fn without_input<O, F, Fut>(run: F) -> Handler
where
    O: Answer + 'static,
    F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |cx, request| {
        let run = run.clone();
        Box::pin(async move { run(cx, bare(request)).await?.reply() })
    })
}

fn with_input<I, O, F, Fut>(run: F) -> Handler
where
    I: DeserializeOwned + Send + 'static,
    O: Answer + 'static,
    F: Fn(Cx, Req<I>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |cx, request| {
        let run = run.clone();
        Box::pin(async move {
            let value = match request.body {
                Body::Json(value) => value,
                Body::Absent | Body::Spooled(_) => serde_json::json!({}),
            };
            let (input, warnings) = decode::<I>(value)?;
            let request =
                Req { input, params: request.params, query: request.query, if_match: request.if_match };
            let mut reply = run(cx, request).await?.reply()?;
            reply.warnings.splice(0..0, warnings);
            Ok(reply)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_names_of_unbuilt_rows_follow_their_path() {
        assert_eq!(operation_name(Method::Get, "/dns/threat-feeds"), "get_dns_threat_feeds");
        assert_eq!(operation_name(Method::Delete, "/nodes/{id}"), "delete_nodes_by_id");
    }
}
