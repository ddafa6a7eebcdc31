//! Managed users. A change takes effect with the next request of the user.

use gateway_model::Deleted;
use gateway_model::kinds::User;
use gateway_model::{EditError, Resource};

use super::objects::{find, made, remove};
use crate::auth::accounts::{self, UserInput, UserView};
use crate::authorization::Access;
use crate::context::Cx;
use crate::dispatch::conditional;
use crate::error::ApiError;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

pub(super) fn rows(t: &mut Table) {
    let stores = |action| Effect::Stores(Audit { action, resource_type: User::NOUN });
    t.view("/auth/users", "list_users", list).summary("All users").access(Access::Administer);
    t.action("/auth/users", "create_user", stores("create_user"), create)
        .summary("Create a user")
        .access(Access::Administer)
        .status(201);
    t.view("/auth/users/{id}", "get_user", get).summary("One user").access(Access::Administer).tagged();
    t.change("/auth/users/{id}", "replace_user", stores("replace_user"), replace)
        .summary("Change name, role, password or the permission to sign in")
        .doc("An omitted password is kept. A new password ends the user's sessions.")
        .access(Access::Administer)
        .tagged();
    t.erase("/auth/users/{id}", "delete_user", stores("delete_user"), delete)
        .summary("Delete a user and end its sessions")
        .doc("The last administrator cannot be deleted.")
        .access(Access::Administer);
}

pub(super) fn created(user: &User) -> WithHeaders<UserView> {
    made(UserView::new(user, None), format!("/auth/users/{}", user.meta.id))
}

fn shown(cx: &Cx, user: &User) -> Result<WithHeaders<UserView>, ApiError> {
    let mut reply = WithHeaders::new(UserView::new(user, cx.open()?.store.last_sign_in(user.meta.id)));
    reply.etag = Some(user.meta.revision.to_string());
    Ok(reply)
}

async fn list(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<UserView>>, ApiError> {
    let store = &cx.open()?.store;
    let state = store.current();
    let users = state.users.iter();
    Ok(WithHeaders::counted(
        users.map(|user| UserView::new(user, store.last_sign_in(user.meta.id))).collect(),
    ))
}

async fn get(cx: Cx, request: Req<()>) -> Result<WithHeaders<UserView>, ApiError> {
    let user = find::<User>(&cx.open()?.store.current(), request.params.get("id"))?;
    shown(&cx, &user)
}

async fn create(cx: Cx, request: Req<UserInput>) -> Result<WithHeaders<UserView>, ApiError> {
    let input = request.input;
    let role = input.check(true)?;
    let hash = cx.api.auth.passwords.hash(input.password.clone()).await?;
    let user = cx.commit(move |draft| accounts::create(draft, input, role, hash)).await?;
    Ok(created(&user))
}

async fn replace(cx: Cx, request: Req<UserInput>) -> Result<WithHeaders<UserView>, ApiError> {
    let input = request.input;
    let user = find::<User>(&cx.open()?.store.current(), request.params.get("id"))?;
    let role = input.check(false)?;
    let hash = match input.password.is_set() {
        true => Some(cx.api.auth.passwords.hash(input.password.clone()).await?),
        false => None,
    };
    let (id, if_match) = (user.meta.id, request.if_match);
    let user = cx
        .commit(move |draft| {
            let current = draft.expect::<User>(id, None)?.meta.revision;
            if let Some(list) = if_match
                && !conditional::matches_revision(&list, &current.to_string())
            {
                let expected = gateway_model::Revision(conditional::first_revision(&list).unwrap_or(0));
                return Err(EditError::Stale { resource_type: User::NOUN, expected, current });
            }
            accounts::change(draft, id, input, role, hash)
        })
        .await?;
    shown(&cx, &user)
}

/// Sessions of a deleted user are invalid, so they end in the same transaction.
async fn delete(cx: Cx, request: Req<()>) -> Result<Deleted, ApiError> {
    remove::<User>(&cx, request.params.get("id")).await
}
