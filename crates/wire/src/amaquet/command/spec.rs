//! What the table says of a command.

/// A command, as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Its name: family and verb.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Its arguments.
    pub arguments: &'static [ArgumentSpec],
    /// The fields of its result.
    pub result: &'static [ResultSpec],
    /// What the caller must be allowed.
    pub permission: Permission,
    /// The arguments whose names it must be allowed on; without any: see [`Permission`].
    pub on: &'static [&'static str],
}

impl Spec {
    /// The part of its name before the dot.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.name.split('.').next().unwrap_or_default()
    }
}

/// An argument, as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentSpec {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub value_type: ValueType,
    /// It must be there.
    pub required: bool,
    /// What is allowed of its type; empty = all of it.
    pub limits: &'static str,
    /// What it means, with its default.
    pub summary: &'static str,
}

/// A field of a result, as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultSpec {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub value_type: ValueType,
    /// What it means.
    pub summary: &'static str,
}

/// The types of arguments and results (`server.commands`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// A text.
    String,
    /// `true` or `false`.
    Bool,
    /// An integer of 64 bits.
    I64,
    /// An integer of 64 bits, not below zero.
    U64,
    /// A double.
    Number,
    /// A payload.
    Payload,
    /// An array of payloads.
    Payloads,
    /// An array of texts.
    Strings,
    /// An array of messages.
    Messages,
    /// An object, an array of objects, or what the summary says.
    Object,
}

impl ValueType {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::String,
        Self::Bool,
        Self::I64,
        Self::U64,
        Self::Number,
        Self::Payload,
        Self::Payloads,
        Self::Strings,
        Self::Messages,
        Self::Object,
    ];

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Number => "number",
            Self::Payload => "payload",
            Self::Payloads => "payload[]",
            Self::Strings => "string[]",
            Self::Messages => "message[]",
            Self::Object => "object",
        }
    }

    /// Its name with its article, for messages.
    #[must_use]
    pub const fn described(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Bool => "a bool",
            Self::I64 => "an integer of 64 bits",
            Self::U64 => "an integer of 64 bits that is not below zero",
            Self::Number => "a number that a double holds exactly as it is written",
            Self::Payload => "a payload",
            Self::Payloads | Self::Strings | Self::Messages => "an array",
            Self::Object => "an object",
        }
    }
}

/// What a caller must be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Nothing.
    Nothing,
    /// `consume`; without a name: shows what the caller may read.
    Read,
    /// `produce`.
    Write,
    /// `admin`; without a name: on `*`.
    Admin,
}

impl Permission {
    /// Its letter in the table.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Nothing => "-",
            Self::Read => "r",
            Self::Write => "w",
            Self::Admin => "a",
        }
    }
}
