//! Arrays and objects, entry by entry.

use std::borrow::Cow;

use super::scan::Scanner;
use super::{Json, JsonKind, text};

/// The items of an array.
#[derive(Debug, Clone)]
pub struct Array<'a>(Entries<'a>);

/// The fields of an object, in the order they came.
#[derive(Debug, Clone)]
pub struct Object<'a>(Entries<'a>);

impl<'a> Json<'a> {
    /// The bool that it is, if it is one.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Its items, if it is an array.
    #[must_use]
    pub fn as_array(self) -> Option<Array<'a>> {
        (self.kind() == JsonKind::Array).then(|| Array(Entries::new(self.0)))
    }

    /// Its fields, if it is an object.
    #[must_use]
    pub fn as_object(self) -> Option<Object<'a>> {
        (self.kind() == JsonKind::Object).then(|| Object(Entries::new(self.0)))
    }
}

impl<'a> Iterator for Array<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        self.0.begin()?;
        self.0.value()
    }
}

impl<'a> Iterator for Object<'a> {
    type Item = (Cow<'a, str>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.begin()?;
        let start = self.0.at;
        self.0.step(text::skip)?;
        let key = text::unquote(self.0.since(start)?);
        self.0.step(|scanner| scanner.expect(b':'))?;
        Some((key, self.0.value()?))
    }
}

/// A walk over what is between the brackets of a checked text.
#[derive(Debug, Clone)]
struct Entries<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Entries<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Goes to the start of the next entry; `None` behind the last one.
    fn begin(&mut self) -> Option<()> {
        let mut scanner = self.scanner();
        scanner.skip_space();
        match scanner.peek() {
            Some(b'[' | b'{') if self.at == 0 => {
                scanner.at += 1;
                scanner.skip_space();
                if let Some(b']' | b'}') = scanner.peek() {
                    return None;
                }
            }
            Some(b',') => {
                scanner.at += 1;
                scanner.skip_space();
            }
            _ => return None,
        }
        self.at = scanner.at;
        Some(())
    }

    fn value(&mut self) -> Option<Json<'a>> {
        self.step(|scanner| {
            scanner.skip_space();
            Ok(())
        })?;
        let start = self.at;
        self.step(Scanner::value)?;
        self.since(start).map(Json::known)
    }

    /// The text was checked: no step fails.
    fn step(
        &mut self,
        step: impl FnOnce(&mut Scanner<'a>) -> Result<(), super::JsonError>,
    ) -> Option<()> {
        let mut scanner = self.scanner();
        step(&mut scanner).ok()?;
        self.at = scanner.at;
        Some(())
    }

    const fn scanner(&self) -> Scanner<'a> {
        Scanner {
            bytes: self.text.as_bytes(),
            at: self.at,
        }
    }

    fn since(&self, start: usize) -> Option<&'a str> {
        self.text.get(start..self.at)
    }
}
