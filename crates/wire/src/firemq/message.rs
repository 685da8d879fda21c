//! Every frame as one enum per direction, decoded by its op.

use super::consume::{Ack, Cancelled, Credit, Deliver, Get, GetOk, Nack, Subscribe, Unsubscribe};
use super::op::Op;
use super::publish::{Confirm, Publish, Returned};
use super::reply::{ErrorReply, OkReply};
use super::session::{Close, Flow, Hello, Ping, Pong, Welcome};
use super::syntax::SyntaxError;
use super::topology::{
    Bind, DeclareExchange, DeclareQueue, DeleteExchange, DeleteQueue, PurgeQueue, Unbind,
};

macro_rules! direction {
    (
        $(#[$meta:meta])*
        pub enum $Name:ident { $( $variant:ident($Header:ident $(<$lt:lifetime>)?) ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $Name<'a> {
            $(
                #[doc = concat!("`", stringify!($Header), "`.")]
                $variant($Header $(<$lt>)?),
            )*
        }

        impl<'a> $Name<'a> {
            /// Decodes the header of a frame; `None` when this direction has no such op.
            ///
            /// # Errors
            /// When it is no map with text keys, or a field has the wrong type.
            #[inline]
            pub fn decode(op: Op, header: &'a [u8]) -> Result<Option<Self>, SyntaxError> {
                Ok(Some(match op {
                    $( Op::$variant => Self::$variant($Header::decode(header)?), )*
                    _ => return Ok(None),
                }))
            }

            /// The op of its frame.
            #[must_use]
            pub const fn op(&self) -> Op {
                match self {
                    $( Self::$variant(_) => Op::$variant, )*
                }
            }

            /// Appends the header, without the fields that are zero.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $( Self::$variant(header) => header.encode(out), )*
                }
            }
        }
    };
}

direction! {
    /// The header of a frame that a client may send.
    pub enum ToServer {
        Hello(Hello<'a>),
        Ping(Ping),
        Pong(Pong),
        Close(Close<'a>),
        DeclareExchange(DeclareExchange<'a>),
        DeleteExchange(DeleteExchange<'a>),
        DeclareQueue(DeclareQueue<'a>),
        DeleteQueue(DeleteQueue<'a>),
        PurgeQueue(PurgeQueue<'a>),
        Bind(Bind<'a>),
        Unbind(Unbind<'a>),
        Publish(Publish<'a>),
        Subscribe(Subscribe<'a>),
        Unsubscribe(Unsubscribe),
        Credit(Credit),
        Ack(Ack),
        Nack(Nack),
        Get(Get<'a>),
    }
}

direction! {
    /// The header of a frame that a server may send.
    pub enum ToClient {
        Welcome(Welcome<'a>),
        Ping(Ping),
        Pong(Pong),
        Close(Close<'a>),
        Ok(OkReply<'a>),
        Error(ErrorReply<'a>),
        Flow(Flow),
        Confirm(Confirm<'a>),
        Return(Returned<'a>),
        Deliver(Deliver<'a>),
        Cancelled(Cancelled<'a>),
        GetOk(GetOk<'a>),
    }
}
