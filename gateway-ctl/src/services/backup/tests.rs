//! Tests of the service with a folder as its target, under a manually advanced clock.

use std::fs;

use gateway_model::settings::group::GroupKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::clock::ManualClock;
use crate::store::{AuditResult, BackupTrigger};
use crate::tls::PqMode;

const PASSPHRASE: &str = "correct horse battery";

struct Fixture {
    clock: Arc<ManualClock>,
    state: TempDir,
    target: TempDir,
    service: Arc<Service>,
}

impl Fixture {
    fn new() -> Fixture {
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        let (state, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let service = open(&state, &clock);
        Fixture { clock, state, target, service }
    }

    fn configure(&self, more: Value) {
        let mut config = json!({"enabled": true, "retain": 3, "passphrase": PASSPHRASE,
            "target": {"path": self.target.path()}});
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        let ticket = AuditTicket::system("replace_backup_config", "backup_config");
        let group = GroupKind::find("backup.config").unwrap();
        self.service.store.commit(ticket, |draft| group.put(draft, config)).unwrap();
    }

    /// Returns the names in the target, oldest first.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.target.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn report(&self) -> Report {
        self.service.report().unwrap()
    }

    fn hours(&self, hours: u64) {
        self.clock.advance(Duration::from_secs(3600 * hours));
    }

    fn restart(self) -> Fixture {
        let Fixture { clock, state, target, service } = self;
        drop(service);
        let service = open(&state, &clock);
        Fixture { clock, state, target, service }
    }

    async fn run(&self) -> Result<BackupRun, Error> {
        self.service.run(AuditTicket::system("run_backup", "backup"), BackupTrigger::Manual).await
    }
}

fn open(state: &TempDir, clock: &Arc<ManualClock>) -> Arc<Service> {
    let store = Store::open(state.path().join("store.redb"), clock.clone()).unwrap();
    Service::new(
        Arc::new(store),
        Bootstrap::default(),
        Factory::new(PqMode::Default),
        gateway_outbound::Resolver::default(),
        <EncryptedStorage as crate::handles::Handle>::open(state.path(), Timestamp::UNIX_EPOCH),
    )
}

#[tokio::test]
async fn a_backup_is_made_at_its_time_and_opens_with_its_passphrase() {
    let scene = Fixture::new();
    scene.configure(json!({}));
    scene.service.tick().await;
    let report = scene.report();
    assert_eq!(report.next.unwrap().to_string(), "2026-11-22T03:00:00Z");
    assert_eq!(report.health.unwrap().backups, Ok(0), "the target is looked at before the first backup");
    assert_eq!(scene.files(), Vec::<String>::new());
    scene.hours(15);
    scene.service.tick().await;
    let files = scene.files();
    assert_eq!(files.len(), 1, "{files:?}");
    let sealed = fs::read(scene.target.path().join(&files[0])).unwrap();
    let document = Document::from_bytes(&encryption::open(&sealed, PASSPHRASE).unwrap()).unwrap();
    assert!(document.secrets && document.settings.contains_key("backup.config"));
    let report = scene.report();
    let run = &report.runs[0];
    assert_eq!(
        (run.trigger, run.size, &run.name),
        (BackupTrigger::Schedule, Some(sealed.len() as u64), &files[0])
    );
    assert_eq!(report.next.unwrap().to_string(), "2026-11-23T03:00:00Z");
    let (entries, _) = scene.service.store.audit(1, None, &Default::default()).unwrap();
    assert_eq!((entries[0].action.as_str(), entries[0].actor.as_str()), ("run_backup", "system"));
    assert_eq!(entries[0].details["name"], files[0].as_str());
    scene.service.tick().await;
    assert_eq!(scene.files().len(), 1, "one a night");
}

#[tokio::test]
async fn a_missed_backup_is_made_once_at_the_start() {
    let scene = Fixture::new();
    scene.configure(json!({}));
    scene.hours(15);
    scene.service.tick().await;
    let history = scene.report().runs;
    let mut scene = scene.restart();
    assert_eq!(scene.report().runs, history, "a restart forgets no run");
    scene.hours(24 * 5 + 7);
    scene = scene.restart();
    scene.service.tick().await;
    scene.service.tick().await;
    assert_eq!(scene.files().len(), 2, "five nights were missed, and one backup is made");
    assert_eq!(scene.report().next.unwrap().to_string(), "2026-11-28T03:00:00Z");
}

