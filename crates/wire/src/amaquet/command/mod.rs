//! The commands: each is declared once, with its arguments, result, permission and what they mean.
//!
//! From the declaration come the parsed request ([`Command`]), `server.commands`
//! ([`write_commands`]) and the page of the documentation ([`document`]).
//!
//! | module | what |
//! |---|---|
//! | `server`, `key`, `value`, .. | the declarations, one file for each family |
//! | `table` | the macro behind them |
//! | `argument` | the types of arguments, with their limits |
//! | `spec` | what is declared, as values |
//! | `document` | what is made of it for readers |

mod argument;
mod counter;
mod document;
mod error;
mod fields;
mod key;
mod list;
mod lock;
mod map;
mod pubsub;
mod queue;
mod ranking;
mod server;
mod set;
mod spec;
mod table;
mod value;

pub use argument::{
    ArgumentLimits, Backoff, Bounded, DeliveryDurability, ITEMS_MAX, KEY_BYTES_MAX, Key,
    MEMBER_BYTES_MAX, Max, Member, ScanLimit, Score, Side, TtlMs, U32, WaitMs, Weight,
};
pub use counter::{CounterAdd, CounterGet, CounterSet};
pub use document::{document, write_commands};
pub use error::{FieldProblem, RequestError};
pub use key::{KeyDelete, KeyExists, KeyExpire, KeyKind, KeyPersist, KeyRename, KeyScan, KeyTtl};
pub use list::{ListLength, ListPop, ListPush, ListRange, ListTrim};
pub use lock::{LockAcquire, LockRelease, LockRenew};
pub use map::{MapAdd, MapAll, MapGet, MapLength, MapRemove, MapSet};
pub use pubsub::{PubsubChannels, PubsubPublish};
pub use queue::{
    PushedMessage, QueueAck, QueueCreate, QueueDelete, QueueExtend, QueueNack, QueuePeek, QueuePop,
    QueuePush, QueueRedrive, QueueStats, TextFields,
};
pub use ranking::{
    RankingAdd, RankingLength, RankingRange, RankingRank, RankingRemove, RankingScore, RankingSpan,
};
pub use server::{ServerCommands, ServerInfo, ServerPing};
pub use set::{SetAdd, SetContains, SetLength, SetMembers, SetRemove};
pub use spec::{ArgumentSpec, Permission, ResultSpec, Spec, ValueType};
pub use value::{ValueDelete, ValueGet, ValueGetMany, ValueSet, ValueSwap};

use error::shortened;
use fields::ARGUMENTS_MAX;
use table::Arguments;

use super::json::NotedObject;

/// All commands, in the order of the specification.
macro_rules! all {
    ($($Name:ident $(<$life:lifetime>)?,)*) => {
        /// A request of the opcode COMMAND.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Command<'a> {
            $(
                #[doc = concat!("See [`", stringify!($Name), "`].")]
                $Name($Name $(<$life>)?),
            )*
        }

        /// What is declared, in the order of the specification.
        pub const COMMANDS: &[Spec] = &[$($Name::SPEC,)*];

        impl<'a> Command<'a> {
            fn read(
                name: &str,
                object: &NotedObject<'a>,
                limits: &ArgumentLimits,
            ) -> Result<Self, RequestError> {
                $(
                    if name == $Name::SPEC.name {
                        return Arguments::read(object, limits).map(Self::$Name);
                    }
                )*
                let name = shortened(name);
                Err(RequestError::UnknownCommand { name })
            }

            /// What is declared of it.
            #[must_use]
            pub const fn spec(&self) -> &'static Spec {
                match self {
                    $(Self::$Name(_) => &const { $Name::SPEC },)*
                }
            }

            /// Tells the names that the caller must have the permission on.
            pub fn tell_names(&self, told: &mut dyn FnMut(&str)) {
                match self {
                    $(Self::$Name(arguments) => arguments.tell_names(told),)*
                }
            }
        }
    };
}

all! {
    ServerPing,
    ServerInfo,
    ServerCommands,
    KeyExists<'a>,
    KeyKind<'a>,
    KeyDelete<'a>,
    KeyExpire<'a>,
    KeyTtl<'a>,
    KeyPersist<'a>,
    KeyRename<'a>,
    KeyScan<'a>,
    ValueSet<'a>,
    ValueGet<'a>,
    ValueGetMany<'a>,
    ValueDelete<'a>,
    ValueSwap<'a>,
    CounterAdd<'a>,
    CounterGet<'a>,
    CounterSet<'a>,
    MapSet<'a>,
    MapGet<'a>,
    MapRemove<'a>,
    MapAll<'a>,
    MapLength<'a>,
    MapAdd<'a>,
    ListPush<'a>,
    ListPop<'a>,
    ListRange<'a>,
    ListLength<'a>,
    ListTrim<'a>,
    SetAdd<'a>,
    SetRemove<'a>,
    SetContains<'a>,
    SetMembers<'a>,
    SetLength<'a>,
    RankingAdd<'a>,
    RankingRemove<'a>,
    RankingScore<'a>,
    RankingRank<'a>,
    RankingRange<'a>,
    RankingLength<'a>,
    LockAcquire<'a>,
    LockRenew<'a>,
    LockRelease<'a>,
    QueueCreate<'a>,
    QueuePush<'a>,
    QueuePop<'a>,
    QueueAck<'a>,
    QueueNack<'a>,
    QueueExtend<'a>,
    QueueStats<'a>,
    QueuePeek<'a>,
    QueueRedrive<'a>,
    QueueDelete<'a>,
    PubsubPublish<'a>,
    PubsubChannels<'a>,
}

const _: () = {
    let mut rest = COMMANDS;
    while let Some((spec, more)) = rest.split_first() {
        assert!(spec.arguments.len() <= ARGUMENTS_MAX, "more than are kept");
        rest = more;
    }
};

/// The argument that names the command.
const COMMAND: &[ArgumentSpec] = &[ArgumentSpec {
    name: "command",
    value_type: ValueType::String,
    required: true,
    limits: "",
    summary: "The command.",
}];

impl<'a> Command<'a> {
    /// Reads the payload of a COMMAND request. Fields that are not known are ignored.
    ///
    /// # Errors
    /// `RequestError` when it is no JSON, names no command, or an argument is at fault.
    pub fn parse(payload: &'a [u8], limits: &ArgumentLimits) -> Result<Self, RequestError> {
        let object = object(payload)?;
        let fields = fields::Fields::of(object.fields(), COMMAND, limits);
        let name: std::borrow::Cow<'_, str> = fields.required("command")?;
        let command = Self::read(&name, &object, limits)?;
        if let Self::RankingRange(range) = &command {
            range.span()?;
        }
        Ok(command)
    }
}

/// The object that a payload is.
fn object(payload: &[u8]) -> Result<NotedObject<'_>, RequestError> {
    let object = NotedObject::parse(payload).map_err(RequestError::Json)?;
    object.map_err(|found| RequestError::NotAnObject { found })
}
