//! The engine's answers to methods of the topology.

use tanda_engine::{AdminReply, DeclaredQueue, TopologyCode, TopologyError};
use tanda_wire::amqp::{ShortStr, basic, exchange, queue};

use super::channel::Mode;
use super::events::Answered;
use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::Call;
use super::topology::say_reply_queue;
use crate::answers::Answer;

impl Open {
    pub(super) fn on_reply(
        &mut self,
        link: &mut Link,
        token: u32,
        reply: AdminReply,
    ) -> Result<(), Fault> {
        let Some((number, answered)) = self.answered(link, token) else {
            return Ok(());
        };
        let Some(result) = Answer::of(reply) else {
            return Ok(());
        };
        if !answered.is_open {
            return Ok(());
        }
        self.finish(link, number, answered, result)
    }

    fn finish(
        &mut self,
        link: &mut Link,
        number: u16,
        answered: Answered,
        result: Result<Answer, TopologyError>,
    ) -> Result<(), Fault> {
        let Answered {
            method,
            no_wait,
            call,
            ..
        } = answered;
        let Some(call) = self.finish_quietly(link, (number, no_wait), call, &result) else {
            return Ok(());
        };
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => {
                if matches!(call, Call::MakeReplyQueue { .. })
                    && let Some(channel) = self.channels.find(number)
                {
                    channel.reply_queue = None;
                }
                return self.fail(link, number, Fault::of_topology(error).by(method));
            }
        };
        if let Call::MakeReplyQueue { tag } = call {
            let channel = self.channels.find(number);
            if let Some(queue) = channel.and_then(|channel| channel.reply_queue.clone()) {
                self.consume_replies(link, (number, no_wait), (queue, tag));
            }
        } else if let Call::FindExchange { exchange } = call {
            if let Some(channel) = self.channels.find(number)
                && let Mode::Tx(tx) = &mut channel.mode
            {
                tx.found = Some(exchange);
            }
        } else if let (Call::DeclareQueue, Answer::Queue(declared)) = (&call, &answer) {
            self.on_declared(link, (number, no_wait), declared);
        } else if !no_wait {
            say_done(link, number, &call, &answer);
        }
        Ok(())
    }

    /// Calls whose answer counts whatever it says. Gives back the others.
    fn finish_quietly(
        &mut self,
        link: &mut Link,
        (number, no_wait): (u16, bool),
        call: Call,
        result: &Result<Answer, TopologyError>,
    ) -> Option<Call> {
        if let Call::Cancel { token, tag } = &call {
            self.on_cancelled(link, number, *token);
            if !no_wait {
                let consumer_tag = ShortStr::clip(tag);
                link.outbound
                    .method(number, basic::CancelOk { consumer_tag });
            }
            return None;
        }
        if let Call::FindReplyQueue { name } = &call {
            // Another connection's, and so it is there.
            let is_there = match result {
                Ok(_) => true,
                Err(error) => error.code == TopologyCode::ResourceLocked,
            };
            if is_there {
                say_reply_queue(link, number, no_wait, name);
                return None;
            }
        }
        Some(call)
    }

    fn on_declared(
        &mut self,
        link: &mut Link,
        (number, no_wait): (u16, bool),
        declared: &DeclaredQueue,
    ) {
        if !no_wait {
            let declare_ok = queue::DeclareOk {
                queue: ShortStr::clip(&declared.name),
                message_count: u32::try_from(declared.messages).unwrap_or(u32::MAX),
                consumer_count: declared.consumers,
            };
            link.outbound.method(number, declare_ok);
        }
        if let Some(channel) = self.channels.find(number) {
            channel.last_queue = Some(declared.name.clone());
        }
    }
}

fn say_done(link: &mut Link, number: u16, call: &Call, answer: &Answer) {
    let message_count = match answer {
        Answer::Count(count) => u32::try_from(*count).unwrap_or(u32::MAX),
        Answer::Done | Answer::Queue(_) => 0,
    };
    let outbound = &mut link.outbound;
    match call {
        Call::DeclareExchange => outbound.method(number, exchange::DeclareOk {}),
        Call::DeleteExchange => outbound.method(number, exchange::DeleteOk {}),
        Call::BindExchange => outbound.method(number, exchange::BindOk {}),
        Call::UnbindExchange => outbound.method(number, exchange::UnbindOk {}),
        Call::BindQueue => outbound.method(number, queue::BindOk {}),
        Call::UnbindQueue => outbound.method(number, queue::UnbindOk {}),
        Call::Purge => outbound.method(number, queue::PurgeOk { message_count }),
        Call::DeleteQueue => outbound.method(number, queue::DeleteOk { message_count }),
        Call::DeclareQueue
        | Call::FindReplyQueue { .. }
        | Call::Get { .. }
        | Call::Cancel { .. }
        | Call::MakeReplyQueue { .. }
        | Call::FindExchange { .. }
        | Call::Commit { .. } => {}
    }
}
