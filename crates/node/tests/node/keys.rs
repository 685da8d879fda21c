//! A change of API keys and users counts once it is on disk.

use std::sync::Arc;

use tanda_engine::{
    AdminReply, AdminRequest, ApiKeyId, DeclareQueue, KeyHash, NewApiKey, NewUser, PasswordChange,
    PasswordHash, UserReply, UserRequest,
};

use crate::support::{World, config};

fn create(secret: &str) -> AdminRequest {
    AdminRequest::CreateApiKey(Box::new(NewApiKey {
        name: "worker".to_owned(),
        expires_at: None,
        is_superadmin: false,
        hash: KeyHash::of(secret.as_bytes()),
    }))
}

fn holder(world: &World, secret: &str) -> Option<ApiKeyId> {
    let found = world
        .node
        .keys()
        .authenticate(Some(secret.as_bytes()), world.now);
    found.ok().map(|key| key.id)
}

#[test]
fn a_key_counts_once_it_is_on_disk_and_before_its_answer() {
    let mut world = World::new();
    let token = world.admin(create("one"));
    world.run();
    assert_eq!(holder(&world, "one"), None);
    let job = world.node.take_flush().unwrap();
    let outcome = job.run();
    world.node.on_flushed(world.now, outcome);
    // Before the answer is taken out.
    assert_eq!(holder(&world, "one"), Some(ApiKeyId(1)));
    world.node.drain_released(&mut world.events);
    assert!(matches!(
        world.admin_reply(token),
        Some(AdminReply::ApiKeyCreated(Ok(_)))
    ));
}

#[test]
fn a_revoked_key_is_good_until_its_revocation_is_on_disk() {
    let mut world = World::new();
    world.admin(create("one"));
    world.settle_down();
    let before = Arc::clone(world.node.keys());
    world.admin(AdminRequest::RevokeApiKey {
        id: "k1".to_owned(),
    });
    world.run();
    assert!(Arc::ptr_eq(&before, world.node.keys()));
    assert!(world.flush());
    assert_eq!(holder(&world, "one"), None);
}

/// A start deletes this queue, and what it writes is not on disk when it has ended.
fn leave_work_for_the_start(world: &mut World) {
    world.admin(AdminRequest::DeclareQueue(Box::new(DeclareQueue {
        name: "mine".to_owned(),
        exclusive: true,
        ..DeclareQueue::default()
    })));
    world.settle_down();
}

#[test]
fn keys_are_there_from_the_start_also_from_a_snapshot() {
    let mut world = World::new();
    world.admin(create("one"));
    world.admin(create("two"));
    world.admin(AdminRequest::RevokeApiKey {
        id: "k2".to_owned(),
    });
    world.settle_down();
    for snapshot in [false, true] {
        leave_work_for_the_start(&mut world);
        let (disk, now) = (world.disk.clone(), world.now);
        // Or its files stay locked.
        drop(world);
        world = World::reopened(disk, now.after_ms(1), config());
        assert_eq!(holder(&world, "one"), Some(ApiKeyId(1)));
        assert_eq!(holder(&world, "two"), None);
        if !snapshot {
            let taken = world.node.stats().snapshot;
            world.create(crate::support::named("jobs"));
            while world.node.stats().snapshot == taken {
                world.publish("jobs", &[vec![0; 16 << 10]]);
                world.settle_down();
            }
        }
    }
    let token = world.admin(create("three"));
    world.settle_down();
    let Some(AdminReply::ApiKeyCreated(Ok(key))) = world.admin_reply(token) else {
        panic!("not made")
    };
    assert_eq!(key.id, ApiKeyId(3));
}

fn put_user(name: &str) -> AdminRequest {
    AdminRequest::User(UserRequest::Put(Box::new(NewUser {
        name: name.to_owned(),
        password: PasswordChange::Set(PasswordHash::new("$1")),
        tags: None,
    })))
}

#[test]
fn a_user_counts_once_it_is_on_disk_and_is_there_after_a_crash() {
    let mut world = World::new();
    let token = world.admin(put_user("anna"));
    world.run();
    assert!(world.node.users().is_empty());
    let job = world.node.take_flush().unwrap();
    let outcome = job.run();
    world.node.on_flushed(world.now, outcome);
    // Before the answer is taken out.
    assert!(world.node.users().find("anna").is_some());
    world.node.drain_released(&mut world.events);
    let answer = world.admin_reply(token);
    assert!(matches!(
        answer,
        Some(AdminReply::User(UserReply::Put(Ok(true))))
    ));
    leave_work_for_the_start(&mut world);
    let (disk, now) = (world.disk.clone(), world.now);
    drop(world);
    let world = World::reopened(disk, now.after_ms(1), config());
    assert!(world.node.users().find("anna").is_some());
}
