//! Jobs for the host of scripts: with their contents, also those that lie in the log.

use std::io::ErrorKind;

use crate::support::{CONSUMER, START, World, config, crash_and_reopen_with, named, stored, sub};
use tanda_engine::{
    AdminRequest, CallContent, Classification, Content, Form, QueueChanges, QueueSpec, Request,
    ScriptFailure, ScriptFault, ScriptJob, ScriptOutcome, ScriptTask, VhostId,
};
use tanda_node::NodeConfig;
use tanda_wal::DiskCall;
use tanda_wal::mem_disk::{Fault, MemDisk};

fn with_host() -> NodeConfig {
    let mut config = config();
    config.engine.has_script_host = true;
    config
}

fn world() -> World {
    World::reopened(MemDisk::new(1), START, with_host())
}

impl World {
    fn script_job(&mut self) -> ScriptJob {
        let mut jobs = Vec::new();
        self.node.take_script_jobs(&mut jobs);
        assert_eq!(jobs.len(), 1, "one job");
        jobs.remove(0)
    }

    fn done(&mut self, job: ScriptJob, outcome: ScriptOutcome) {
        let job = Box::new(job);
        self.handle(Request::ScriptDone { job, outcome });
    }

    fn create_parking(&mut self) {
        let spec = QueueSpec {
            on_enqueue: Some("a script".to_owned()),
            script_failure: ScriptFailure::Park,
            ..named("jobs")
        };
        self.admin(AdminRequest::CreateQueue(Box::new(spec)));
        let job = self.script_job();
        assert!(matches!(job.task, ScriptTask::Check));
        self.done(job, ScriptOutcome::Checked(Ok(())));
        self.settle_down();
    }
}

fn payload(job: &ScriptJob) -> Vec<u8> {
    match &job.task {
        ScriptTask::Enqueue(calls) if calls.len() == 1 => {
            let CallContent::Here(bytes) = &calls[0].content else {
                panic!("{job:?}")
            };
            Content::new(Form::Fila, bytes).payload().unwrap().to_vec()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_parked_message_is_shown_to_the_next_script_after_a_restart() {
    let mut world = world();
    world.create_parking();
    let token = world.publish("jobs", &[b"body".to_vec()]);
    let job = world.script_job();
    assert_eq!(payload(&job), b"body");
    let failed = ScriptFault::Failed("no".to_owned());
    world.done(job, ScriptOutcome::Enqueue(vec![Err(failed)]));
    assert!(world.published(token).is_none(), "not on disk");
    world.settle_down();
    let ids = stored(&world.published(token).unwrap());

    let mut world = crash_and_reopen_with(world, 1, with_host());
    let changes = QueueChanges {
        on_enqueue: Some(Some("another".to_owned())),
        ..QueueChanges::default()
    };
    world.admin(AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        changes: Box::new(changes),
    });
    let job = world.script_job();
    world.done(job, ScriptOutcome::Checked(Ok(())));
    let job = world.script_job();
    assert_eq!(payload(&job), b"body");
    let classification = Classification {
        attributes: vec![("tier".to_owned(), "gold".to_owned())],
        ..Classification::default()
    };
    let outcome = ScriptOutcome::Enqueue(vec![Ok(classification)]);
    world.done(job, outcome);
    world.settle_down();
    let mut world = crash_and_reopen_with(world, 2, with_host());
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    world.settle_down();
    let received = world.received(consumer);
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].id, ids[0]);
    // What the script said is not part of it.
    assert_eq!(received[0].payload, b"body");
}

#[test]
fn a_failed_log_answers_what_waits_for_scripts() {
    let mut world = world();
    world.create_parking();
    world.create(named("other"));
    let waiting = world.publish("jobs", &[b"waiting".to_vec()]);
    let spec = QueueSpec {
        on_failure: Some("a script".to_owned()),
        ..named("new")
    };
    let asked = world.admin(AdminRequest::CreateQueue(Box::new(spec)));
    world
        .disk
        .inject(DiskCall::Sync, 1, Fault::Fail(ErrorKind::Other));
    let lost = world.publish("other", &[b"lost".to_vec()]);
    world.run();
    world.flush();
    assert!(world.node.failed().is_some());
    let mut told = world.failed_tokens();
    told.sort_unstable();
    assert_eq!(told, [waiting, asked, lost]);
    let mut jobs = Vec::new();
    world.node.take_script_jobs(&mut jobs);
    assert!(jobs.is_empty(), "nothing that follows could be confirmed");
}
