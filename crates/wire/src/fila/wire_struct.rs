//! The macro that turns one declaration of a body into its struct and both directions of its codec.

/// Declares structs whose fields stand on the wire in the order written.
///
/// `struct Name<'a>: Opcode { .. }` is the body of a frame and gets `decode`, `encode`,
/// `encoded_size` and `OPCODE`; without the opcode it is a part of one. `field: Type as layout`
/// picks a layout of `layout` where the type alone does not say it.
macro_rules! wire_struct {
    ($(
        $(#[$meta:meta])*
        pub struct $Name:ident $(<$lt:lifetime>)? $(: $op:ident)? {
            $( $(#[$fmeta:meta])* $field:ident : $ty:ty $(as $layout:ident)? ),* $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $Name $(<$lt>)? {
            $( $(#[$fmeta])* pub $field: $ty, )*
        }

        wire_struct!(@impls $Name $(<$lt>)? $(: $op)? {
            $( $field: $ty $(as $layout)?, )*
        });
    )*};

    (@impls $Name:ident<$lt:lifetime> $(: $op:ident)? { $($fields:tt)* }) => {
        impl<$lt> $crate::fila::field::Field<$lt> for $Name<$lt> {
            wire_struct!(@field $lt { $($fields)* });
        }

        $(
            impl<$lt> $crate::fila::Body<$lt> for $Name<$lt> {
                const OPCODE: $crate::fila::Opcode = $crate::fila::Opcode::$op;
            }

            impl<$lt> $Name<$lt> {
                wire_struct!(@inherent $lt);
            }
        )?
    };

    (@impls $Name:ident $(: $op:ident)? { $($fields:tt)* }) => {
        impl<'a> $crate::fila::field::Field<'a> for $Name {
            wire_struct!(@field 'a { $($fields)* });
        }

        $(
            impl $crate::fila::Body<'_> for $Name {
                const OPCODE: $crate::fila::Opcode = $crate::fila::Opcode::$op;
            }

            impl $Name {
                wire_struct!(@inherent '_);
            }
        )?
    };

    (@field $lt:lifetime {}) => {
        const SIZE_MIN: usize = 0;

        fn read(
            _: &mut $crate::cursor::Reader<$lt>,
        ) -> Result<Self, $crate::cursor::DecodeError> {
            Ok(Self {})
        }

        fn write(&self, _: &mut Vec<u8>) -> Result<(), $crate::fila::EncodeError> {
            Ok(())
        }

        fn size(&self) -> usize {
            0
        }
    };

    (@field $lt:lifetime { $( $field:ident : $ty:ty $(as $layout:ident)? , )* }) => {
        const SIZE_MIN: usize = 0 $( + wire_struct!(@min $lt $ty $(as $layout)?) )*;

        fn read(
            r: &mut $crate::cursor::Reader<$lt>,
        ) -> Result<Self, $crate::cursor::DecodeError> {
            $( let $field = wire_struct!(@read r $ty $(as $layout)?)?; )*
            Ok(Self { $( $field, )* })
        }

        fn write(&self, out: &mut Vec<u8>) -> Result<(), $crate::fila::EncodeError> {
            let Self { $( $field, )* } = self;
            $( wire_struct!(@write $field out $ty $(as $layout)?)?; )*
            Ok(())
        }

        fn size(&self) -> usize {
            let Self { $( $field, )* } = self;
            [$( wire_struct!(@size $field $ty $(as $layout)?), )*].iter().sum::<usize>()
        }
    };

    (@inherent $lt:lifetime) => {
        /// Reads the body of a frame; bytes after the last known field are ignored.
        ///
        /// # Errors
        /// When the body does not follow the layout.
        pub fn decode(body: &$lt [u8]) -> Result<Self, $crate::cursor::DecodeError> {
            $crate::fila::field::Field::read(&mut $crate::cursor::Reader::new(body))
        }

        /// Appends the body, without the frame's length and header.
        ///
        /// # Errors
        /// When a field is longer than its length prefix can say; `out` then ends in a part of
        /// the body.
        pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), $crate::fila::EncodeError> {
            $crate::fila::field::Field::write(self, out)
        }

        /// The bytes `encode` appends.
        #[must_use]
        pub fn encoded_size(&self) -> usize {
            $crate::fila::field::Field::size(self)
        }
    };

    (@min $lt:lifetime $ty:ty) => { <$ty as $crate::fila::field::Field<$lt>>::SIZE_MIN };
    (@min $lt:lifetime $ty:ty as $layout:ident) => {
        $crate::fila::layout::$layout::SIZE_MIN
    };
    (@read $r:ident $ty:ty) => { <$ty as $crate::fila::field::Field<'_>>::read($r) };
    (@read $r:ident $ty:ty as $layout:ident) => {
        $crate::fila::layout::$layout::read($r)
    };
    (@write $field:ident $out:ident $ty:ty) => {
        <$ty as $crate::fila::field::Field<'_>>::write($field, $out)
    };
    (@write $field:ident $out:ident $ty:ty as $layout:ident) => {
        $crate::fila::layout::$layout::write($field, $out)
    };
    (@size $field:ident $ty:ty) => {
        <$ty as $crate::fila::field::Field<'_>>::size($field)
    };
    (@size $field:ident $ty:ty as $layout:ident) => {
        $crate::fila::layout::$layout::size($field)
    };
}

pub(crate) use wire_struct;
