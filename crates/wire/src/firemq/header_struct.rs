//! The macro that turns one declaration of a header into its struct and both directions of its
//! codec.

/// Declares structs whose fields are the entries of a map with text keys.
///
/// `struct Name<'a>: Op { .. }` is the header of a frame and gets `decode`, `encode` and `OP`;
/// without the op it is a map inside one. `field: Type = "key"` names the key where it is not the
/// field's own name.
macro_rules! header_struct {
    ($(
        $(#[$meta:meta])*
        pub struct $Name:ident $(<$lt:lifetime>)? $(: $op:ident)? {
            $( $(#[$fmeta:meta])* $field:ident : $ty:ty $(= $key:literal)? ),* $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Default, PartialEq)]
        pub struct $Name $(<$lt>)? {
            $( $(#[$fmeta])* pub $field: $ty, )*
        }

        header_struct!(@impls $Name $(<$lt>)? $(: $op)? {
            $( $field: $ty, header_struct!(@key $field $($key)?); )*
        });
    )*};

    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };

    (@impls $Name:ident<$lt:lifetime> $(: $op:ident)? { $($fields:tt)* }) => {
        impl<$lt> $crate::firemq::field::Fields<$lt> for $Name<$lt> {
            header_struct!(@fields $lt { $($fields)* });
        }

        $(
            impl<$lt> $crate::firemq::Header<$lt> for $Name<$lt> {
                const OP: $crate::firemq::Op = $crate::firemq::Op::$op;
            }

            impl<$lt> $Name<$lt> {
                header_struct!(@inherent $lt);
            }
        )?
    };

    (@impls $Name:ident $(: $op:ident)? { $($fields:tt)* }) => {
        impl<'a> $crate::firemq::field::Fields<'a> for $Name {
            header_struct!(@fields 'a { $($fields)* });
        }

        $(
            impl $crate::firemq::Header<'_> for $Name {
                const OP: $crate::firemq::Op = $crate::firemq::Op::$op;
            }

            impl $Name {
                header_struct!(@inherent '_);
            }
        )?
    };

    (@fields $lt:lifetime {}) => {
        fn read_map(
            r: &mut $crate::cursor::Reader<$lt>,
        ) -> Result<Self, $crate::firemq::SyntaxError> {
            for _ in 0..$crate::firemq::field::read_count(r)? {
                let key = $crate::firemq::field::read_key(r)?;
                $crate::firemq::field::skip_unknown(r, key)?;
            }
            Ok(Self {})
        }

        fn write_map(&self, out: &mut Vec<u8>) {
            $crate::firemq::token::write_map_len(out, 0);
        }
    };

    (@fields $lt:lifetime { $( $field:ident : $ty:ty, $key:expr; )* }) => {
        #[inline]
        fn read_map(
            r: &mut $crate::cursor::Reader<$lt>,
        ) -> Result<Self, $crate::firemq::SyntaxError> {
            let mut fields = Self::default();
            for _ in 0..$crate::firemq::field::read_count(r)? {
                let key = $crate::firemq::field::read_key(r)?;
                $(
                    if key == $key.as_bytes() {
                        fields.$field = $crate::firemq::field::read_field(r, $key)?;
                        continue;
                    }
                )*
                $crate::firemq::field::skip_unknown(r, key)?;
            }
            Ok(fields)
        }

        #[inline]
        fn write_map(&self, out: &mut Vec<u8>) {
            let Self { $( $field, )* } = self;
            let count = 0 $(
                + u32::from(!$crate::firemq::field::Field::is_zero($field))
            )*;
            $crate::firemq::token::write_map_len(out, count);
            $(
                if !$crate::firemq::field::Field::is_zero($field) {
                    $crate::firemq::token::write_str(out, $key);
                    $crate::firemq::field::Field::write($field, out);
                }
            )*
        }
    };

    (@inherent $lt:lifetime) => {
        /// Reads a header; fields it does not know are ignored.
        ///
        /// # Errors
        /// When it is no map with text keys, or a field has the wrong type.
        #[inline]
        pub fn decode(header: &$lt [u8]) -> Result<Self, $crate::firemq::SyntaxError> {
            $crate::firemq::field::read_header(header)
        }

        /// Appends the header, without the fields that are zero.
        #[inline]
        pub fn encode(&self, out: &mut Vec<u8>) {
            $crate::firemq::field::Fields::write_map(self, out);
        }
    };
}

pub(super) use header_struct;
