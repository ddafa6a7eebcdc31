//! Cache of views of all policies, computed once for all clients. Each is kept as its serialised bytes until the state,
//! the facts or the plan behind it change.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use gateway_core::Compiled;
use gateway_core::facts::Facts;
use gateway_core::gateway_verdict::PresentHost;
use gateway_ctl::world::World;
use gateway_model::State;
use jiff::Timestamp;
use parking_lot::Mutex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::blocking::blocking;
use crate::error::ApiError;
use crate::reply::{Answer, Content, Reply};

/// Views of one API, by name.
#[derive(Debug, Default)]
pub struct ViewCache(Mutex<BTreeMap<&'static str, Arc<tokio::sync::Mutex<Option<CachedView>>>>>);

#[derive(Debug)]
struct CachedView {
    inputs: Inputs,
    body: Body,
}

/// Serialised body of a view.
#[derive(Clone, Debug)]
struct Body {
    bytes: Bytes,
    digest: String,
    total: Option<usize>,
}

/// Inputs of a view. Weak references keep their identity without keeping a large state alive.
#[derive(Debug)]
struct Inputs {
    state: Weak<State>,
    compiled: Weak<Compiled>,
    facts: Arc<Facts>,
    hosts: Arc<Vec<PresentHost>>,
    from: Timestamp,
    until: Option<Timestamp>,
}

impl Inputs {
    fn of(world: &World) -> Self {
        Self {
            state: Arc::downgrade(&world.state),
            compiled: Arc::downgrade(world.compiled()),
            facts: world.facts.clone(),
            hosts: world.reports.hosts.clone(),
            from: world.now,
            until: world.compiled().plan.valid_until,
        }
    }

    /// Reports whether the view is valid for this world.
    fn cover(&self, world: &World) -> bool {
        std::ptr::eq(self.state.as_ptr(), Arc::as_ptr(&world.state))
            && std::ptr::eq(self.compiled.as_ptr(), Arc::as_ptr(world.compiled()))
            && (Arc::ptr_eq(&self.facts, &world.facts) || *self.facts == *world.facts)
            && (Arc::ptr_eq(&self.hosts, &world.reports.hosts) || *self.hosts == *world.reports.hosts)
            && self.from <= world.now
            && self.until.is_none_or(|until| world.now < until)
    }
}

/// Response whose bytes many clients share. `O` is the type of its data.
#[derive(Debug)]
pub struct SharedView<O> {
    body: Body,
    data: PhantomData<fn() -> O>,
}

impl<O: JsonSchema> Answer for SharedView<O> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<O>()
    }

    fn reply(self) -> Result<Reply, ApiError> {
        let Body { bytes, digest, total } = self.body;
        let mut reply = Reply::content(Content::Json { bytes, digest });
        reply.total = total;
        Ok(reply)
    }
}

impl ViewCache {
    /// Returns a view of the current world. Clients that request it while it is computed wait and share it. `total`
    /// returns the number of its entries for `X-Total-Count`.
    pub async fn get<O>(
        &self,
        name: &'static str,
        world: impl FnOnce() -> World,
        compute: impl FnOnce(&World) -> O + Send + 'static,
        total: impl FnOnce(&O) -> Option<usize> + Send + 'static,
    ) -> Result<SharedView<O>, ApiError>
    where
        O: Serialize + 'static,
    {
        let view = self.0.lock().entry(name).or_default().clone();
        let mut view = view.lock().await;
        let world = world();
        if let Some(cached) = view.as_ref().filter(|cached| cached.inputs.cover(&world)) {
            return Ok(SharedView { body: cached.body.clone(), data: PhantomData });
        }
        // Two copies in memory would be too many.
        *view = None;
        let (inputs, body) = blocking(move || {
            let data = compute(&world);
            let total = total(&data);
            let sealed = Reply::text_with(&data).and_then(|text| Reply::seal(text, &[]));
            let (bytes, digest) = sealed.map_err(|error| ApiError::internal(&error))?;
            Ok::<_, ApiError>((Inputs::of(&world), Body { bytes: bytes.into(), digest, total }))
        })
        .await??;
        *view = Some(CachedView { inputs, body: body.clone() });
        Ok(SharedView { body, data: PhantomData })
    }
}

