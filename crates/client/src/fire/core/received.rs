//! A message as it came: `deliver`, `get_ok`, `return`.
//!
//! Owns: where its parts stand in the frame, which stays as it was read.
//! Refuses to know: what becomes of it.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use tanda_wire::firemq::consume::{Deliver, GetOk};
use tanda_wire::firemq::publish as wire;
use tanda_wire::firemq::{Properties, Props, RawMap, ReplyCode, Value};

/// Where a part stands in a frame; parts that are empty stand nowhere.
type Span = Range<usize>;

/// Exchange, routing key, properties, headers and body of a message: slices of what was read from
/// the connection, without a copy. Keeping one keeps up to 128 KiB of its neighbours in memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Header and payload.
    frame: Bytes,
    exchange: Span,
    key: Span,
    props: Span,
    headers: Span,
    body_at: usize,
}

impl Content {
    /// The exchange it was published to; empty is the default one.
    #[must_use]
    pub fn exchange(&self) -> &str {
        self.text(&self.exchange)
    }

    /// The routing key it was published with.
    #[must_use]
    pub fn key(&self) -> &str {
        self.text(&self.key)
    }

    /// Its properties; an absent one is empty or 0.
    #[must_use]
    pub fn properties(&self) -> Properties<'_> {
        Props::from_checked(self.part(&self.props)).fields()
    }

    /// The application's headers.
    #[must_use]
    pub fn headers(&self) -> RawMap<'_> {
        RawMap::from_checked(self.part(&self.headers))
    }

    /// The value of a header, if it is there.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<Value<'_>> {
        self.headers().find(name)
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.frame.get(self.body_at..).unwrap_or_default()
    }

    /// Its body, to be kept, without a copy.
    #[must_use]
    pub fn body_bytes(&self) -> Bytes {
        self.frame.slice(self.body_at.min(self.frame.len())..)
    }

    fn part(&self, span: &Span) -> &[u8] {
        self.frame.get(span.clone()).unwrap_or_default()
    }

    fn text(&self, span: &Span) -> &str {
        // It was checked when the frame was read.
        std::str::from_utf8(self.part(span)).unwrap_or_default()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("exchange", &self.exchange())
            .field("key", &self.key())
            .field("body_bytes", &self.body().len())
            .finish_non_exhaustive()
    }
}

/// A frame with a message whose header was read, while its bytes are still in the input.
#[derive(Debug)]
pub(super) struct Arriving {
    content: Content,
    pub(super) of: ArrivingAs,
}

/// What a message comes as.
#[derive(Debug)]
pub(super) enum ArrivingAs {
    /// `return`.
    Returned {
        seq: u64,
        code: ReplyCode,
        message: String,
    },
    /// `deliver`.
    Delivery {
        sub: u64,
        tag: u64,
        redelivered: bool,
    },
    /// `get_ok`.
    Got {
        rid: u64,
        tag: u64,
        redelivered: bool,
        remaining: u64,
    },
}

impl Arriving {
    /// Keeps what a `return` says; its header was read from these bytes.
    pub(super) fn returned(it: &wire::Returned<'_>, header: &[u8]) -> Self {
        Self {
            content: Content::in_header((it.exchange, it.key), it.props, it.headers, header),
            of: ArrivingAs::Returned {
                seq: it.seq,
                code: it.code,
                message: it.msg.to_owned(),
            },
        }
    }

    /// Keeps what a `deliver` says; its header was read from these bytes.
    pub(super) fn delivery(it: &Deliver<'_>, header: &[u8]) -> Self {
        Self {
            content: Content::in_header((it.exchange, it.key), it.props, it.headers, header),
            of: ArrivingAs::Delivery {
                sub: it.sub,
                tag: it.tag,
                redelivered: it.redelivered,
            },
        }
    }

    /// Keeps what a `get_ok` says; its header was read from these bytes.
    pub(super) fn got(it: &GetOk<'_>, header: &[u8]) -> Self {
        Self {
            content: Content::in_header((it.exchange, it.key), it.props, it.headers, header),
            of: ArrivingAs::Got {
                rid: it.rid,
                tag: it.tag,
                redelivered: it.redelivered,
                remaining: it.remaining,
            },
        }
    }

    /// The message in its frame, now header and payload without what stands before them.
    pub(super) fn into_content(self, frame: Bytes) -> (Content, ArrivingAs) {
        let Self { mut content, of } = self;
        content.frame = frame;
        (content, of)
    }
}

impl Content {
    /// Where these parts stand in the header that they were read from.
    fn in_header(
        (exchange, key): (&str, &str),
        props: Props<'_>,
        headers: RawMap<'_>,
        header: &[u8],
    ) -> Self {
        let span = |part: &[u8]| {
            let start = part.as_ptr().addr().wrapping_sub(header.as_ptr().addr());
            let end = start.saturating_add(part.len());
            // What the header leaves out is a constant, which stands elsewhere.
            if end <= header.len() {
                start..end
            } else {
                0..0
            }
        };
        Self {
            frame: Bytes::new(),
            exchange: span(exchange.as_bytes()),
            key: span(key.as_bytes()),
            props: span(props.as_bytes()),
            headers: span(headers.as_bytes()),
            body_at: header.len(),
        }
    }
}

/// A message for a subscription, or one that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its tag on this connection.
    pub tag: u64,
    /// Whether it was delivered before and not acknowledged.
    pub redelivered: bool,
    /// The message.
    pub content: Content,
}

/// A mandatory message that no queue received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// Why; 312.
    pub code: ReplyCode,
    /// Why, for people.
    pub message: String,
    /// The message.
    pub content: Content,
}
