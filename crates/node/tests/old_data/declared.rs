//! What AMQP and FireMQ clients leave: topology, declared queues, messages in their forms, users.

use std::fmt::Write;

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, BindingSpec, DeclareQueue, DeliveryBatch, Destination, Event,
    ExchangeSpec, Form, FrameLimit, GetSpec, NewTopicPermissions, NewUser, NewVhostPermissions,
    PasswordChange, PasswordHash, PublishBatch, PublishItem, PublishTarget, ReplyTo, Request,
    SettleBatch, SettleItem, SettleQueue, Settlement, Take, TopicPermissions, UserRequest, VhostId,
    VhostPermissions,
};
use tanda_wal::mem_disk::MemDisk;

use crate::config;
use crate::report::ask;
use crate::support::{PRODUCER, START, World, span};

/// Everything that is declared, bound and stored without a Fila client.
pub(crate) fn scene() -> MemDisk {
    let mut world = World::reopened(MemDisk::new(4), START, config());
    for name in ["shop", "gone"] {
        let name = name.to_owned();
        ask(&mut world, AdminRequest::CreateVhost { name });
    }
    let shop = vhost(&mut world, "shop");
    for vhost in [VhostId(0), shop] {
        declare_exchanges(&mut world, vhost);
        declare_queues(&mut world, vhost);
        bind_all(&mut world, vhost);
        for number in 0..4 {
            for form in [Form::Amqp, Form::Fire] {
                publish(&mut world, vhost, (form, number));
            }
        }
        world.settle_down();
        settle_some(&mut world, vhost);
    }
    let name = "gone".to_owned();
    ask(&mut world, AdminRequest::DeleteVhost { name });
    make_users(&mut world);
    world.pass(5_000, 100);
    world.disk.kill()
}

fn vhost(world: &mut World, name: &str) -> VhostId {
    let name = name.to_owned();
    match ask(world, AdminRequest::OpenVhost { name }) {
        AdminReply::Vhost(Ok(id)) => id,
        other => panic!("{other:?}"),
    }
}

fn declare_exchanges(world: &mut World, vhost: VhostId) {
    let alternate = table(&[("alternate-exchange", Argument::Text("all"))]);
    for (name, kind, args) in [
        ("by-key", "direct", alternate),
        ("all", "fanout", Bytes::new()),
        ("news", "topic", Bytes::new()),
        ("by-header", "headers", Bytes::new()),
    ] {
        let spec = ExchangeSpec {
            vhost,
            name: name.to_owned(),
            kind: kind.to_owned(),
            durable: true,
            auto_delete: false,
            internal: name == "all",
            passive: false,
            args,
        };
        let reply = ask(world, AdminRequest::DeclareExchange(Box::new(spec)));
        assert!(matches!(reply, AdminReply::ExchangeDeclared(Ok(()))));
    }
}

/// Names with arguments; all of them are durable.
fn queues() -> Vec<(&'static str, Bytes)> {
    use Argument::{Flag, Number, Text};
    vec![
        ("plain", Bytes::new()),
        (
            "strict",
            table(&[
                ("x-message-ttl", Number(7_200_000)),
                ("x-expires", Number(86_400_000)),
                ("x-max-length", Number(3)),
                ("x-max-length-bytes", Number(1_000_000)),
                ("x-overflow", Text("reject-publish")),
                ("x-dead-letter-exchange", Text("by-key")),
                ("x-dead-letter-routing-key", Text("dead")),
            ]),
        ),
        (
            "sorted",
            table(&[
                ("x-max-priority", Number(5)),
                ("x-single-active-consumer", Flag(true)),
            ]),
        ),
        (
            "tries",
            table(&[
                ("x-delivery-limit", Number(2)),
                ("x-queue-type", Text("quorum")),
                ("x-dead-letter-exchange", Text("all")),
            ]),
        ),
        (
            "tenants",
            table(&[
                ("x-fairness-key", Text("tenant")),
                ("x-dedup-window", Number(86_400_000)),
            ]),
        ),
        ("dead", Bytes::new()),
    ]
}

fn declare_queues(world: &mut World, vhost: VhostId) {
    for (name, args) in queues() {
        let declare = DeclareQueue {
            vhost,
            name: name.to_owned(),
            durable: true,
            args,
            ..DeclareQueue::default()
        };
        let reply = ask(world, AdminRequest::DeclareQueue(Box::new(declare)));
        assert!(
            matches!(reply, AdminReply::QueueDeclared(Ok(_))),
            "{reply:?}"
        );
    }
    // This one goes with its connection.
    let declare = DeclareQueue {
        vhost,
        name: "mine".to_owned(),
        exclusive: true,
        ..DeclareQueue::default()
    };
    ask(world, AdminRequest::DeclareQueue(Box::new(declare)));
}