/// Cache of one value that is computed from a world, for endpoints that show parts of it.
#[derive(Debug)]
pub struct ValueCache<V>(tokio::sync::Mutex<Option<(Inputs, Arc<V>)>>);

impl<V> Default for ValueCache<V> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::default())
    }
}

impl<V: Send + Sync + 'static> ValueCache<V> {
    /// Returns the value of the world. Clients that request it while it is computed wait and share it.
    pub async fn get(
        &self,
        world: World,
        compute: impl FnOnce(&World) -> V + Send + 'static,
    ) -> Result<Arc<V>, ApiError> {
        let mut cached = self.0.lock().await;
        if let Some((_, value)) = cached.as_ref().filter(|(inputs, _)| inputs.cover(&world)) {
            return Ok(value.clone());
        }
        let computed = blocking(move || (Inputs::of(&world), Arc::new(compute(&world)))).await?;
        let value = computed.1.clone();
        *cached = Some(computed);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn world(now: &str) -> World {
        World::of(Compiled::default(), now.parse().expect("an instant"))
    }

    fn at(world: &World, now: &str) -> World {
        with(world, |world| world.now = now.parse().expect("an instant"))
    }

    fn with(world: &World, change: impl FnOnce(&mut World)) -> World {
        let mut world = world.clone();
        change(&mut world);
        world
    }

    #[tokio::test]
    async fn readers_share_one_computation_until_an_input_changes() {
        let now = "2026-11-22T10:00:00Z";
        let first = world(now);
        let (cache, computed) = (Arc::new(ViewCache::default()), Arc::new(AtomicUsize::new(0)));
        let read = async |world: World| {
            let computed = computed.clone();
            let compute = move |_: &World| computed.fetch_add(1, Ordering::Relaxed);
            cache.get("view", || world, compute, |_| Some(7)).await.expect("a view").body
        };
        let body = read(at(&first, now)).await;
        assert_eq!((&body.bytes[..], body.total), (&b"{\"data\":0}"[..], Some(7)));
        let again = read(at(&first, "2026-11-22T10:05:00Z")).await;
        assert_eq!(again.bytes.as_ptr(), body.bytes.as_ptr(), "the same bytes");
        let early = read(at(&first, "2026-11-22T09:00:00Z")).await;
        assert_eq!(&early.bytes[..], b"{\"data\":1}", "the clock went back");
        let mut facts = Facts::default();
        facts.links.entry("eth0".to_owned()).or_default();
        read(with(&first, |world| world.facts = Arc::new(facts))).await;
        read(with(&first, |world| world.state = Arc::default())).await;
        read(world(now)).await;
        assert_eq!(computed.load(Ordering::Relaxed), 5);
    }

    #[tokio::test]
    async fn a_value_is_computed_once_for_a_world() {
        let first = world("2026-11-22T10:00:00Z");
        let (cache, computed) = (ValueCache::default(), Arc::new(AtomicUsize::new(0)));
        let read = async |world: World| {
            let computed = computed.clone();
            let value = cache.get(world, move |_| computed.fetch_add(1, Ordering::Relaxed));
            *value.await.expect("a value")
        };
        assert_eq!((read(first.clone()).await, read(at(&first, "2026-11-22T10:05:00Z")).await), (0, 0));
        assert_eq!(read(with(&first, |world| world.state = Arc::default())).await, 1);
    }

    #[tokio::test]
    async fn a_view_ends_with_the_validity_of_its_plan() {
        let mut compiled = Compiled::default();
        compiled.plan.valid_until = Some("2026-11-22T10:05:00Z".parse().expect("an instant"));
        let first = World::of(compiled, "2026-11-22T10:00:00Z".parse().expect("an instant"));
        let inputs = Inputs::of(&first);
        assert!(inputs.cover(&at(&first, "2026-11-22T10:04:59Z")));
        assert!(!inputs.cover(&at(&first, "2026-11-22T10:05:00Z")));
    }
}
