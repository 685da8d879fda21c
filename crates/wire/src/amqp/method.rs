//! Methods of all classes (§2.3.5.1): their numbers, and the payload of a method frame.
//!
//! ```text
//! u16 class | u16 method | arguments
//! ```
//!
//! Owns: finding the method of two numbers. Refuses to know: who may send it, and when.

use core::fmt;

use super::{access, basic, channel, confirm, connection, exchange, queue, tx};
use crate::cursor::{DecodeError, DecodeErrorKind, Reader};

/// The two numbers of a method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodId {
    /// The class.
    pub class: u16,
    /// The method in its class.
    pub method: u16,
}

impl MethodId {
    /// No method: what connection.close and channel.close name when no method is to blame.
    pub const NONE: Self = Self::new(0, 0);

    /// These two numbers.
    #[must_use]
    pub const fn new(class: u16, method: u16) -> Self {
        Self { class, method }
    }

    /// Reads the numbers at the front of a method frame's payload.
    ///
    /// # Errors
    /// Fewer than four bytes.
    #[inline]
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [c0, c1, m0, m1] = r.array("method id")?;
        Ok(Self {
            class: u16::from_be_bytes([c0, c1]),
            method: u16::from_be_bytes([m0, m1]),
        })
    }

    /// The numbers as they begin a payload.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 4] {
        let [c0, c1] = self.class.to_be_bytes();
        let [m0, m1] = self.method.to_be_bytes();
        [c0, c1, m0, m1]
    }

    /// Its name, such as `basic.publish`; `None` when there is no such method.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let methods = CLASSES
            .iter()
            .find(|(class, _)| *class == self.class)
            .map(|(_, methods)| *methods)?;
        methods
            .iter()
            .find(|(method, _)| *method == self.method)
            .map(|(_, name)| *name)
    }

    /// Every method there is.
    pub fn all() -> impl Iterator<Item = Self> {
        CLASSES.iter().flat_map(|(class, methods)| {
            methods.iter().map(|(method, _)| Self::new(*class, *method))
        })
    }
}

impl fmt::Display for MethodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, method } = self;
        match self.name() {
            Some(name) => write!(f, "{name} ({class},{method})"),
            None => write!(f, "({class},{method})"),
        }
    }
}

/// Class numbers and their methods.
const CLASSES: &[(u16, &[(u16, &str)])] = &[
    (connection::CLASS, connection::METHODS),
    (channel::CLASS, channel::METHODS),
    (access::CLASS, access::METHODS),
    (exchange::CLASS, exchange::METHODS),
    (queue::CLASS, queue::METHODS),
    (basic::CLASS, basic::METHODS),
    (confirm::CLASS, confirm::METHODS),
    (tx::CLASS, tx::METHODS),
];

/// The arguments of one method: a struct of a class module.
pub trait Arguments<'a>: Sized {
    /// The method's numbers.
    const ID: MethodId;
    /// Whether a content header and body follow the method.
    const HAS_CONTENT: bool;

    /// Reads the arguments from the front of `r`, behind the numbers.
    ///
    /// # Errors
    /// When they do not follow the layout.
    fn read_arguments(r: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Appends the arguments, without the numbers.
    fn write_arguments(&self, out: &mut Vec<u8>);

    /// The bytes `write_arguments` appends.
    fn arguments_size(&self) -> usize;
}

