//! The capability bitmap of the handshake (`Capabilities`).

use core::ops::BitAnd;

use super::field::{EncodeError, Field};
use crate::cursor::{DecodeError, Reader};

/// A set of optional features. Bits without a name are kept, so that the peer's set survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(u32);

macro_rules! capabilities {
    ($( $(#[$meta:meta])* $NAME:ident = bit $bit:literal; )*) => {
        impl Capabilities {
            $( $(#[$meta])* pub const $NAME: Self = Self(1 << $bit); )*

            /// Every capability with a name, and that name.
            pub const ALL: &'static [(Self, &'static str)] =
                &[$( (Self::$NAME, stringify!($NAME)), )*];
        }
    };
}

capabilities! {
    /// The peer honours `Credit`. Without it credit is ignored and the server pushes freely.
    CREDIT_FLOW_CONTROL = bit 0;
}

impl Capabilities {
    /// No feature.
    pub const NONE: Self = Self(0);

    /// The set for a bitmap on the wire.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The bitmap on the wire.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all features of `other` are in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The active set of a connection is what both sides offer.
impl BitAnd for Capabilities {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl<'a> Field<'a> for Capabilities {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.u32_be().map(Self)
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.0.write(out)
    }

    fn size(&self) -> usize {
        4
    }
}
