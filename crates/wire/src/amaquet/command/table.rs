//! The macros that turn one declaration of a command into everything that is known of it.

use super::argument::ArgumentLimits;
use super::error::RequestError;
use super::spec::Spec;
use crate::amaquet::json::NotedObject;

/// A command's arguments.
pub(super) trait Arguments<'a>: Sized {
    /// What the table says of it.
    const SPEC: Spec;

    /// Reads them.
    fn read(object: &NotedObject<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError>;

    /// Tells the names that the caller must be allowed to use.
    fn tell_names(&self, told: &mut dyn FnMut(&str));
}

/// The type of an argument's field.
macro_rules! argument_type {
    (must $type:ty) => { $type };
    (may $type:ty) => { Option<$type> };
    (or $type:ty) => { $type };
}

/// Reads an argument.
macro_rules! argument {
    ($fields:ident, must $name:ident: $type:ty) => {
        $fields.required::<$type>(stringify!($name))?
    };
    ($fields:ident, may $name:ident: $type:ty) => {
        $fields.optional::<$type>(stringify!($name))?
    };
    ($fields:ident, or $name:ident: $type:ty = $default:expr) => {
        $fields
            .optional::<$type>(stringify!($name))?
            .unwrap_or($default)
    };
}

/// Whether an argument must be there.
macro_rules! is_required {
    (must) => {
        true
    };
    (may) => {
        false
    };
    (or) => {
        false
    };
}

/// Commands: summary, name, permission and the arguments it is wanted on, arguments (that `must` be
/// there, `may` be, `or` have a default), result.
macro_rules! commands {
    ($(
        $(#[doc = $summary:literal])+
        $Name:ident $(<$life:lifetime>)? = $name:literal, $permission:ident($($on:ident),*) {
            $(
                $(#[doc = $argument_summary:literal])+
                $mode:ident $argument:ident: $type:ty $(= $default:expr)?,
            )*
        } -> {
            $(
                $(#[doc = $result_summary:literal])+
                $result:ident: $result_type:ident,
            )*
        }
    )*) => {$(
        $(#[doc = $summary])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $Name $(<$life>)? {
            $(
                $(#[doc = $argument_summary])+
                pub $argument: $crate::amaquet::command::table::argument_type!($mode $type),
            )*
        }

        impl<'a> $crate::amaquet::command::table::Arguments<'a> for $Name $(<$life>)? {
            const SPEC: $crate::amaquet::command::spec::Spec =
                $crate::amaquet::command::spec::Spec {
                    name: $name,
                    summary: concat!($($summary),+).trim_ascii(),
                    arguments: &[$(
                        $crate::amaquet::command::spec::ArgumentSpec {
                            name: stringify!($argument),
                            value_type: <$type as
                                $crate::amaquet::command::argument::Argument<'a>>::TYPE,
                            required: $crate::amaquet::command::table::is_required!($mode),
                            limits: <$type as
                                $crate::amaquet::command::argument::Argument<'a>>::LIMITS,
                            summary: concat!($($argument_summary),+).trim_ascii(),
                        },
                    )*],
                    result: &[$(
                        $crate::amaquet::command::spec::ResultSpec {
                            name: stringify!($result),
                            value_type: $crate::amaquet::command::spec::ValueType::$result_type,
                            summary: concat!($($result_summary),+).trim_ascii(),
                        },
                    )*],
                    permission: $crate::amaquet::command::spec::Permission::$permission,
                    on: &[$(stringify!($on)),*],
                };

            fn read(
                object: &$crate::amaquet::json::NotedObject<'a>,
                limits: &$crate::amaquet::command::argument::ArgumentLimits,
            ) -> Result<Self, $crate::amaquet::command::error::RequestError> {
                let specs = <Self as $crate::amaquet::command::table::Arguments<'a>>::SPEC;
                let _fields = $crate::amaquet::command::fields::Fields::of(
                    object.fields(), specs.arguments, limits,
                );
                Ok(Self {
                    $($argument: $crate::amaquet::command::table::argument!(
                        _fields, $mode $argument: $type $(= $default)?
                    ),)*
                })
            }

            fn tell_names(&self, _told: &mut dyn FnMut(&str)) {
                $($crate::amaquet::command::argument::Names::tell(&self.$on, _told);)*
            }
        }
    )*};
}

pub(super) use {argument, argument_type, commands, is_required};
