//! Bridges and SOCKS5 proxies: stored and named by others, built by none of this version.

use gateway_model::kinds::{Bridge, Proxy};
use gateway_model::{Kind, Resource};

use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;
use crate::table::Method::{Get, Post};
use crate::table::collection::{Object, expected, shown};
use crate::table::{Audit, Collection, Effect, Ops, Table};

const KIND: &Kind = &Kind::of::<Bridge>();

pub fn rows(t: &mut Table) {
    t.collection::<Bridge>(Collection {
        path: "/bridges",
        item: "/bridges/{id}",
        actions: ["create_bridge", "replace_bridge", "delete_bridge"],
        ops: Ops::ALL,
        live: None,
    });
    let stores = Effect::Stores(Audit { action: "toggle_bridge", resource_type: Bridge::NOUN });
    t.command("/bridges/{id}/toggle", "toggle_bridge", stores, toggle)
        .summary("Enable a disabled bridge, disable an enabled one")
        .tagged();
    t.unsupported(
        "bridges at work, which this version does not have",
        &[(Get, "/bridges/status"), (Post, "/bridges/{id}/test")],
    );
    t.collection::<Proxy>(Collection {
        path: "/proxies",
        item: "/proxies/{id}",
        actions: ["create_proxy", "replace_proxy", "delete_proxy"],
        ops: Ops::ALL,
        live: None,
    });
}

async fn toggle(cx: Cx, request: Req<()>) -> Result<Object<Bridge>, ApiError> {
    let id = request.params.get("id").to_owned();
    let warnings = {
        let id = id.clone();
        cx.commit(move |draft| {
            let expected = expected(KIND, draft, &id, request.if_match.as_deref())?;
            let parsed = id.parse().map_err(|_| super::not_found::<Bridge>(&id))?;
            let (_, warnings) =
                draft.update::<Bridge>(parsed, expected, |bridge| bridge.enabled = !bridge.enabled)?;
            Ok(warnings)
        })
        .await?
    };
    let open = cx.open()?;
    let state = open.store.current();
    let (value, revision) = KIND.get(&state, &id)?;
    let mut reply = shown(open, &state, None, value, revision);
    reply.warnings = warnings;
    Ok(Object::new(reply))
}
