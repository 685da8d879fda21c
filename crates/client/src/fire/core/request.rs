//! What is asked of a server: requests, which get a reply, and publishes.
//!
//! Owns: their frames. Refuses to know: who asks.

use tanda_wire::firemq::consume::{Get, Subscribe, Unsubscribe};
use tanda_wire::firemq::frame::{FrameTooLarge, Framing, write_frame, write_head};
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::topology::{
    Bind, DeclareExchange, DeclareQueue, DeleteExchange, DeleteQueue, PurgeQueue, Unbind,
};

macro_rules! requests {
    ($( $Variant:ident($($Header:tt)*) ),* $(,)?) => {
        /// A request. Its `rid` is not looked at: the connection gives it one.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Request<'a> {
            $(
                #[doc = concat!("`", stringify!($Variant), "`.")]
                $Variant($($Header)*),
            )*
        }

        impl RequestWriter<'_> {
            /// Appends the request.
            ///
            /// # Errors
            /// When it is larger than the server takes; nothing of it is left then.
            pub fn write(self, request: &Request<'_>) -> Result<(), FrameTooLarge> {
                match request {
                    $(
                        Request::$Variant(header) => {
                            let mut header = *header;
                            header.rid = self.rid;
                            write_frame(self.out, Framing::Stream, &header, self.len_max)
                        }
                    )*
                }
            }
        }
    };
}

requests! {
    DeclareExchange(DeclareExchange<'a>),
    DeleteExchange(DeleteExchange<'a>),
    DeclareQueue(DeclareQueue<'a>),
    DeleteQueue(DeleteQueue<'a>),
    PurgeQueue(PurgeQueue<'a>),
    Bind(Bind<'a>),
    Unbind(Unbind<'a>),
    Subscribe(Subscribe<'a>),
    Unsubscribe(Unsubscribe),
    Get(Get<'a>),
}

/// Where one request is written.
#[derive(Debug)]
#[must_use = "a request that is not written is never answered"]
pub struct RequestWriter<'o> {
    pub(super) rid: u64,
    pub(super) out: &'o mut Vec<u8>,
    pub(super) len_max: u32,
}

/// Where one message is written.
#[derive(Debug)]
#[must_use = "a message that is not written is never confirmed"]
pub struct PublishWriter<'o> {
    /// 0: no confirm is wanted.
    pub(super) seq: u64,
    pub(super) out: &'o mut Vec<u8>,
    pub(super) len_max: u32,
}

impl PublishWriter<'_> {
    /// Appends the message. The `seq` of its header is not looked at: the connection counts.
    ///
    /// # Errors
    /// When it is larger than the server takes; nothing of it is left then.
    pub fn write(self, publish: &Publish<'_>, body: &[u8]) -> Result<(), FrameTooLarge> {
        let header = Publish {
            seq: self.seq,
            ..*publish
        };
        write_head(self.out, Framing::Stream, &header, body.len(), self.len_max)?;
        self.out.extend_from_slice(body);
        Ok(())
    }
}
