//! Types of arguments, each with the one place where it is read and limited.

use std::borrow::Cow;

use super::error::{FieldProblem, RequestError, shortened};
use super::spec::ValueType;
use crate::amaquet::Payload;
use crate::amaquet::json::Json;

/// Longest name of a key, in bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// Longest field of a map, member of a set or ranking, in bytes.
pub const MEMBER_BYTES_MAX: usize = 65_535;
/// Most items of an array of arguments.
pub const ITEMS_MAX: usize = 100_000;

/// Limits that the configuration sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentLimits {
    /// Longest wait, in milliseconds.
    pub wait_ms_max: u64,
}

impl Default for ArgumentLimits {
    fn default() -> Self {
        Self {
            wait_ms_max: 300_000,
        }
    }
}

/// A type of arguments.
pub(super) trait Argument<'a>: Sized {
    /// As the table names it.
    const TYPE: ValueType;
    /// What of that type is allowed; empty = all of it.
    const LIMITS: &'static str = "";

    /// Reads one.
    fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError>;
}

/// A value of another type than `T`.
fn mistyped<'a, T: Argument<'a>>(value: Json<'a>) -> RequestError {
    let found = value.kind();
    let text = value.text();
    RequestError::here(FieldProblem::Mistyped {
        wanted: T::TYPE,
        found,
        value: match value.as_number() {
            Some(_) => shortened(text),
            None => String::new(),
        },
    })
}

impl<'a> Argument<'a> for Cow<'a, str> {
    const TYPE: ValueType = ValueType::String;

    fn read(value: Json<'a>, _limits: &ArgumentLimits) -> Result<Self, RequestError> {
        value.as_str().ok_or_else(|| mistyped::<Self>(value))
    }
}

/// The name of a key: 1 to [`KEY_BYTES_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key<'a>(pub Cow<'a, str>);

impl<'a> Argument<'a> for Key<'a> {
    const TYPE: ValueType = ValueType::String;
    const LIMITS: &'static str = "1 to 1024 bytes";

    fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError> {
        let key = Cow::read(value, limits)?;
        if (1..=KEY_BYTES_MAX).contains(&key.len()) {
            return Ok(Self(key));
        }
        let found = format!("{} bytes", key.len());
        Err(RequestError::out_of_limits(found, Self::LIMITS))
    }
}

/// A field of a map, a member of a set or ranking: up to [`MEMBER_BYTES_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'a>(pub Cow<'a, str>);

impl<'a> Argument<'a> for Member<'a> {
    const TYPE: ValueType = ValueType::String;
    const LIMITS: &'static str = "at most 65535 bytes";

    fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError> {
        let member = Cow::read(value, limits)?;
        if member.len() <= MEMBER_BYTES_MAX {
            return Ok(Self(member));
        }
        let found = format!("{} bytes", member.len());
        Err(RequestError::out_of_limits(found, Self::LIMITS))
    }
}

impl<'a> Argument<'a> for bool {
    const TYPE: ValueType = ValueType::Bool;

    fn read(value: Json<'a>, _limits: &ArgumentLimits) -> Result<Self, RequestError> {
        value.as_bool().ok_or_else(|| mistyped::<Self>(value))
    }
}

impl<'a> Argument<'a> for i64 {
    const TYPE: ValueType = ValueType::I64;

    fn read(value: Json<'a>, _limits: &ArgumentLimits) -> Result<Self, RequestError> {
        value.as_i64().ok_or_else(|| mistyped::<Self>(value))
    }
}

impl<'a> Argument<'a> for u64 {
    const TYPE: ValueType = ValueType::U64;

    fn read(value: Json<'a>, _limits: &ArgumentLimits) -> Result<Self, RequestError> {
        value.as_u64().ok_or_else(|| mistyped::<Self>(value))
    }
}

/// A number that a double holds exactly as it is written, if it is an integer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score(pub f64);

impl<'a> Argument<'a> for Score {
    const TYPE: ValueType = ValueType::Number;
    const LIMITS: &'static str = "integers beyond 2^53 only where a double holds them exactly";

    fn read(value: Json<'a>, _limits: &ArgumentLimits) -> Result<Self, RequestError> {
        let double = value.as_number().and_then(|number| number.double());
        // There is one zero.
        double
            .map(|it| Self(it + 0.0))
            .ok_or_else(|| mistyped::<Self>(value))
    }
}

/// An integer from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounded<const MIN: u64, const MAX: u64>(pub u64);

/// A time to live, above zero, in milliseconds.
pub type TtlMs = Bounded<1, { u64::MAX }>;
/// How many to take at once.
pub type Max = Bounded<1, 1_000>;
/// How many keys a scan looks for.
pub type ScanLimit = Bounded<1, 10_000>;
/// A weight among fairness keys.
pub type Weight = Bounded<1, { u32::MAX as u64 }>;
/// A number of 32 bits.
pub type U32 = Bounded<0, { u32::MAX as u64 }>;

