//! Messages of other doors as Fila delivers them: properties and headers become texts.

use std::borrow::Cow;

use tanda_engine::{Content, DeliveryBatch, DeliveryItem, Form};

/// The content of an item in Fila's layout. Its own are the bytes that came.
#[inline]
pub(crate) fn to_fila<'a>(batch: &'a DeliveryBatch, item: &DeliveryItem) -> Cow<'a, [u8]> {
    let bytes = batch.content(item);
    match item.form {
        Form::Fila => Cow::Borrowed(bytes),
        Form::Amqp | Form::Fire => Content::new(item.form, bytes).in_fila_layout(),
    }
}