#[tokio::test]
async fn retention_removes_only_old_backups() {
    let scene = Fixture::new();
    scene.configure(json!({}));
    let foreign = ["mine.txt", "gateway-00000000-20200101T000000.000Z.age"];
    for name in foreign {
        fs::write(scene.target.path().join(name), "x").unwrap();
    }
    // File left behind by an interrupted run.
    let series = Series::new(&scene.service.store.backup_series().unwrap());
    let name = series.name("2026-11-20T00:00:00Z".parse().unwrap());
    fs::write(scene.target.path().join(series.draft(&name)), "half").unwrap();
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(scene.run().await.unwrap().name);
        scene.hours(1);
    }
    let mut expected: Vec<String> = made[2..].to_vec();
    expected.extend(foreign.map(str::to_owned));
    expected.sort();
    assert_eq!(scene.files(), expected);
    assert_eq!(scene.report().health.unwrap().backups, Ok(3));
}

#[tokio::test]
async fn a_target_that_fails_is_reported_and_tried_again() {
    let scene = Fixture::new();
    let gone = scene.target.path().join("not-mounted");
    scene.configure(json!({"target": {"path": gone}}));
    scene.hours(15);
    for minutes in [1, 2, 4] {
        scene.service.tick().await;
        let report = scene.report();
        let run = &report.runs[0];
        assert_eq!(run.result, BackupOutcome::Failed);
        assert!(run.error.as_ref().unwrap().contains("does not exist"), "{run:?}");
        assert!(report.health.unwrap().backups.is_err());
        let wait = report.next.unwrap().duration_since(scene.clock_now());
        assert_eq!(wait, SignedDuration::from_mins(minutes));
        let (entries, _) = scene.service.store.audit(1, None, &Default::default()).unwrap();
        assert_eq!(entries[0].result, AuditResult::Failed);
        scene.service.tick().await;
        assert_eq!(scene.report().runs[0], *run, "not before its time");
        scene.clock.advance(Duration::from_secs(60 * u64::try_from(minutes).unwrap()));
    }
    fs::create_dir(&gone).unwrap();
    scene.service.tick().await;
    let report = scene.report();
    assert_eq!((report.runs[0].trigger, report.runs[0].result), (BackupTrigger::Retry, BackupOutcome::Ok));
    assert_eq!(report.next.unwrap().to_string(), "2026-11-23T03:00:00Z");
    assert_eq!(fs::read_dir(&gone).unwrap().count(), 1);
}

impl Fixture {
    fn clock_now(&self) -> Timestamp {
        self.service.store.clock().now()
    }
}

#[tokio::test]
async fn nothing_is_tried_without_a_passphrase_or_in_the_state_directory() {
    let scene = Fixture::new();
    assert!(matches!(scene.run().await, Err(Error::NotSetUp(_))));
    assert_eq!(scene.report().runs, []);
    let inside = scene.state.path().join("backups");
    fs::create_dir(&inside).unwrap();
    scene.configure(json!({"target": {"path": inside}}));
    let Err(Error::Failed { cause: Cause::Target(error), .. }) = scene.run().await else {
        panic!("a failure")
    };
    assert_eq!(error, TargetError::OwnFolder);
    assert_eq!(fs::read_dir(&inside).unwrap().count(), 0);
}

#[tokio::test]
async fn one_run_at_a_time() {
    let scene = Fixture::new();
    scene.configure(json!({}));
    let (one, two) = tokio::join!(scene.run(), scene.run());
    assert!(one.is_ok() && matches!(two, Err(Error::Busy)), "{two:?}");
    assert_eq!(scene.files().len(), 1);
    assert_eq!(scene.report().running_since, None);
}

#[tokio::test]
async fn reports_contain_no_secret() {
    let scene = Fixture::new();
    scene.configure(json!({}));
    scene.run().await.unwrap();
    let (entries, _) = scene.service.store.audit(50, None, &Default::default()).unwrap();
    let reported = format!("{:?} {:?} {entries:?}", scene.service, scene.report());
    assert!(!reported.contains("correct horse"), "{reported}");
}

#[tokio::test]
async fn backups_in_a_closed_storage_wait_for_it() {
    let fixture = Fixture::new();
    // A container that nothing opens is enough.
    let contents = json!({"contents": ["backups"]}).to_string();
    fs::write(fixture.state.path().join("encrypted.json"), contents).unwrap();
    fs::write(fixture.state.path().join("encrypted.luks"), "x").unwrap();
    let inside = fixture.state.path().join("encrypted/backups");
    let fixture = fixture.restart();
    fixture.configure(json!({"target": {"path": inside}}));
    fixture.hours(24);
    fixture.service.tick().await;
    assert!(matches!(fixture.run().await, Err(Error::Waiting)));
    let report = fixture.report();
    assert!(report.is_waiting && report.runs.is_empty());
    assert!(!inside.exists(), "nothing is written beside the storage");
    fixture.configure(json!({}));
    fixture.run().await.unwrap();
    assert!(!fixture.report().is_waiting);
}