impl<'a, const MIN: u64, const MAX: u64> Argument<'a> for Bounded<MIN, MAX> {
    const TYPE: ValueType = ValueType::U64;
    const LIMITS: &'static str = match (MIN, MAX) {
        (1, u64::MAX) => "above 0",
        (1, 1_000) => "1 to 1000",
        (1, 10_000) => "1 to 10000",
        (0, 0xffff_ffff) => "at most 4294967295",
        (1, 0xffff_ffff) => "1 to 4294967295",
        _ => panic!("say here what is allowed"),
    };

    fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError> {
        let number = u64::read(value, limits)?;
        if (MIN..=MAX).contains(&number) {
            return Ok(Self(number));
        }
        Err(RequestError::out_of_limits(
            number.to_string(),
            Self::LIMITS,
        ))
    }
}

/// How long to wait, in milliseconds; 0 = not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitMs(pub u64);

impl<'a> Argument<'a> for WaitMs {
    const TYPE: ValueType = ValueType::U64;
    const LIMITS: &'static str = "at most amaquet.limits.max_wait";

    fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError> {
        let wait = u64::read(value, limits)?;
        if wait <= limits.wait_ms_max {
            return Ok(Self(wait));
        }
        let max = limits.wait_ms_max;
        let allowed = format!("at most {max} (amaquet.limits.max_wait)");
        Err(RequestError::out_of_limits(wait.to_string(), allowed))
    }
}

impl<'a> Argument<'a> for Payload<'a> {
    const TYPE: ValueType = ValueType::Payload;

    fn read(value: Json<'a>, _limits: &ArgumentLimits) -> Result<Self, RequestError> {
        Payload::of(value).map_err(|error| RequestError::here(FieldProblem::Payload(error)))
    }
}

/// Types of which there are arrays.
pub(super) trait Item<'a>: Argument<'a> {
    /// Of an array of them.
    const ARRAY: ValueType;
}

impl<'a> Item<'a> for Payload<'a> {
    const ARRAY: ValueType = ValueType::Payloads;
}

impl<'a> Item<'a> for Cow<'a, str> {
    const ARRAY: ValueType = ValueType::Strings;
}

impl<'a> Item<'a> for Key<'a> {
    const ARRAY: ValueType = ValueType::Strings;
}

impl<'a> Item<'a> for Member<'a> {
    const ARRAY: ValueType = ValueType::Strings;
}

impl<'a, T: Item<'a>> Argument<'a> for Vec<T> {
    const TYPE: ValueType = T::ARRAY;
    const LIMITS: &'static str = match T::LIMITS.len() {
        0 => "at most 100000 items",
        15 => "at most 100000 items of 1 to 1024 bytes",
        _ => "at most 100000 items of at most 65535 bytes",
    };

    fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError> {
        let items = value.as_array().ok_or_else(|| mistyped::<Self>(value))?;
        let mut read = Self::new();
        for (index, item) in items.enumerate() {
            if index == ITEMS_MAX {
                let allowed = format!("at most {ITEMS_MAX} items");
                return Err(RequestError::out_of_limits("longer", allowed));
            }
            let item = T::read(item, limits).map_err(|error| error.within_item(index))?;
            read.push(item);
        }
        Ok(read)
    }
}

/// Texts that stand for a choice: variant, its text.
macro_rules! choices {
    ($($(#[$meta:meta])* $Name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)* }
        $limits:literal)*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Name {
            $($(#[$vmeta])* $variant,)*
        }

        impl $Name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its text.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl<'a> Argument<'a> for $Name {
            const TYPE: ValueType = ValueType::String;
            const LIMITS: &'static str = $limits;

            fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError> {
                let text = Cow::read(value, limits)?;
                let found = Self::ALL.iter().find(|it| it.name() == text);
                found.copied().ok_or_else(|| {
                    let found = format!("\"{}\"", shortened(&text));
                    RequestError::out_of_limits(found, Self::LIMITS)
                })
            }
        }
    )*};
}

choices! {
    /// An end of a list.
    Side {
        /// Before the first item.
        Front = "front",
        /// Behind the last item.
        Back = "back",
    } "\"front\" or \"back\""

    /// How long a failed message waits before its next attempt.
    Backoff {
        /// Not at all.
        None = "none",
        /// The same time each time.
        Fixed = "fixed",
        /// Twice as long each time.
        Exponential = "exponential",
    } "\"none\", \"fixed\" or \"exponential\""

    /// What a restart remembers of deliveries.
    DeliveryDurability {
        /// All of them.
        Committed = "committed",
        /// What was synced by chance.
        Fast = "fast",
    } "\"committed\" or \"fast\""
}

/// Arguments that hold names of keys or queues.
pub(super) trait Names {
    /// Tells each of them.
    fn tell(&self, told: &mut dyn FnMut(&str));
}

impl Names for Key<'_> {
    fn tell(&self, told: &mut dyn FnMut(&str)) {
        told(&self.0);
    }
}

impl Names for Cow<'_, str> {
    fn tell(&self, told: &mut dyn FnMut(&str)) {
        told(self);
    }
}

impl<T: Names> Names for Vec<T> {
    fn tell(&self, told: &mut dyn FnMut(&str)) {
        for name in self {
            name.tell(told);
        }
    }
}
