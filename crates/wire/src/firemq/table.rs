//! The macro that turns one table of numbers into an enum with its conversions.
//!
//! A number listed twice makes the second arm of `from_wire` unreachable, which fails the build.

/// A number space whose unknown values survive decoding: variant, number, name on paper, section
/// of `The FireMQ protocol`.
macro_rules! code_table {
    (
        $(#[$meta:meta])*
        pub enum $Name:ident: $number_type:ty {
            $(
                $(#[$vmeta:meta])*
                $variant:ident = $number:literal, $name:literal, $section:literal;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $( $(#[$vmeta])* $variant, )*
            /// A number this version does not know, kept as it came.
            Unknown($number_type),
        }

        impl $Name {
            /// Every value this version knows, in the order of the table.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// The value for a number on the wire.
            #[inline]
            #[must_use]
            pub const fn from_wire(number: $number_type) -> Self {
                match number {
                    $( $number => Self::$variant, )*
                    other => Self::Unknown(other),
                }
            }

            /// Its number on the wire.
            #[inline]
            #[must_use]
            pub const fn to_wire(self) -> $number_type {
                match self {
                    $( Self::$variant => $number, )*
                    Self::Unknown(number) => number,
                }
            }

            /// Its name in the specification; `unknown` for a number that has none.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )*
                    Self::Unknown(_) => "unknown",
                }
            }

            /// The section of the specification that describes it; empty for an unknown number.
            #[must_use]
            pub const fn section(self) -> &'static str {
                match self {
                    $( Self::$variant => $section, )*
                    Self::Unknown(_) => "",
                }
            }
        }
    };
}

pub(super) use code_table;
