//! The opcodes (`Opcodes`).

use core::fmt;

/// One table: variant, number, name, purpose. A number listed twice makes an arm unreachable, which
/// fails the build.
macro_rules! opcodes {
    ($( $(#[$meta:meta])* $variant:ident = $number:literal, $name:literal; )*) => {
        /// What a frame asks for, or answers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Opcode {
            $( $(#[$meta])* $variant, )*
            /// A number this version does not know, kept as it came.
            Unknown(u16),
        }

        impl Opcode {
            /// Every opcode this version knows, in the order of the table.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// The opcode of a number.
            #[must_use]
            pub const fn from_wire(number: u16) -> Self {
                match number {
                    $( $number => Self::$variant, )*
                    other => Self::Unknown(other),
                }
            }

            /// Its number.
            #[must_use]
            pub const fn to_wire(self) -> u16 {
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
        }
    };
}

opcodes! {
    /// Runs a command.
    Command = 1, "COMMAND";
    /// Tells of the server, and signs a nonce.
    Hello = 2, "HELLO";
    /// Authenticates an API key.
    Auth = 3, "AUTH";
    /// Subscribes to a channel; events carry it too.
    Subscribe = 4, "SUBSCRIBE";
    /// Ends a subscription.
    Unsubscribe = 5, "UNSUBSCRIBE";
    /// Cancels a command by its request id.
    Cancel = 6, "CANCEL";
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.to_wire())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_specification() {
        let numbers: Vec<u16> = Opcode::ALL.iter().map(|it| it.to_wire()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        for number in 0..=u16::MAX {
            let opcode = Opcode::from_wire(number);
            assert_eq!(opcode.to_wire(), number);
            let is_unknown = matches!(opcode, Opcode::Unknown(_));
            assert_eq!(is_unknown, !(1..=6).contains(&number));
        }
    }
}
