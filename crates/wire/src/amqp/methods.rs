//! The macro that turns the list of one class's methods into its structs, enum and codec.

/// Declares the methods of a class.
///
/// Arguments stand on the wire in the order written: `reserved` (written as zero or empty, read and
/// dropped), `fields`, `bits` (packed into one octet), `then` more fields, and the `rest`, reserved
/// again. No method has more parts than these, or needs another order.
macro_rules! methods {
    (
        $(#[$cmeta:meta])*
        class $Class:ident $(<$clt:lifetime>)? = $class:literal, $class_name:literal;
        $(
            $(#[$meta:meta])*
            $Name:ident $(<$lt:lifetime>)? = $number:literal, $name:literal $(, $content:ident)? {
                $(reserved { $( $rty:ty ),+ })?
                $(fields { $( $(#[$fm:meta])* $f:ident: $fty:ty, )+ })?
                $(bits { $( $(#[$bm:meta])* $b:ident, )+ })?
                $(then { $( $(#[$tm:meta])* $t:ident: $tty:ty, )+ })?
                $(rest { $( $zty:ty ),+ })?
            }
        )*
    ) => {
        /// The number of the class.
        pub const CLASS: u16 = $class;

        /// Its methods: number, and name as the specification writes it.
        pub const METHODS: &[(u16, &str)] = &[$( ($number, concat!($class_name, ".", $name)), )*];

        $(#[$cmeta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Method $(<$clt>)? {
            $( $(#[$meta])* $Name($Name $(<$lt>)?), )*
        }

        impl $(<$clt>)? Method $(<$clt>)? {
            /// Its numbers.
            #[must_use]
            pub const fn id(&self) -> $crate::amqp::MethodId {
                match self {
                    $( Self::$Name(_) => $crate::amqp::MethodId::new($class, $number), )*
                }
            }

            /// Appends the arguments.
            pub(in crate::amqp) fn write_arguments(&self, out: &mut Vec<u8>) {
                use $crate::amqp::Arguments as _;
                match self {
                    $( Self::$Name(method) => method.write_arguments(out), )*
                }
            }

            /// The bytes `write_arguments` appends.
            pub(in crate::amqp) fn arguments_size(&self) -> usize {
                use $crate::amqp::Arguments as _;
                match self {
                    $( Self::$Name(method) => method.arguments_size(), )*
                }
            }
        }

        /// Reads the arguments of a method of this class; `None` when it has no such number.
        #[inline]
        pub(in crate::amqp) fn read<'a>(
            method: u16,
            r: &mut $crate::cursor::Reader<'a>,
        ) -> Result<Option<$crate::amqp::Method<'a>>, $crate::cursor::DecodeError> {
            use $crate::amqp::Arguments as _;
            Ok(Some(match method {
                $( $number => $Name::read_arguments(r)?.into(), )*
                _ => return Ok(None),
            }))
        }

        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
            pub struct $Name $(<$lt>)? {
                $($( $(#[$fm])* pub $f: $fty, )+)?
                $($( $(#[$bm])* pub $b: bool, )+)?
                $($( $(#[$tm])* pub $t: $tty, )+)?
            }

            impl<'a> From<$Name $(<$lt>)?> for $crate::amqp::Method<'a> {
                #[inline]
                fn from(method: $Name $(<$lt>)?) -> Self {
                    Self::$Class(Method::$Name(method))
                }
            }

            impl<'a> $crate::amqp::Arguments<'a> for $Name $(<$lt>)? {
                const ID: $crate::amqp::MethodId = $crate::amqp::MethodId::new($class, $number);
                const HAS_CONTENT: bool = methods!(@content $($content)?);

                #[inline]
                fn read_arguments(
                    r: &mut $crate::cursor::Reader<'a>,
                ) -> Result<Self, $crate::cursor::DecodeError> {
                    let _ = &r;
                    $($( <$rty as $crate::amqp::field::Field<'a>>::read(r)?; )+)?
                    $($( let $f = <$fty as $crate::amqp::field::Field<'a>>::read(r)?; )+)?
                    $( let [$( $b, )+] = $crate::amqp::field::unpack_bits(r.u8()?); )?
                    $($( let $t = <$tty as $crate::amqp::field::Field<'a>>::read(r)?; )+)?
                    $($( <$zty as $crate::amqp::field::Field<'a>>::read(r)?; )+)?
                    Ok(Self { $($( $f, )+)? $($( $b, )+)? $($( $t, )+)? })
                }

                #[inline]
                fn write_arguments(&self, out: &mut Vec<u8>) {
                    let _ = &out;
                    let Self { $($( $f, )+)? $($( $b, )+)? $($( $t, )+)? } = self;
                    $($( $crate::amqp::field::Field::write(&<$rty>::default(), out); )+)?
                    $($( $crate::amqp::field::Field::write($f, out); )+)?
                    $( out.push($crate::amqp::field::pack_bits([$( *$b, )+])); )?
                    $($( $crate::amqp::field::Field::write($t, out); )+)?
                    $($( $crate::amqp::field::Field::write(&<$zty>::default(), out); )+)?
                }

                #[inline]
                fn arguments_size(&self) -> usize {
                    let Self { $($( $f, )+)? $($( $b: _, )+)? $($( $t, )+)? } = self;
                    0 $($( + $crate::amqp::field::Field::size(&<$rty>::default()) )+)?
                        $($( + $crate::amqp::field::Field::size($f) )+)?
                        $( + methods!(@octet $( $b )+) )?
                        $($( + $crate::amqp::field::Field::size($t) )+)?
                        $($( + $crate::amqp::field::Field::size(&<$zty>::default()) )+)?
                }
            }
        )*
    };

    (@content) => { false };
    (@content content) => { true };
    (@octet $( $b:ident )+) => { 1 };
}

pub(super) use methods;