fn bind_all(world: &mut World, vhost: VhostId) {
    let queue = |name: &str| Destination::Queue(name.to_owned());
    let wanted = table(&[
        ("x-match", Argument::Text("any")),
        ("tenant", Argument::Text("a")),
    ]);
    for (source, destination, key, args) in [
        ("by-key", queue("plain"), "k", Bytes::new()),
        ("by-key", queue("dead"), "dead", Bytes::new()),
        ("by-key", queue("mine"), "k", Bytes::new()),
        ("all", queue("dead"), "", Bytes::new()),
        ("news", queue("sorted"), "sport.#", Bytes::new()),
        ("news", queue("tries"), "*.eu", Bytes::new()),
        (
            "news",
            Destination::Exchange("by-header".to_owned()),
            "#",
            Bytes::new(),
        ),
        ("by-header", queue("tenants"), "", wanted),
        ("by-header", queue("strict"), "", Bytes::new()),
    ] {
        let spec = BindingSpec {
            vhost,
            source: source.to_owned(),
            destination,
            key: key.to_owned(),
            args,
        };
        let reply = ask(world, AdminRequest::Bind(Box::new(spec)));
        assert!(matches!(reply, AdminReply::Bound(Ok(()))), "{reply:?}");
    }
}

/// A message to each exchange, in the envelope of its form.
fn publish(world: &mut World, vhost: VhostId, (form, number): (Form, u8)) {
    let mut batch = PublishBatch {
        vhost,
        ..PublishBatch::default()
    };
    let mut data = Vec::new();
    for (exchange, key) in [
        ("", "plain"),
        ("by-key", "k"),
        ("by-key", "nowhere"),
        ("news", "sport.eu"),
        ("news", "art"),
    ] {
        let start = data.len();
        put_envelope(&mut data, (exchange, key), (form, number));
        batch.items.push(PublishItem {
            target: PublishTarget::Route,
            content: span(start, data.len() - start),
            form,
            priority: number,
            ttl_ms: (number == 3).then_some(600_000),
            ..PublishItem::default()
        });
    }
    batch.data = data.into();
    let (conn, token) = (PRODUCER, 88_888);
    let reply = ReplyTo { conn, token };
    world.handle(Request::Publish { reply, batch });
    world.settle_down();
    assert_eq!(world.published(token).unwrap().len(), 5);
}

fn put_envelope(data: &mut Vec<u8>, names: (&str, &str), (form, number): (Form, u8)) {
    for name in [names.0, names.1] {
        data.push(u8::try_from(name.len()).unwrap());
        data.extend_from_slice(name.as_bytes());
    }
    let properties = match form {
        // Headers, delivery mode 2.
        Form::Amqp => {
            let headers = table(&[("tenant", Argument::Text("a"))]);
            let mut bytes = 0x3000_u16.to_be_bytes().to_vec();
            bytes.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(&headers);
            bytes.push(2);
            bytes
        }
        Form::Fire | Form::Fila => fire_properties(),
    };
    let body = format!("{} {} {number}", names.0, names.1).into_bytes();
    for part in [properties, body] {
        data.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        data.extend_from_slice(&part);
    }
}

/// Persistent, no properties, one header.
fn fire_properties() -> Vec<u8> {
    let mut bytes = ((1_u32 << 31) | 1).to_be_bytes().to_vec();
    bytes.extend_from_slice(b"\x80\x81\xa6tenant\xa1b");
    bytes
}

