//! The engine's answers to requests about the topology.

use tanda_engine::{AdminReply, TopologyCode, TopologyError};
use tanda_wire::firemq::ReplyCode;
use tanda_wire::firemq::reply::OkReply;

use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::{Call, Waiting};
use crate::answers::Answer;

impl Open {
    pub(super) fn on_reply(&mut self, link: &mut Link, token: u32, reply: AdminReply) {
        let Some(Waiting::Call { rid, call }) = link.pending.remove(token) else {
            return;
        };
        if let Call::Unsubscribe { token } = call {
            self.subs.remove(token);
            return link.outbound.frame(&OkReply {
                rid,
                ..OkReply::default()
            });
        }
        match Answer::of(reply).unwrap_or(Ok(Answer::Done)) {
            Ok(answer) => say_done(link, rid, &answer),
            Err(error) => say_failed(link, rid, &call, error),
        }
    }
}

fn say_done(link: &mut Link, rid: u64, answer: &Answer) {
    let mut ok = OkReply {
        rid,
        ..OkReply::default()
    };
    match answer {
        Answer::Done => {}
        Answer::Count(count) => ok.messages = *count,
        Answer::Queue(declared) => {
            ok.name = &declared.name;
            ok.messages = declared.messages;
            ok.consumers = declared.consumers.into();
        }
    }
    link.outbound.frame(&ok);
}

/// What is not there need not be removed, and what is built in cannot be.
fn say_failed(link: &mut Link, rid: u64, call: &Call, error: TopologyError) {
    let is_missing = error.code == TopologyCode::NotFound;
    let is_built_in = error.code == TopologyCode::AccessRefused;
    let mut fault = Fault::of_topology(error).of(rid);
    match call {
        Call::DeleteExchange | Call::DeleteQueue | Call::Unbind if is_missing => {
            return link.outbound.frame(&OkReply {
                rid,
                ..OkReply::default()
            });
        }
        Call::DeleteExchange if is_built_in => fault.code = ReplyCode::NotAllowed,
        Call::Make
        | Call::DeclareQueue
        | Call::DeleteExchange
        | Call::DeleteQueue
        | Call::Unbind
        | Call::Purge
        | Call::Get { .. }
        | Call::Unsubscribe { .. } => {}
    }
    link.outbound.error(&fault);
}
