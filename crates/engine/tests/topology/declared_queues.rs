//! Queues that AMQP declares, as exchanges see them.

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, DeclareQueue, Destination, ExchangeSpec,
    PublishResult, ReplyTo, Request, TopologyCode, VhostId,
};

use crate::world::{Msg, World, binding, durable};

const OTHER: ConnId = ConnId(2);

fn declare(w: &mut World, declare: DeclareQueue) {
    let reply = w.h.admin(AdminRequest::DeclareQueue(Box::new(declare)));
    assert!(
        matches!(reply, AdminReply::QueueDeclared(Ok(_))),
        "{reply:?}"
    );
}

fn queue(name: &str) -> DeclareQueue {
    DeclareQueue {
        name: name.to_owned(),
        durable: true,
        ..DeclareQueue::default()
    }
}

#[test]
fn a_binding_to_a_queue_that_does_not_survive_a_restart_does_not_either() {
    let mut w = World::new();
    declare(&mut w, queue("qd"));
    let transient = DeclareQueue {
        durable: false,
        ..queue("qt")
    };
    declare(&mut w, transient.clone());
    for name in ["qd", "qt"] {
        w.bind("amq.direct", name, "k");
    }
    w.h.restart(0);
    assert_eq!(w.bindings(), ["amq.direct -k-> qd"]);
    declare(&mut w, transient);
    assert_eq!(
        w.bindings(),
        ["amq.direct -k-> qd"],
        "another queue of the name"
    );
}

/// Pitfall 31.
#[test]
fn another_connections_queue_cannot_be_bound_and_can_be_published_to() {
    let mut w = World::new();
    let exclusive = DeclareQueue {
        exclusive: true,
        ..queue("qx")
    };
    declare(&mut w, exclusive);
    let limits = ConnLimits {
        outbound_bytes_max: 1 << 20,
        subscriptions_max: 8,
    };
    w.h.handle(Request::Connect {
        conn: OTHER,
        limits,
    });
    let bind = AdminRequest::Bind(binding("amq.direct", "qx", "k", &[]));
    let unbind = AdminRequest::Unbind(binding("amq.direct", "qx", "k", &[]));
    for request in [bind, unbind] {
        let reply = ReplyTo {
            conn: OTHER,
            token: 5,
        };
        let out = w.h.handle(Request::Admin { reply, request });
        let tanda_engine::Event::Admin { reply, .. } = &out[0].event else {
            panic!("{out:?}");
        };
        let (AdminReply::Bound(Err(error)) | AdminReply::Unbound(Err(error))) = &**reply else {
            panic!("{reply:?}");
        };
        assert_eq!(error.code, TopologyCode::ResourceLocked);
        let text = "cannot obtain exclusive access to locked queue 'qx' in vhost '/'";
        assert!(error.text.starts_with(text), "{}", error.text);
    }
    let msg = Msg {
        key: "qx",
        ..Msg::default()
    };
    assert!(matches!(w.publish(&msg).0, PublishResult::Stored(_)));
    // It goes with its connection, and with it an exchange that led nowhere else.
    let auto = ExchangeSpec {
        auto_delete: true,
        ..durable("x", "fanout")
    };
    assert_eq!(w.declare(auto), Ok(()));
    w.bind("x", "qx", "");
    w.h.handle(Request::Disconnect {
        conn: crate::harness::CONN,
    });
    w.h.connect(crate::harness::CONN);
    assert_eq!(w.exchanges(), [""; 0]);
    assert_eq!(w.bindings(), [""; 0]);
}

#[test]
fn a_virtual_host_goes_with_its_queues() {
    let mut w = World::new();
    let name = "dev".to_owned();
    assert_eq!(
        w.ask(AdminRequest::CreateVhost { name: name.clone() }),
        Ok(())
    );
    let open = AdminRequest::OpenVhost { name: name.clone() };
    let AdminReply::Vhost(Ok(vhost)) = w.h.admin(open) else {
        panic!("no vhost");
    };
    let there = DeclareQueue {
        vhost,
        ..queue("q1")
    };
    declare(&mut w, there);
    let mut bind = binding("amq.fanout", "q1", "", &[]);
    bind.vhost = vhost;
    assert_eq!(bind.destination, Destination::Queue("q1".to_owned()));
    assert_eq!(w.ask(AdminRequest::Bind(bind)), Ok(()));
    let msg = Msg {
        exchange: "amq.fanout",
        vhost,
        ..Msg::default()
    };
    for _ in 0..2 {
        assert!(matches!(w.publish(&msg).0, PublishResult::Stored(_)));
        assert_eq!(
            w.depths(),
            [0; 4],
            "the queue of the same name is another one"
        );
        w.h.restart(0);
    }
    w.h.take_snapshot();
    w.h.restart(0);
    assert!(matches!(w.publish(&msg).0, PublishResult::Stored(_)));
    assert_eq!(w.ask(AdminRequest::DeleteVhost { name }), Ok(()));
    w.h.restart(0);
    assert_eq!(w.depths(), [0; 4]);
    let list = w.h.admin(AdminRequest::ListBindings { vhost });
    assert!(matches!(list, AdminReply::Bindings(Err(_))), "{list:?}");
    w.bind("amq.fanout", "q1", "");
    assert_eq!(w.to("amq.fanout", ""), [1]);
    assert_ne!(vhost, VhostId::DEFAULT);
}

/// A part of the log was lost, and with it the record of the virtual host.
#[test]
fn a_queue_of_a_virtual_host_whose_record_is_lost_can_be_reached() {
    let mut w = World::new();
    let name = "dev".to_owned();
    assert_eq!(
        w.ask(AdminRequest::CreateVhost { name: name.clone() }),
        Ok(())
    );
    let AdminReply::Vhost(Ok(vhost)) = w.h.admin(AdminRequest::OpenVhost { name }) else {
        panic!("no vhost");
    };
    let there = DeclareQueue {
        vhost,
        ..queue("q9")
    };
    declare(&mut w, there);
    let mut records = w.h.journal.records.clone();
    records.retain(|(_, record)| record[0] != 22);
    w.h.restart_from(records, 0);
    let name = format!("lost-{}", vhost.0);
    let found = w.h.admin(AdminRequest::OpenVhost { name });
    assert_eq!(found, AdminReply::Vhost(Ok(vhost)));
    let msg = Msg {
        key: "q9",
        vhost,
        ..Msg::default()
    };
    assert!(matches!(w.publish(&msg).0, PublishResult::Stored(_)));
}