/// A method with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method<'a> {
    /// Class 10.
    Connection(connection::Method<'a>),
    /// Class 20.
    Channel(channel::Method<'a>),
    /// Class 30, of AMQP 0-8.
    Access(access::Method<'a>),
    /// Class 40.
    Exchange(exchange::Method<'a>),
    /// Class 50.
    Queue(queue::Method<'a>),
    /// Class 60.
    Basic(basic::Method<'a>),
    /// Class 85, of RabbitMQ.
    Confirm(confirm::Method),
    /// Class 90.
    Tx(tx::Method),
}

/// Why the payload of a method frame was not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodError {
    /// It is too short for the two numbers.
    NoId {
        /// Its length in bytes.
        len: usize,
    },
    /// There is no such method.
    Unknown {
        /// The numbers found.
        id: MethodId,
    },
    /// The arguments do not follow the layout; offsets count from the start of the payload.
    Malformed {
        /// The method.
        id: MethodId,
        /// What is wrong with them.
        error: DecodeError,
    },
}

impl MethodError {
    /// The method that connection.close blames.
    #[must_use]
    pub const fn id(&self) -> MethodId {
        match self {
            Self::NoId { .. } => MethodId::NONE,
            Self::Unknown { id } | Self::Malformed { id, .. } => *id,
        }
    }
}

impl fmt::Display for MethodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoId { len } => write!(f, "a method frame of {len} bytes names no method"),
            Self::Unknown { id } => write!(f, "there is no method {id}"),
            Self::Malformed { id, error } => write!(f, "{id}: {error}"),
        }
    }
}

impl core::error::Error for MethodError {}

impl<'a> Method<'a> {
    /// Reads the payload of a method frame.
    ///
    /// Bytes behind the last argument are refused, as RabbitMQ refuses them (it matches whole
    /// payloads). Short strings may hold any bytes; RabbitMQ closes the connection with
    /// `FRAME_ERROR` when one of a method without content is not UTF-8, which is left to sessions.
    ///
    /// # Errors
    /// When there is no such method, or its arguments do not follow the layout.
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<Self, MethodError> {
        let mut r = Reader::new(payload);
        let Ok(id) = MethodId::read(&mut r) else {
            return Err(MethodError::NoId { len: payload.len() });
        };
        let read = match id.class {
            basic::CLASS => basic::read(id.method, &mut r),
            connection::CLASS => connection::read(id.method, &mut r),
            channel::CLASS => channel::read(id.method, &mut r),
            access::CLASS => access::read(id.method, &mut r),
            exchange::CLASS => exchange::read(id.method, &mut r),
            queue::CLASS => queue::read(id.method, &mut r),
            confirm::CLASS => confirm::read(id.method, &mut r),
            tx::CLASS => tx::read(id.method, &mut r),
            _ => Ok(None),
        };
        match read {
            Ok(Some(method)) if r.remaining() == 0 => Ok(method),
            Ok(Some(_)) => Err(MethodError::Malformed {
                id,
                error: r.error(DecodeErrorKind::TrailingBytes {
                    have: r.remaining(),
                }),
            }),
            Ok(None) => Err(MethodError::Unknown { id }),
            Err(error) => Err(MethodError::Malformed { id, error }),
        }
    }

    /// Its numbers.
    #[must_use]
    pub const fn id(&self) -> MethodId {
        match self {
            Self::Connection(method) => method.id(),
            Self::Channel(method) => method.id(),
            Self::Access(method) => method.id(),
            Self::Exchange(method) => method.id(),
            Self::Queue(method) => method.id(),
            Self::Basic(method) => method.id(),
            Self::Confirm(method) => method.id(),
            Self::Tx(method) => method.id(),
        }
    }

    /// Whether a content header and body follow it.
    #[must_use]
    pub const fn has_content(&self) -> bool {
        matches!(
            self,
            Self::Basic(
                basic::Method::Publish(_)
                    | basic::Method::Return(_)
                    | basic::Method::Deliver(_)
                    | basic::Method::GetOk(_)
            )
        )
    }

    /// Appends the payload of its frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id().to_bytes());
        match self {
            Self::Connection(method) => method.write_arguments(out),
            Self::Channel(method) => method.write_arguments(out),
            Self::Access(method) => method.write_arguments(out),
            Self::Exchange(method) => method.write_arguments(out),
            Self::Queue(method) => method.write_arguments(out),
            Self::Basic(method) => method.write_arguments(out),
            Self::Confirm(method) => method.write_arguments(out),
            Self::Tx(method) => method.write_arguments(out),
        }
    }

    /// The bytes `encode` appends.
    #[must_use]
    pub fn encoded_size(&self) -> usize {
        let arguments = match self {
            Self::Connection(method) => method.arguments_size(),
            Self::Channel(method) => method.arguments_size(),
            Self::Access(method) => method.arguments_size(),
            Self::Exchange(method) => method.arguments_size(),
            Self::Queue(method) => method.arguments_size(),
            Self::Basic(method) => method.arguments_size(),
            Self::Confirm(method) => method.arguments_size(),
            Self::Tx(method) => method.arguments_size(),
        };
        4 + arguments
    }
}
