//! Exceptions of devices. They take effect when they are created and expire by themselves.

use gateway_model::filter::Filter;
use gateway_model::kinds::Exception;
use gateway_model::{Kind, State};
use serde_json::Value;

use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::reply::Reply;
use crate::request::Req;
use crate::table::collection::Object;
use crate::table::{Collection, Live, Ops, Output, SchemaSource, Table, output_schema};

const KIND: &Kind = &Kind::of::<Exception>();

pub(super) fn rows(t: &mut Table) {
    t.collection::<Exception>(Collection {
        path: "/exceptions",
        item: "/exceptions/{id}",
        actions: ["create_exception", "replace_exception", "revoke_exception"],
        ops: Ops::LIST | Ops::CREATE | Ops::GET | Ops::DELETE,
        live: Some(Live::beside(observe)),
    });
    let row = t.view("/exceptions/active", "list_active_exceptions", active).summary("Active exceptions");
    row.output = Output::List(SchemaSource::new(output_schema::<Exception>));
}

/// Adds the status at the current time.
fn observe(open: &Open, state: &State, shown: &mut [Value]) {
    let now = open.now();
    crate::endpoints::observed::add_observed(shown, &state.exceptions, |exception| exception.live(now));
}

async fn active(cx: Cx, _: Req<()>) -> Result<Object<Exception>, ApiError> {
    let open = cx.open()?;
    let state = open.store.current();
    let mut list = KIND.list(&state, &Filter::default());
    observe(open, &state, &mut list);
    list.retain(|exception| exception["status"] == "active");
    let total = list.len();
    let mut reply = Reply::data(Value::Array(list));
    reply.total = Some(total);
    Ok(Object::new(reply))
}
