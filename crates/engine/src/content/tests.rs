use super::*;

#[test]
fn attributes_follow_the_payload_and_are_not_part_of_it() {
    let plain = b"\0\x01\0\x01h\0\x02vv\0\0\0\x03abc";
    let view = |bytes| Content::new(Form::Fila, bytes);
    let content = view(plain);
    assert_eq!(content.payload(), Ok(&b"abc"[..]));
    assert_eq!(content.without_attributes(), plain);
    assert_eq!(content.attributes().count(), 0);
    assert_eq!(content.exchange(), "");
    assert_eq!(content.properties(), b"");
    let with = [&plain[..], b"\0\x02\0\x01a\0\x011\0\x01b\0\0"].concat();
    let content = Content::new(Form::Fila, &with);
    assert_eq!(content.without_attributes(), plain);
    assert_eq!(content.payload(), Ok(&b"abc"[..]));
    assert_eq!(content.header(b"h").as_deref(), Some(&b"vv"[..]));
    assert_eq!(content.attribute(b"a"), Some(&b"1"[..]));
    assert_eq!(content.attribute(b"b"), Some(&b""[..]));
    assert_eq!(content.attribute(b"h"), None);
    for len in 0..plain.len() {
        let cut = Content::new(Form::Fila, &plain[..len]);
        assert_eq!(cut.without_attributes(), &plain[..len]);
        assert_eq!(cut.attributes().count(), 0);
    }
}

#[test]
fn an_envelope_is_read_and_one_that_is_cut_short_is_not() {
    let plain = b"\x02ex\x03a.b\0\0\0\x02\0\0\0\0\0\x03abc";
    for form in [Form::Amqp, Form::Fire] {
        let content = Content::new(form, plain);
        assert_eq!(content.exchange(), "ex");
        assert_eq!(content.routing_key(), "a.b");
        assert_eq!(content.properties(), b"\0\0");
        assert_eq!(content.payload(), Ok(&b"abc"[..]));
        assert_eq!(content.without_attributes(), plain);
        assert_eq!(content.attributes_at(), Some(plain.len()));
        let with = [&plain[..], b"\0\x01\0\x01a\0\x011"].concat();
        let with = Content::new(form, &with);
        assert_eq!(with.payload(), Ok(&b"abc"[..]));
        assert_eq!(with.without_attributes(), plain);
        assert_eq!(with.attribute(b"a"), Some(&b"1"[..]));
        for len in 0..plain.len() {
            let cut = Content::new(form, &plain[..len]);
            assert_eq!(cut.payload(), Err(ContentError));
            assert_eq!(cut.exchange(), "");
            assert_eq!(cut.without_attributes(), &plain[..len]);
            let known = len >= plain.len() - b"abc".len();
            assert_eq!(cut.attributes_at(), known.then_some(plain.len()));
        }
    }
}
