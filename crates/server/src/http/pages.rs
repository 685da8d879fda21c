//! Queries of requests, and long lists in pages, as RabbitMQ's management has them.

use std::borrow::Cow;

use axum::http::StatusCode;
use regex::RegexBuilder;
use serde_json::{Value, json};

use super::problem::Problem;

/// Entries of a page at most, and when nothing is said.
const PAGE_SIZE_MAX: usize = 500;
const PAGE_SIZE: usize = 100;
/// Memory that an expression for names may take.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// The parameters of a request.
#[derive(Debug, Default)]
pub(super) struct Query<'a> {
    fields: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    /// Reads `a=b&c=d`, percent-encoded.
    pub(super) fn read(query: Option<&'a str>) -> Result<Self, Problem> {
        let mut fields = Vec::new();
        for field in query.unwrap_or_default().split('&') {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            if !key.is_empty() {
                fields.push((key, decoded(value)?));
            }
        }
        Ok(Self { fields })
    }

    fn text(&self, key: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(name, _)| *name == key);
        found.map(|(_, value)| &**value)
    }

    /// Whether a parameter is `true`; it need not be there.
    pub(super) fn is(&self, key: &str) -> Result<bool, Problem> {
        match self.text(key) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(bad_query(format!("{key} is {other:?}, not true or false"))),
        }
    }

    fn number(&self, key: &str) -> Result<Option<usize>, Problem> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number @ 1..) => Ok(Some(number)),
            Ok(0) | Err(_) => Err(bad_query(format!(
                "{key} is {text:?}, not a number from 1 on"
            ))),
        }
    }
}

/// What is shown of a list.
#[derive(Debug)]
pub(super) struct Pages {
    page: Option<usize>,
    size: usize,
    filter: Filter,
}

#[derive(Debug)]
enum Filter {
    All,
    Contains(String),
    Matches(regex::Regex),
}

impl Pages {
    /// Reads `page`, `page_size`, `name` and `use_regex`.
    pub(super) fn read(query: Option<&str>) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        let filter = match query.text("name") {
            None | Some("") => Filter::All,
            Some(name) if query.is("use_regex")? => {
                let mut builder = RegexBuilder::new(name);
                let expression = builder.size_limit(EXPRESSION_BYTES_MAX).build();
                Filter::Matches(expression.map_err(|error| {
                    bad_query(format!("name is no regular expression: {error}"))
                })?)
            }
            Some(name) => Filter::Contains(name.to_lowercase()),
        };
        let size = query.number("page_size")?.unwrap_or(PAGE_SIZE);
        if size > PAGE_SIZE_MAX {
            return Err(bad_query(format!(
                "page_size is {size}, at most {PAGE_SIZE_MAX} are allowed"
            )));
        }
        Ok(Self {
            page: query.number("page")?,
            size,
            filter,
        })
    }

    /// Whether something of this name is to be shown.
    fn shows(&self, name: &str) -> bool {
        match &self.filter {
            Filter::All => true,
            Filter::Contains(part) => name.to_lowercase().contains(part),
            Filter::Matches(expression) => expression.is_match(name),
        }
    }

    /// The whole list, or the page that was asked for. Entries have a `name`.
    pub(super) fn of(&self, mut all: Vec<Value>) -> Result<Value, Problem> {
        let total = all.len();
        all.retain(|it| {
            let name = it.get("name").and_then(Value::as_str);
            self.shows(name.unwrap_or_default())
        });
        let Some(page) = self.page else {
            return Ok(Value::Array(all));
        };
        let filtered = all.len();
        let pages = filtered.div_ceil(self.size).max(1);
        if page > pages {
            return Err(bad_query(format!("page is {page}, there are {pages}")));
        }
        let items: Vec<Value> = all
            .into_iter()
            .skip((page - 1) * self.size)
            .take(self.size)
            .collect();
        Ok(json!({
            "total_count": total,
            "filtered_count": filtered,
            "item_count": items.len(),
            "page": page,
            "page_size": self.size,
            "page_count": pages,
            "items": items,
        }))
    }
}

fn decoded(text: &str) -> Result<Cow<'_, str>, Problem> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let value = digit().and_then(|high| Some(high * 16 + digit()?));
                let value = value.and_then(|value| u8::try_from(value).ok());
                value.ok_or_else(|| bad_query(format!("{text:?} is not percent-encoded")))?
            }
            other => other,
        });
    }
    match String::from_utf8(out) {
        Ok(text) => Ok(Cow::Owned(text)),
        Err(_) => Err(bad_query(format!("{text:?} is not percent-encoded UTF-8"))),
    }
}

pub(super) fn bad_query(message: String) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "bad_query",
        message,
        "docs/http-api.md says which parameters a path takes",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<Value> {
        names.iter().map(|name| json!({ "name": name })).collect()
    }

    fn shown(query: &str, names: &[&str]) -> Value {
        Pages::read(Some(query)).unwrap().of(list(names)).unwrap()
    }

    #[test]
    fn a_list_is_whole_or_comes_in_pages() {
        let names = ["a", "b", "c"];
        assert_eq!(shown("", &names), Value::Array(list(&names)));
        let second = shown("page=2&page_size=2", &names);
        let expected = json!({
            "total_count": 3, "filtered_count": 3, "item_count": 1, "page": 2, "page_size": 2,
            "page_count": 2, "items": [{"name": "c"}],
        });
        assert_eq!(second, expected);
        let empty = shown("page=1", &[]);
        assert_eq!(
            (&empty["page_count"], &empty["items"]),
            (&json!(1), &json!([]))
        );
    }

    #[test]
    fn names_are_filtered_by_a_part_or_an_expression() {
        let names = ["Orders.new", "orders.old", "mail +1"];
        let those = |query: &str| shown(query, &names);
        assert_eq!(those("name=ORDERS"), json!(list(&names[..2])));
        assert_eq!(those("name=mail%20%2B1"), json!(list(&names[2..])));
        assert_eq!(those("name=mail+%2b"), json!(list(&names[2..])));
        let query = "name=%5E.*%5C.new%24&use_regex=true&page=1";
        let page = those(query);
        assert_eq!(page["items"], json!(list(&names[..1])));
        assert_eq!(
            (&page["total_count"], &page["filtered_count"]),
            (&json!(3), &json!(1))
        );
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for query in [
            "page=0",
            "page=x",
            "page_size=501",
            "page=2",
            "name=%",
            "name=%zz",
            "name=%ff",
            "name=(&use_regex=true",
            "name=a&use_regex=yes",
        ] {
            let refused = Pages::read(Some(query)).and_then(|pages| pages.of(Vec::new()));
            assert!(refused.is_err(), "{query}");
        }
    }
}
