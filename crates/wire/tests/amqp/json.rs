//! Between the values of the codec and the JSON of the published frames.

use serde_json::{Map, Value as J, json};
use tanda_wire::amqp::{
    Array, ArrayWriter, LongStr, PropertyValues, ShortStr, Table, TableWriter, Value,
};

/// A value that the JSON of the published frames can hold.
pub(crate) trait Json<'v>: Sized {
    fn to_json(&self) -> J;
    fn from_json(value: &'v J) -> Self;
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    assert_eq!(text.len() % 2, 0, "{text} is not hex");
    let pair = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(pair).collect()
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Json<'_> for $ty {
            fn to_json(&self) -> J {
                json!(self)
            }

            fn from_json(value: &J) -> Self {
                Self::try_from(value.as_u64().unwrap()).unwrap()
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

impl Json<'_> for bool {
    fn to_json(&self) -> J {
        json!(self)
    }

    fn from_json(value: &J) -> Self {
        value.as_bool().unwrap()
    }
}

impl<'v> Json<'v> for ShortStr<'v> {
    fn to_json(&self) -> J {
        json!(self.to_str().unwrap())
    }

    fn from_json(value: &'v J) -> Self {
        ShortStr::new(value.as_str().unwrap().as_bytes()).unwrap()
    }
}

impl<'v> Json<'v> for LongStr<'v> {
    fn to_json(&self) -> J {
        json!(self.to_str().unwrap())
    }

    fn from_json(value: &'v J) -> Self {
        LongStr::new(value.as_str().unwrap().as_bytes()).unwrap()
    }
}

impl<'v> Json<'v> for Table<'v> {
    fn to_json(&self) -> J {
        let entry = |entry: Result<tanda_wire::amqp::table::Entry<'_>, _>| {
            let entry = entry.unwrap();
            let (tag, value) = value_json(&entry.value, entry.raw_value);
            json!([entry.key.to_str().unwrap(), tag, value])
        };
        self.iter().map(entry).collect()
    }

    fn from_json(value: &'v J) -> Self {
        let mut entries = Vec::new();
        write_entries(&mut TableWriter::new(&mut entries), value);
        Table::new(entries.leak()).unwrap()
    }
}

fn array_json(array: Array<'_>) -> J {
    let item = |item: Result<tanda_wire::amqp::table::Item<'_>, _>| {
        let item = item.unwrap();
        let (tag, value) = value_json(&item.value, item.raw);
        json!([tag, value])
    };
    array.iter().map(item).collect()
}

fn value_json(value: &Value<'_>, raw: &[u8]) -> (String, J) {
    let json = match value {
        Value::Bool(value) => json!(value),
        Value::I8(value) => json!(value),
        Value::U8(value) => json!(value),
        Value::I16(value) => json!(value),
        Value::U16(value) => json!(value),
        Value::I32(value) => json!(value),
        Value::U32(value) => json!(value),
        Value::I64(value) => json!(value),
        Value::F32(value) => json!(value),
        Value::F64(value) => json!(value),
        Value::Decimal { scale, value } => json!([scale, value]),
        Value::LongString(bytes) => bytes.to_json(),
        Value::Bytes(bytes) => json!(hex(bytes.as_bytes())),
        Value::Array(array) => array_json(*array),
        Value::Timestamp(value) => json!(value),
        Value::Table(table) => table.to_json(),
        Value::Void => J::Null,
    };
    (char::from(raw[0]).to_string(), json)
}

fn write_entries(writer: &mut TableWriter<'_>, entries: &J) {
    for entry in entries.as_array().unwrap() {
        let key = ShortStr::from_json(&entry[0]);
        match entry[1].as_str().unwrap() {
            "F" => writer.table(key, |inner| write_entries(inner, &entry[2])),
            "A" => writer.array(key, |inner| write_items(inner, &entry[2])),
            "L" => writer.raw_value(key, &spelled_l(&entry[2])),
            tag => writer.value(key, &plain(tag, &entry[2])),
        };
    }
}

fn write_items(writer: &mut ArrayWriter<'_>, items: &J) {
    for item in items.as_array().unwrap() {
        match item[0].as_str().unwrap() {
            "F" => writer.table(|inner| write_entries(inner, &item[1])),
            "A" => writer.array(|inner| write_items(inner, &item[1])),
            "L" => writer.raw(&spelled_l(&item[1])),
            tag => writer.value(&plain(tag, &item[1])),
        };
    }
}

/// The other spelling of a 64-bit number, which a writer can only copy.
fn spelled_l(value: &J) -> Vec<u8> {
    let mut raw = vec![b'L'];
    raw.extend_from_slice(&value.as_i64().unwrap().to_be_bytes());
    raw
}

fn signed<T: TryFrom<i64, Error: std::fmt::Debug>>(value: &J) -> T {
    T::try_from(value.as_i64().unwrap()).unwrap()
}

fn plain<'v>(tag: &str, value: &'v J) -> Value<'v> {
    match tag {
        "t" => Value::Bool(Json::from_json(value)),
        "b" => Value::I8(signed(value)),
        "B" => Value::U8(Json::from_json(value)),
        "s" => Value::I16(signed(value)),
        "u" => Value::U16(Json::from_json(value)),
        "I" => Value::I32(signed(value)),
        "i" => Value::U32(Json::from_json(value)),
        "l" => Value::I64(signed(value)),
        "f" => Value::F32(value.to_string().parse().unwrap()),
        "d" => Value::F64(value.as_f64().unwrap()),
        "D" => Value::Decimal {
            scale: Json::from_json(&value[0]),
            value: signed(&value[1]),
        },
        "S" => Value::LongString(Json::from_json(value)),
        "x" => {
            let bytes: &'static [u8] = unhex(value.as_str().unwrap()).leak();
            Value::Bytes(LongStr::new(bytes).unwrap())
        }
        "T" => Value::Timestamp(Json::from_json(value)),
        "V" => Value::Void,
        other => unreachable!("the file has a tag {other}"),
    }
}

macro_rules! property_json {
    ($( $name:ident ),* $(,)?) => {
        impl<'v> Json<'v> for PropertyValues<'v> {
            fn to_json(&self) -> J {
                let Self { $( $name ),* } = self;
                let mut object = Map::new();
                $( if let Some(value) = $name {
                    object.insert(stringify!($name).into(), value.to_json());
                } )*
                J::Object(object)
            }

            fn from_json(value: &'v J) -> Self {
                Self { $( $name: value.get(stringify!($name)).map(Json::from_json) ),* }
            }
        }
    };
}

property_json!(
    content_type,
    content_encoding,
    headers,
    delivery_mode,
    priority,
    correlation_id,
    reply_to,
    expiration,
    message_id,
    timestamp,
    message_type,
    user_id,
    app_id,
    cluster_id,
);
