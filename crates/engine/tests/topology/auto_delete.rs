//! Exchanges that go with their last binding (pitfall 32).

use tanda_engine::ExchangeSpec;

use crate::world::{World, durable};

fn auto_delete(w: &mut World, name: &str, durable_too: bool) {
    let spec = ExchangeSpec {
        auto_delete: true,
        durable: durable_too,
        ..durable(name, "fanout")
    };
    assert_eq!(w.declare(spec), Ok(()));
}

#[test]
fn an_exchange_goes_with_its_last_binding_and_not_before_its_first() {
    let mut w = World::new();
    auto_delete(&mut w, "x", true);
    w.h.restart(0);
    assert_eq!(w.exchanges(), ["x"]);
    w.bind("x", "q1", "a");
    w.bind("x", "q2", "a");
    assert_eq!(w.unbind("x", "q1", "a", &[]), Ok(()));
    assert_eq!(w.exchanges(), ["x"]);
    assert_eq!(w.unbind("x", "q2", "a", &[]), Ok(()));
    assert_eq!(w.exchanges(), [""; 0]);
    w.h.restart(0);
    assert_eq!(w.exchanges(), [""; 0]);
}

#[test]
fn it_goes_with_the_queue_and_so_does_what_leads_to_it_only() {
    for durable_too in [true, false] {
        let mut w = World::new();
        for name in ["a", "b", "c", "kept"] {
            auto_delete(&mut w, name, durable_too);
        }
        w.exchange("stays", "fanout");
        w.bind("a", "b", "");
        w.bind("b", "c", "");
        w.bind("c", "q1", "1");
        w.bind("c", "q1", "2");
        w.bind("kept", "c", "");
        w.bind("kept", "q2", "");
        w.bind("stays", "a", "");
        let before = w.h.journal.records.len();
        w.delete_queue("q1");
        assert_eq!(w.exchanges(), ["kept", "stays"]);
        assert_eq!(w.bindings(), ["kept --> q2"]);
        // One record, so that a crash leaves nothing half done.
        assert_eq!(w.h.journal.records.len(), before + 1);
        w.h.restart(0);
        let kept = if durable_too {
            vec!["kept", "stays"]
        } else {
            vec!["stays"]
        };
        assert_eq!(w.exchanges(), kept);
    }
}

#[test]
fn deleting_an_exchange_takes_what_leads_to_it_only() {
    let mut w = World::new();
    auto_delete(&mut w, "a", true);
    w.exchange("x", "direct");
    w.bind("a", "x", "");
    w.bind("x", "q1", "k");
    assert_eq!(w.delete("x", false), Ok(()));
    assert_eq!(w.exchanges(), [""; 0]);
    assert_eq!(w.bindings(), [""; 0]);
    w.h.restart(0);
    assert_eq!(w.exchanges(), [""; 0]);
}

#[test]
fn a_cycle_of_them_goes() {
    let mut w = World::new();
    for name in ["a", "b"] {
        auto_delete(&mut w, name, true);
    }
    w.bind("a", "b", "");
    w.bind("b", "a", "");
    w.bind("a", "a", "");
    w.bind("b", "q1", "");
    assert_eq!(w.delete("a", false), Ok(()));
    assert_eq!(w.exchanges(), ["b"]);
    w.delete_queue("q1");
    assert_eq!(w.exchanges(), [""; 0]);
}
