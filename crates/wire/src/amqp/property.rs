//! The properties of class `basic` (§1.8, `field` elements of the class): kinds and values.
//!
//! Owns: the one table of properties, which also makes the accessors of [`Properties`].

use super::field::Field;
use super::properties::Properties;
use super::strings::ShortStr;
use super::table::Table;

/// How the value of a property looks on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Short,
    Table,
    Octet,
    Timestamp,
}

macro_rules! properties {
    ($( $(#[$meta:meta])* $name:ident, $Kind:ident: $ty:ty as $Layout:ident = $bit:literal; )*) => {
        /// Which property.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum PropertyKind {
            $( $(#[$meta])* $Kind, )*
        }

        impl PropertyKind {
            /// Every property, in the order of their values on the wire.
            pub const ALL: &'static [Self] = &[$( Self::$Kind, )*];

            /// Its bit in the property flags.
            #[inline]
            #[must_use]
            pub const fn flag(self) -> u16 {
                match self {
                    $( Self::$Kind => 1 << $bit, )*
                }
            }

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$Kind => stringify!($name), )*
                }
            }
        }

        /// The layout of the value of a flag, by the number of its bit; 0 and 1 name no property.
        pub(super) const LAYOUTS: [Layout; 16] = {
            let mut layouts = [Layout::Octet; 16];
            $( layouts[$bit] = Layout::$Layout; )*
            layouts
        };

        /// The flags that name properties.
        pub(super) const KNOWN_FLAGS: u16 = 0 $( | 1 << $bit )*;

        /// One property and its value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Property<'a> {
            $( $(#[$meta])* $Kind($ty), )*
        }

        impl Property<'_> {
            /// Which it is.
            #[must_use]
            pub const fn kind(&self) -> PropertyKind {
                match self {
                    $( Self::$Kind(_) => PropertyKind::$Kind, )*
                }
            }

            /// Appends the value.
            pub(super) fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $( Self::$Kind(value) => value.write(out), )*
                }
            }
        }

        /// Properties by name: what a writer has at hand.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct PropertyValues<'a> {
            $( $(#[$meta])* pub $name: Option<$ty>, )*
        }

        impl PropertyValues<'_> {
            /// Appends flags and values: what [`Properties::decode`] reads.
            pub fn encode(&self, out: &mut Vec<u8>) {
                let flags = 0_u16 $( | u16::from(self.$name.is_some()) << $bit )*;
                out.extend_from_slice(&flags.to_be_bytes());
                $( if let Some(value) = &self.$name { value.write(out) } )*
            }

            /// The bytes `encode` appends.
            #[must_use]
            pub fn encoded_size(&self) -> usize {
                2 $( + self.$name.as_ref().map_or(0, Field::size) )*
            }
        }

        impl<'a> Properties<'a> {
            $(
                $(#[$meta])*
                #[must_use]
                pub fn $name(&self) -> Option<$ty> {
                    self.value(PropertyKind::$Kind)
                }
            )*

            /// All of them.
            #[must_use]
            pub fn values(&self) -> PropertyValues<'a> {
                PropertyValues { $( $name: self.$name(), )* }
            }
        }
    };
}

properties! {
    /// The MIME type of the body.
    content_type, ContentType: ShortStr<'a> as Short = 15;
    /// The MIME encoding of the body.
    content_encoding, ContentEncoding: ShortStr<'a> as Short = 14;
    /// Headers, whose entries are not checked: see [`Table::validate`].
    headers, Headers: Table<'a> as Table = 13;
    /// 2 for messages that outlive a restart.
    delivery_mode, DeliveryMode: u8 as Octet = 12;
    /// The priority.
    priority, Priority: u8 as Octet = 11;
    /// What an answer refers to.
    correlation_id, CorrelationId: ShortStr<'a> as Short = 10;
    /// Where an answer goes.
    reply_to, ReplyTo: ShortStr<'a> as Short = 9;
    /// How long it may wait, in milliseconds, as decimal text.
    expiration, Expiration: ShortStr<'a> as Short = 8;
    /// The publisher's name of the message.
    message_id, MessageId: ShortStr<'a> as Short = 7;
    /// The publisher's time; by convention seconds since 1970.
    timestamp, Timestamp: u64 as Timestamp = 6;
    /// The publisher's name of the type.
    message_type, MessageType: ShortStr<'a> as Short = 5;
    /// The user that published it.
    user_id, UserId: ShortStr<'a> as Short = 4;
    /// The application that published it.
    app_id, AppId: ShortStr<'a> as Short = 3;
    /// Reserved in 0-9-1; `cluster-id` before.
    cluster_id, ClusterId: ShortStr<'a> as Short = 2;
}
