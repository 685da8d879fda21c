//! Virtual hosts: namespaces of exchanges and queues.

use tanda_engine::{
    AdminReply, AdminRequest, Destination, ExchangeSpec, PublishError, PublishResult, TopologyCode,
    TopologyError, VhostId,
};

use crate::world::{Msg, World, binding, durable};

fn open(w: &mut World, name: &str) -> Result<VhostId, TopologyError> {
    let name = name.to_owned();
    match w.h.admin(AdminRequest::OpenVhost { name }) {
        AdminReply::Vhost(result) => result,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn create(w: &mut World, name: &str) -> VhostId {
    let request = AdminRequest::CreateVhost {
        name: name.to_owned(),
    };
    assert_eq!(w.ask(request), Ok(()));
    open(w, name).unwrap()
}

pub(crate) fn delete(w: &mut World, name: &str) -> crate::world::Done {
    let name = name.to_owned();
    w.ask(AdminRequest::DeleteVhost { name })
}

fn names(w: &mut World) -> Vec<String> {
    match w.h.admin(AdminRequest::ListVhosts) {
        AdminReply::Vhosts(all) => all.into_iter().map(|it| it.name).collect(),
        other => panic!("{other:?}"),
    }
}

/// Pitfall 4.
#[test]
fn a_virtual_host_is_opened_by_name() {
    let mut w = World::new();
    assert_eq!(open(&mut w, "/"), Ok(VhostId::DEFAULT));
    let error = open(&mut w, "nope").unwrap_err();
    assert_eq!(error.code, TopologyCode::NotAllowed);
    assert_eq!(error.text, "vhost nope not found");
    let id = create(&mut w, "dev");
    assert_ne!(id, VhostId::DEFAULT);
    assert_eq!(create(&mut w, "dev"), id, "it stays");
    assert_eq!(names(&mut w), ["/", "dev"]);
    w.h.restart(0);
    assert_eq!(open(&mut w, "dev"), Ok(id));
    w.h.take_snapshot();
    w.h.restart(0);
    assert_eq!(open(&mut w, "dev"), Ok(id));
}

#[test]
fn names_of_one_mean_nothing_in_another() {
    let mut w = World::new();
    let vhost = create(&mut w, "dev");
    let spec = ExchangeSpec {
        vhost,
        ..durable("x", "fanout")
    };
    assert_eq!(w.declare(spec.clone()), Ok(()));
    assert_eq!(w.exchanges(), [""; 0]);
    let publish = |w: &mut World, exchange, vhost| {
        let msg = Msg {
            exchange,
            key: "q1",
            vhost,
            ..Msg::default()
        };
        w.publish(&msg).0
    };
    let not_found = PublishResult::Refused(PublishError::ExchangeNotFound);
    assert_eq!(publish(&mut w, "x", VhostId::DEFAULT), not_found);
    assert_eq!(publish(&mut w, "x", vhost), PublishResult::Unroutable);
    assert_eq!(publish(&mut w, "", vhost), PublishResult::Unroutable);
    assert_eq!(
        publish(&mut w, "amq.topic", vhost),
        PublishResult::Unroutable
    );
    assert_eq!(publish(&mut w, "amq.topic", VhostId(99)), not_found);
    let mut bind = binding("x", "q1", "", &[]);
    bind.vhost = vhost;
    let (code, text) = w.ask(AdminRequest::Bind(bind.clone())).unwrap_err();
    assert_eq!(code, TopologyCode::NotFound);
    assert_eq!(text, "no queue 'q1' in vhost 'dev'");
    bind.destination = Destination::Exchange("amq.direct".to_owned());
    assert_eq!(w.ask(AdminRequest::Bind(bind)), Ok(()));
    // The same name again, and another exchange.
    w.exchange("x", "direct");
    assert_eq!(w.declare(spec), Ok(()));
}

#[test]
fn a_deleted_one_takes_all_with_it_and_its_number_is_not_used_again() {
    let mut w = World::new();
    let error = delete(&mut w, "/").unwrap_err();
    assert_eq!(error.0, TopologyCode::NotAllowed);
    let error = delete(&mut w, "nope").unwrap_err();
    assert_eq!(error.1, "vhost nope not found");
    let old = create(&mut w, "dev");
    let spec = ExchangeSpec {
        vhost: old,
        ..durable("x", "fanout")
    };
    assert_eq!(w.declare(spec.clone()), Ok(()));
    assert_eq!(delete(&mut w, "dev"), Ok(()));
    assert_eq!(names(&mut w), ["/"]);
    let (code, _) = w.declare(spec).unwrap_err();
    assert_eq!(code, TopologyCode::NotFound);
    let list = w.h.admin(AdminRequest::ListExchanges { vhost: old });
    assert!(matches!(list, AdminReply::Exchanges(Err(_))), "{list:?}");
    w.h.take_snapshot();
    w.h.restart(0);
    let new = create(&mut w, "dev");
    assert_ne!(new, old);
    w.h.restart(0);
    assert_eq!(open(&mut w, "dev"), Ok(new));
    assert_eq!(delete(&mut w, "dev"), Ok(()));
    w.h.restart(0);
    assert_eq!(names(&mut w), ["/"]);
}
