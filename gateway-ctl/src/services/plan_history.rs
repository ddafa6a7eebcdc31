//! History of plans at work: notes each plan that goes live with its inputs, and puts the inputs of a time together again.
//!
//! The reconcile loop only queues what went live. The service writes it down, and each record is on the disk before the next
//! one is taken.

mod activation;
mod error;
mod format;
mod kept;
mod payload;
mod restored;
mod start;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway_core::plan_history::InForce;
use gateway_model::settings::bootstrap;
use gateway_model::settings::groups::WipeLevel;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::handles::Handle;
use crate::metrics::{counter, gauge};
use crate::reconcile::KernelDataplane;
use crate::service::{Context, Service};
use crate::supervise::blocking;
use crate::world::{World, Worlds};

use activation::Activation;
pub use error::PastError;
use kept::Kept;
pub use restored::RestoredPlan;
use restored::RestoredPlans;
pub use start::KernelAtStart;

/// Folder in the state folder.
const FOLDER: &str = "plans";
/// Capacity of the queue. A plan beyond it is not kept, and the history says so.
const MAX_QUEUED: usize = 256;

/// History that the service writes, and the API and other services read. Clones are the same history.
#[derive(Clone, Debug)]
pub struct PlanHistory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: Mutex<Queue>,
    queued: Notify,
    kept: Mutex<Kept>,
    restored: Mutex<RestoredPlans>,
}

#[derive(Debug, Default)]
struct Queue {
    activations: Vec<Activation>,
    kernel: KernelAtStart,
    /// Time since which activations were not queued.
    lost_since: Option<Timestamp>,
    lost: u64,
}

/// Plan that was in force at a time.
#[derive(Clone, Debug)]
pub struct PastPlan {
    pub in_force: InForce,
    pub plan: Arc<RestoredPlan>,
}

impl Handle for PlanHistory {
    fn open(state_dir: &Path, now: Timestamp) -> PlanHistory {
        PlanHistory::open_in(state_dir.join(FOLDER), now)
    }
}

impl PlanHistory {
    fn open_in(directory: PathBuf, now: Timestamp) -> PlanHistory {
        PlanHistory(Arc::new(Inner {
            queue: Mutex::default(),
            queued: Notify::new(),
            kept: Mutex::new(Kept::open(directory, now)),
            restored: Mutex::default(),
        }))
    }

    /// Begins to note the plans that go live. To be called before the first one does.
    pub fn follow(&self, dataplane: &KernelDataplane, worlds: &Arc<Worlds>) {
        self.0.queue.lock().kernel = KernelAtStart::read(dataplane);
        let (history, worlds) = (self.clone(), worlds.clone());
        dataplane.on_activated(move |generation, plan| {
            let world = worlds.last();
            // The loop has published the inputs of the plan before, and compiles none meanwhile.
            if world.live().plan.dataplane.is_same(&plan.dataplane) {
                history.note(generation, &world, worlds.time());
            }
        });
    }

    fn note(&self, generation: u32, world: &World, at: Timestamp) {
        let dataplane = world.live().plan.dataplane.clone();
        let activation = Activation { generation, inputs: world.plan_inputs(), dataplane, at };
        {
            let mut queue = self.0.queue.lock();
            if queue.activations.len() < MAX_QUEUED {
                queue.activations.push(activation);
            } else {
                queue.lost += 1;
                queue.lost_since.get_or_insert(at);
            }
        }
        self.0.queued.notify_one();
    }

    /// Writes down what is queued. Blocks on the disk.
    fn write(&self, settings: &bootstrap::PlanHistory, now: Timestamp) {
        let mut kept = self.0.kept.lock();
        kept.set(settings, now);
        let (activations, kernel, lost_since) = {
            let mut queue = self.0.queue.lock();
            (std::mem::take(&mut queue.activations), queue.kernel, queue.lost_since.take())
        };
        for activation in activations {
            kept.record(activation, kernel);
        }
        if let Some(since) = lost_since {
            kept.record_gap(since);
        }
        kept.flush(now);
    }

    /// Returns the plan that was in force at a time. Reads the disk and compiles.
    pub fn at(&self, time: Timestamp) -> Result<PastPlan, PastError> {
        let (in_force, pages) = {
            let mut kept = self.0.kept.lock();
            (kept.timeline().at(time)?, kept.view())
        };
        self.restore(in_force, &pages)
    }

    /// Returns the plan of a generation, with the inputs that it had at a time. Reads the disk and compiles.
    pub fn of_generation(&self, generation: u32, time: Timestamp) -> Result<PastPlan, PastError> {
        let (in_force, pages) = {
            let mut kept = self.0.kept.lock();
            (kept.timeline().of_generation(generation, time)?, kept.view())
        };
        self.restore(in_force, &pages)
    }

    fn restore(&self, in_force: InForce, pages: &kept::View) -> Result<PastPlan, PastError> {
        let id = in_force.entry.id;
        if let Some(plan) = self.0.restored.lock().get(id) {
            return Ok(PastPlan { in_force, plan });
        }
        let plan = Arc::new(RestoredPlan::read(&in_force, pages)?);
        self.0.restored.lock().put(id, plan.clone());
        Ok(PastPlan { in_force, plan })
    }

    /// Returns the time of the oldest record; `None` without any.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.0.kept.lock().timeline().first().map(|entry| entry.header.at)
    }

    /// Erases all records. A plan that is live is noted again only after [`WipeLevel::Soft`]: the other levels remove its
    /// inputs, too.
    fn erase(&self, level: WipeLevel) -> io::Result<()> {
        let mut kept = self.0.kept.lock();
        {
            let mut queue = self.0.queue.lock();
            queue.activations.clear();
            queue.lost_since = None;
        }
        self.0.restored.lock().clear();
        kept.erase(level)
    }

    fn lost(&self) -> u64 {
        self.0.queue.lock().lost
    }
}

/// Returns the service that writes the history.
pub fn service(context: &Context) -> Service {
    let history = context.handles.get::<PlanHistory>();
    let (measured, erased) = (history.clone(), history.clone());
    let (last, at_end) = (context.clone(), history);
    Service::new("plan_history", context, run)
        .measures(move |registry| {
            let records = measured.0.kept.lock().timeline().len();
            let help = "Records of plans that were in force";
            gauge(registry, "plan_history_records", help, u64::try_from(records).unwrap_or(u64::MAX));
            let help = "Plans that went live and were not kept, because too many were waiting";
            counter(registry, "plan_history_lost", help, measured.lost());
        })
        .erases(move |level| {
            let history = erased.clone();
            blocking(move || history.erase(level))
        })
        .releases(move || blocking(move || write_now(&last, &at_end)))
}

async fn run(context: Context) {
    let history = context.handles.get::<PlanHistory>();
    loop {
        let (context, writer) = (context.clone(), history.clone());
        blocking(move || write_now(&context, &writer)).await;
        history.0.queued.notified().await;
    }
}

fn write_now(context: &Context, history: &PlanHistory) {
    let config = context.worlds.last().config.clone();
    history.write(&config.plan_history, context.store.clock().now());
}

#[cfg(test)]
pub(crate) mod tests;
