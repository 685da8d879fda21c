//! Settlements of what the broker has taken back come too late: they are nobody's, and least of
//! all the next consumer's.

use tanda_engine::{
    ConnId, DeliveryBatch, Event, GetSpec, Held, ReplyTo, Request, SettleBatch, SettleItem,
    SettleQueue, SettleResult, Settlement, SubscribeSpec,
};
use tanda_wire::amqp::Value;

use crate::broker::{Broker, NOT_LEASED, OK, jobs};
use crate::declared::{ACK, REJECT, REQUEUE, broker, consume, with_args};

impl Broker {
    /// Settles what came in a batch, as who got it does.
    fn settle_batch(&mut self, batch: &DeliveryBatch, settlement: Settlement) -> SettleResult {
        let item = SettleItem {
            queue: SettleQueue::Held {
                queue: batch.queue_id,
                holder: batch.holder(),
            },
            id: batch.items[0].id,
            settlement,
        };
        let batch = SettleBatch {
            items: vec![item],
            ..SettleBatch::default()
        };
        self.handle(Request::Settle {
            reply: ReplyTo {
                conn: ConnId(1),
                token: 9,
            },
            batch,
        });
        self.run();
        let mut result = None;
        self.out.retain(|output| match &output.event {
            Event::Settled { results, .. } => {
                result = Some(results[0]);
                false
            }
            _ => true,
        });
        result.unwrap()
    }
}

#[test]
fn what_was_taken_back_is_not_settled_for_the_next_consumer() {
    for late in [ACK, REQUEUE, REJECT] {
        for was_got in [true, false] {
            let mut b = broker();
            let (c, d) = (b.client(), b.client());
            let timeout = [("x-consumer-timeout", Value::I32(500))];
            b.declared(c, with_args("jobs", &timeout));
            b.send(&jobs(["a"]));
            let first = if was_got {
                let spec = GetSpec {
                    queue: "jobs".to_owned(),
                    ..GetSpec::default()
                };
                b.get_with(c, spec).unwrap().batch.unwrap()
            } else {
                // A cancelled consumer keeps what it holds.
                let w = b.consumer(c, "w", consume("jobs", None));
                let first = b.batches().remove(0);
                b.cancel(w, Held::Keep);
                first
            };
            b.advance(500);
            b.out.clear();
            let spec = SubscribeSpec {
                ack_timeout_ms: None,
                ..consume("jobs", None)
            };
            b.consumer(d, "v", spec);
            let second = b.batches().remove(0);
            assert_eq!(b.settle_batch(&first, late), NOT_LEASED);
            assert_eq!(b.held("jobs"), (0, 1));
            assert_eq!(b.settle_batch(&second, ACK), OK);
            assert_eq!(b.held("jobs"), (0, 0));
        }
    }
}
