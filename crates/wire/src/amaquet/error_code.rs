//! The codes of errors (`Errors`).

use core::fmt;

/// One table: variant, name on the wire.
macro_rules! error_codes {
    ($( $(#[$meta:meta])* $variant:ident = $name:literal; )*) => {
        /// What went wrong, as clients tell errors apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $( $(#[$meta])* $variant, )*
        }

        impl ErrorCode {
            /// All of them, in the order of the specification.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// Its name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )*
                }
            }

            /// The code of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Some(match name {
                    $( $name => Self::$variant, )*
                    _ => return None,
                })
            }
        }
    };
}

error_codes! {
    /// The request makes no sense.
    BadRequest = "BAD_REQUEST";
    /// No command has this name.
    UnknownCommand = "UNKNOWN_COMMAND";
    /// No operation has this number.
    UnknownOpcode = "UNKNOWN_OPCODE";
    /// The frame is of another version of the protocol.
    UnsupportedVersion = "UNSUPPORTED_VERSION";
    /// The frame makes no sense, or was cut off.
    BadFrame = "BAD_FRAME";
    /// The payload, or what it asks for, is over a limit of bytes.
    PayloadTooLarge = "PAYLOAD_TOO_LARGE";
    /// Nobody has logged in on this connection.
    Unauthenticated = "UNAUTHENTICATED";
    /// The caller may not do this.
    Forbidden = "FORBIDDEN";
    /// It is not there.
    NotFound = "NOT_FOUND";
    /// The key is of another kind.
    WrongType = "WRONG_TYPE";
    /// It is there already.
    Exists = "EXISTS";
    /// It is not in the state that the request wants.
    Conflict = "CONFLICT";
    /// The request id is in use.
    DuplicateRequest = "DUPLICATE_REQUEST";
    /// There is no room now.
    Overloaded = "OVERLOADED";
    /// The request was cancelled.
    Cancelled = "CANCELLED";
    /// What was waited for did not come in time.
    Timeout = "TIMEOUT";
    /// The broker failed.
    Internal = "INTERNAL";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        assert_eq!(ErrorCode::ALL.len(), 17);
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_name(code.name()), Some(*code));
        }
        assert_eq!(ErrorCode::from_name("bad_request"), None);
    }
}
