//! The macros that turn one table of numbers into an enum with its conversions.
//!
//! A number listed twice makes the second arm of `from_wire` unreachable, which fails the build.

/// A number space whose unknown values must survive decoding: variant, number, meaning.
macro_rules! code_table {
    (
        $(#[$meta:meta])*
        pub enum $Name:ident {
            $( $(#[$vmeta:meta])* $variant:ident = $number:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $( $(#[$vmeta])* $variant, )*
            /// A number this version does not know, kept as it came.
            Unknown(u8),
        }

        impl $Name {
            /// Every value this version knows, in the order of the table.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// The value for a number on the wire.
            #[inline]
            #[must_use]
            pub const fn from_wire(number: u8) -> Self {
                match number {
                    $( $number => Self::$variant, )*
                    other => Self::Unknown(other),
                }
            }

            /// Its number on the wire.
            #[inline]
            #[must_use]
            pub const fn to_wire(self) -> u8 {
                match self {
                    $( Self::$variant => $number, )*
                    Self::Unknown(number) => number,
                }
            }

            /// Its name in the specification; `Unknown` for a number that has none.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => stringify!($variant), )*
                    Self::Unknown(_) => "Unknown",
                }
            }
        }

        impl core::fmt::Display for $Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{} (0x{:02X})", self.name(), self.to_wire())
            }
        }
    };
}

/// The named values of a one-byte field. The field itself stays `u8` in its frame, because a
/// server answers an unknown value with a result of its own instead of refusing the frame.
macro_rules! named_values {
    (
        $(#[$meta:meta])*
        pub enum $Name:ident {
            $( $(#[$vmeta:meta])* $variant:ident = $number:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $Name {
            $( $(#[$vmeta])* $variant = $number, )*
        }

        impl $Name {
            /// Every value, in the order of the table.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// The value for a number on the wire, if it is one of the table.
            #[inline]
            #[must_use]
            pub const fn from_wire(number: u8) -> Option<Self> {
                match number {
                    $( $number => Some(Self::$variant), )*
                    _ => None,
                }
            }

            /// Its number on the wire.
            #[inline]
            #[must_use]
            pub const fn to_wire(self) -> u8 {
                self as u8
            }

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => stringify!($variant), )*
                }
            }
        }

        impl From<$Name> for u8 {
            fn from(value: $Name) -> Self {
                value.to_wire()
            }
        }

        impl TryFrom<u8> for $Name {
            type Error = $crate::fila::UnknownValue;

            fn try_from(value: u8) -> Result<Self, Self::Error> {
                let unknown = $crate::fila::UnknownValue { field: stringify!($Name), value };
                Self::from_wire(value).ok_or(unknown)
            }
        }
    };
}

pub(crate) use {code_table, named_values};
