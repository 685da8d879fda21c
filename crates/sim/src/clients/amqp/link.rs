//! The client's end of one connection: what a client asks and what the broker says, in terms that
//! the protocols have in common, and the bytes in between.

use crate::failure::Violation;
use crate::history::amqp::{BindingDraw, Death, Door, QueueDraw, Settlement};

use super::of_amqp::OfAmqp;
use super::of_fire::OfFire;

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask<'a> {
    /// Publishes are confirmed from now on.
    Confirms,
    Transactions,
    Prefetch {
        count: u16,
        is_global: bool,
    },
    /// Declares an exchange of this kind.
    Exchange(&'a str, &'a str),
    Queue(&'a str, &'a QueueDraw),
    /// Whether a queue is there.
    Check(&'a str),
    Bind(&'a BindingDraw),
    Unbind(&'a BindingDraw),
    Delete(&'a str),
    Purge(&'a str),
    Consume {
        tag: &'a str,
        queue: &'a str,
        no_ack: bool,
        /// Messages that may come before more is granted, where that is how consumers are held
        /// back.
        credit: u64,
    },
    /// A consumer may get so many messages more.
    Credit(&'a str, u64),
    Cancel(&'a str),
    Get(&'a str),
    Settle {
        delivery_tag: u64,
        multiple: bool,
        settlement: Settlement,
        /// By the newer of two methods, where there are two.
        by_nack: bool,
    },
    Recover,
    Commit,
    RollBack,
    Publish {
        exchange: &'a str,
        key: &'a str,
        is_mandatory: bool,
        is_persistent: bool,
        /// Its publisher waits for its confirm.
        is_confirmed: bool,
        properties: &'a [u8],
        body: &'a [u8],
    },
    /// Says goodbye.
    Close,
}

/// A request was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// A queue of this name is there.
    Declared(String),
    /// An exchange, a binding, or a queue was changed.
    Changed,
    Selected,
    Prefetch,
    Consuming,
    Cancelled,
    /// There is nothing to get.
    Empty,
    Purged,
    Recovered,
    Committed,
    RolledBack,
}

/// A message that came.
#[derive(Clone, Debug)]
pub(super) struct Delivered {
    /// The consumer it came to; `None` when it was got.
    pub(super) consumer: Option<String>,
    pub(super) delivery_tag: u64,
    pub(super) is_redelivered: bool,
    pub(super) exchange: String,
    pub(super) key: String,
    pub(super) content: Content,
}

/// Properties and body, and what the properties tell.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// As they stand on the wire.
    pub(super) properties: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// The message's tag.
    pub(super) tag: usize,
    pub(super) deaths: Vec<Death>,
}

/// What the broker says.
#[derive(Clone, Debug)]
pub(super) enum Said {
    Delivered(Delivered),
    /// This went nowhere.
    Returned(Content),
    /// The publish of this number was taken or not, maybe with all before it.
    Verdict {
        number: u64,
        multiple: bool,
        is_taken: bool,
    },
    /// A consumer was ended.
    Cancelled(String),
    Done(Done),
    /// A request was not done.
    Failed(u16, String),
    /// Something that has no answer was not done.
    Complaint(u16, String),
    /// Publishers are to wait, or not any more.
    Pause(bool),
    /// Everything on the channel is over, and a new one may be opened.
    ChannelClosed(u16, String),
    /// The connection is over.
    Closed(u16, String),
    /// .. as was asked for.
    Goodbye,
}

/// What every connection has, whatever it speaks.
pub(crate) struct Line {
    /// The connection's number.
    pub(crate) conn: u64,
    /// Bytes for the broker; the network takes them.
    pub(crate) out: Vec<u8>,
    /// It has ended its sending side: it reads only.
    pub(crate) has_ended: bool,
    /// Requests may be sent.
    pub(super) is_open: bool,
    /// It has said goodbye, or was told to.
    pub(super) is_over: bool,
    /// The broker wants no messages now.
    pub(super) is_paused: bool,
}

/// See the module.
pub(crate) struct Link {
    pub(crate) line: Line,
    codec: Codec,
}

/// A protocol, and what it remembers.
enum Codec {
    Amqp(OfAmqp),
    Fire(OfFire),
}

impl Link {
    /// Connects and says hello.
    pub(super) fn new(conn: u64, door: Door) -> Self {
        let mut line = Line {
            conn,
            out: Vec::new(),
            has_ended: false,
            is_open: false,
            is_over: false,
            is_paused: false,
        };
        let codec = match door {
            Door::Amqp => Codec::Amqp(OfAmqp::new(&mut line)),
            Door::Fire => Codec::Fire(OfFire::new(&mut line)),
        };
        Self { line, codec }
    }

    /// It may send something of its own accord.
    pub(super) const fn is_free(&self) -> bool {
        self.line.is_open && !self.line.has_ended && !self.line.is_over
    }

    pub(super) fn ask(&mut self, ask: Ask<'_>) {
        self.line.is_over |= matches!(ask, Ask::Close);
        match &mut self.codec {
            Codec::Amqp(codec) => codec.ask(&mut self.line, ask),
            Codec::Fire(codec) => codec.ask(&mut self.line, ask),
        }
    }

    /// The broker has closed the channel: opens another.
    pub(super) fn reopen(&mut self) {
        if self.line.has_ended {
            return;
        }
        if let Codec::Amqp(_) = &self.codec {
            self.line.is_open = false;
            OfAmqp::reopen(&mut self.line);
        }
    }

    /// The broker has closed the connection: agrees.
    pub(super) fn agree(&mut self) {
        match &self.codec {
            Codec::Amqp(_) => OfAmqp::agree(&mut self.line),
            Codec::Fire(_) => OfFire::agree(&mut self.line),
        }
        self.line.is_over = true;
    }

    /// Bytes came.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        match &mut self.codec {
            Codec::Amqp(codec) => codec.receive(bytes),
            Codec::Fire(codec) => codec.receive(bytes),
        }
    }

    /// The next thing the broker says.
    pub(super) fn next(&mut self) -> Result<Option<Said>, Violation> {
        match &mut self.codec {
            Codec::Amqp(codec) => codec.next(&mut self.line),
            Codec::Fire(codec) => codec.next(&mut self.line),
        }
    }
}
