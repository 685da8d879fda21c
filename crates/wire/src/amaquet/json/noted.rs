//! Objects whose fields were noted while they were checked.

use std::borrow::Cow;

use super::scan::{self, FieldPlace};
use super::{Json, JsonError, JsonKind, text, utf8};

/// Fields that are noted: more than most commands have.
const NOTED_MAX: usize = 12;

/// An object. Its first fields are at hand; what is behind them is looked for again, so that an
/// object with a million fields costs no memory.
#[derive(Debug, Clone)]
pub struct NotedObject<'a> {
    json: Json<'a>,
    fields: [(&'a str, Json<'a>); NOTED_MAX],
    /// How many there are of these.
    noted: usize,
    /// Whether there are more.
    has_more: bool,
}

impl<'a> NotedObject<'a> {
    /// The object that these bytes are, with space around it or not; what it is instead, if it is
    /// none.
    ///
    /// # Errors
    /// See [`Json::parse`].
    pub fn parse(bytes: &'a [u8]) -> Result<Result<Self, JsonKind>, JsonError> {
        let all = utf8(bytes)?;
        let mut object = Self {
            json: Json::known(""),
            fields: [("", Json::known("")); NOTED_MAX],
            noted: 0,
            has_more: false,
        };
        let span = scan::whole(bytes, |(key, value): FieldPlace| {
            let (key, value) = (all.get(key), all.get(value));
            match object.fields.get_mut(object.noted) {
                Some(field) => {
                    *field = (
                        key.unwrap_or_default(),
                        Json::known(value.unwrap_or_default()),
                    );
                    object.noted += 1;
                }
                None => object.has_more = true,
            }
        })?;
        object.json = Json::known(all.get(span).unwrap_or_default());
        let kind = object.json.kind();
        Ok(if kind == JsonKind::Object {
            Ok(object)
        } else {
            Err(kind)
        })
    }

    /// Its fields, in the order they came.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> {
        let noted = self.fields.iter().take(self.noted);
        let noted = noted.map(|(key, value)| (text::unquote(key), *value));
        let more = self.json.as_object().filter(|_| self.has_more);
        noted.chain(more.into_iter().flatten().skip(self.noted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_that_a_walk_finds() {
        let nested =
            r#"{"a":{"b":[1,{"c":"}"}],"d":{}},"e":[{"f":1},[]], "g" : "x,\"y" ,"h":null}"#;
        let many = (0..40).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>();
        let exactly = many[..NOTED_MAX].join(",");
        for text in [
            "{}",
            " { } ",
            r#"{"a":1}"#,
            r#"{"\u0061":"\n","a":2}"#,
            nested,
            &format!("{{{exactly}}}"),
            &format!("{{{}}}", many.join(", ")),
        ] {
            let object = NotedObject::parse(text.as_bytes()).unwrap().unwrap();
            let walked: Vec<_> = Json::parse(text.as_bytes())
                .unwrap()
                .as_object()
                .unwrap()
                .collect();
            assert_eq!(object.fields().collect::<Vec<_>>(), walked, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_told() {
        for (text, kind) in [
            ("[{\"a\":1}]", JsonKind::Array),
            ("\"{}\"", JsonKind::String),
            ("7", JsonKind::Number),
        ] {
            let found = NotedObject::parse(text.as_bytes()).unwrap();
            assert_eq!(found.err(), Some(kind));
        }
        assert!(NotedObject::parse(b"{\"a\":1,}").is_err());
        assert!(NotedObject::parse(b"{\"a\":\xff}").is_err());
    }
}