enum Argument {
    Text(&'static str),
    Number(i32),
    Flag(bool),
}

/// An AMQP field table without its length.
fn table(fields: &[(&str, Argument)]) -> Bytes {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(u8::try_from(name.len()).unwrap());
        bytes.extend_from_slice(name.as_bytes());
        match value {
            Argument::Text(text) => {
                bytes.push(b'S');
                bytes.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
            Argument::Number(number) => {
                bytes.push(b'I');
                bytes.extend_from_slice(&number.to_be_bytes());
            }
            Argument::Flag(flag) => bytes.extend_from_slice(&[b't', u8::from(*flag)]),
        }
    }
    bytes.into()
}

/// One message is rejected, which sends it to a dead-letter exchange; one is held at the end.
fn settle_some(world: &mut World, vhost: VhostId) {
    let rejected = get(world, (vhost, "tries"), false).unwrap();
    let item = SettleItem {
        queue: SettleQueue::Id(rejected.queue_id),
        id: rejected.items[0].id,
        settlement: Settlement::Nack { requeue: false },
    };
    let batch = SettleBatch {
        vhost,
        items: vec![item],
        ..SettleBatch::default()
    };
    let (conn, token) = (PRODUCER, 66_666);
    let reply = ReplyTo { conn, token };
    world.handle(Request::Settle { reply, batch });
    world.settle_down();
    assert!(world.settled(token).unwrap().iter().all(Result::is_ok));
    assert!(get(world, (vhost, "plain"), false).is_some());
}

fn get(world: &mut World, (vhost, queue): (VhostId, &str), no_ack: bool) -> Option<DeliveryBatch> {
    let (conn, token) = (PRODUCER, 55_555);
    let spec = GetSpec {
        vhost,
        queue: queue.to_owned(),
        frame_limit: FrameLimit::None,
        take: if no_ack { Take::NoAck } else { Take::default() },
    };
    let reply = ReplyTo { conn, token };
    world.handle(Request::Get { reply, spec });
    world.settle_down();
    let events = world.take();
    let got = events.into_iter().find_map(|(_, event)| match event {
        Event::Got { result, .. } => Some(result.unwrap()),
        _ => None,
    });
    let batch = got.unwrap().batch?;
    let bytes = batch.budget_bytes();
    world.handle(Request::Drained { conn, bytes });
    Some(batch)
}

fn make_users(world: &mut World) {
    for (name, hash) in [("anna", "$argon2id$fixture"), ("otto", "$argon2id$other")] {
        user(
            world,
            UserRequest::Put(Box::new(NewUser {
                name: name.to_owned(),
                password: PasswordChange::Set(PasswordHash::new(hash)),
                tags: Some(vec!["monitoring".to_owned()]),
            })),
        );
        user(
            world,
            UserRequest::SetPermissions(Box::new(NewVhostPermissions {
                user: name.to_owned(),
                vhost: "shop".to_owned(),
                permissions: VhostPermissions {
                    configure: "".into(),
                    write: "^news$".into(),
                    read: ".*".into(),
                },
            })),
        );
    }
    user(
        world,
        UserRequest::SetTopicPermissions(Box::new(NewTopicPermissions {
            user: "anna".to_owned(),
            vhost: "shop".to_owned(),
            exchange: "news".to_owned(),
            permissions: TopicPermissions {
                write: "^sport".into(),
                read: ".*".into(),
            },
        })),
    );
    let name = "otto".to_owned();
    user(world, UserRequest::Delete { name });
}

fn user(world: &mut World, request: UserRequest) {
    ask(world, AdminRequest::User(request));
}

/// Describes topology and users, then takes every message of the declared queues out.
pub(crate) fn describe(mut world: World) -> String {
    let mut text = String::new();
    for user in world.node.users().iter() {
        let hash = user.password.as_ref().map(PasswordHash::reveal);
        writeln!(text, "user {user:?} {hash:?}").unwrap();
    }
    let AdminReply::Vhosts(vhosts) = ask(&mut world, AdminRequest::ListVhosts) else {
        panic!("no list of virtual hosts");
    };
    for vhost in vhosts {
        writeln!(text, "vhost {} {:?}", vhost.name, vhost.id).unwrap();
        describe_topology(&mut world, &mut text, vhost.id);
        for (name, args) in queues() {
            queue(&mut world, &mut text, (vhost.id, name, args));
        }
        let gone = DeclareQueue {
            vhost: vhost.id,
            name: "mine".to_owned(),
            passive: true,
            ..DeclareQueue::default()
        };
        let reply = ask(&mut world, AdminRequest::DeclareQueue(Box::new(gone)));
        writeln!(text, "  {reply:?}").unwrap();
    }
    text
}

fn describe_topology(world: &mut World, text: &mut String, vhost: VhostId) {
    let AdminReply::Exchanges(Ok(exchanges)) = ask(world, AdminRequest::ListExchanges { vhost })
    else {
        panic!("no list of exchanges");
    };
    for exchange in exchanges {
        writeln!(text, "  {exchange:?}").unwrap();
    }
    let AdminReply::Bindings(Ok(bindings)) = ask(world, AdminRequest::ListBindings { vhost })
    else {
        panic!("no list of bindings");
    };
    for binding in bindings {
        writeln!(text, "  {binding:?}").unwrap();
    }
}

/// Declared with the same arguments it is the same queue.
fn queue(world: &mut World, text: &mut String, (vhost, name, args): (VhostId, &str, Bytes)) {
    let declare = DeclareQueue {
        vhost,
        name: name.to_owned(),
        durable: true,
        args,
        ..DeclareQueue::default()
    };
    match ask(world, AdminRequest::DeclareQueue(Box::new(declare))) {
        AdminReply::QueueDeclared(Ok(declared)) => writeln!(text, "  {declared:?}").unwrap(),
        other => panic!("{name}: {other:?}"),
    }
    while let Some(batch) = get(world, (vhost, name), true) {
        let item = &batch.items[0];
        let content = batch.content(item).escape_ascii().to_string();
        writeln!(
            text,
            "    {} {:?} deliveries {} {content}",
            item.id, item.form, item.deliveries
        )
        .unwrap();
    }
}
