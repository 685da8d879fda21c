//! Maps, lists, sets and rankings.

use tanda_engine::{
    AddedPart, Datum, DatumForm, KeyAnswer, KeyError, KeyRead, KeyType, ListSide, Places,
    RankingPart, RankingSpan, RemovedPart,
};

use super::world::{
    Outcome, World, add, bool, count, datum, field, item, members, pop, push, range, remove, score,
};

#[test]
fn maps_hold_fields() {
    let mut w = World::new();
    assert_eq!(w.write("m", field("b", "1")), bool(true));
    assert_eq!(w.write("m", field("b", "2")), bool(false));
    assert_eq!(w.write("m", field("", "empty")), bool(true));
    let got = |text: &str| Ok(KeyAnswer::Datum(datum(text)));
    assert_eq!(w.read("m", KeyRead::Field("b".into())), got("2"));
    assert_eq!(
        w.read("m", KeyRead::Field("x".into())),
        Err(KeyError::NotFound)
    );
    assert_eq!(w.read("m", KeyRead::Length(KeyType::Map)), count(2));
    let all = vec![("".into(), datum("empty")), ("b".into(), datum("2"))];
    assert_eq!(w.read("m", KeyRead::Fields), Ok(KeyAnswer::Fields(all)));
    let gone = |field: &str| remove(RemovedPart::Field(field.into()));
    assert_eq!(w.write("m", gone("b")), bool(true));
    assert_eq!(w.write("m", gone("b")), bool(false));
    assert_eq!(w.write("m", gone("")), bool(true));
    assert_eq!(
        w.read("m", KeyRead::Exists),
        bool(false),
        "empty ones vanish"
    );
}

#[test]
fn fields_are_added_to() {
    let mut w = World::new();
    let to = |field: &str, by| {
        let field = field.into();
        add(AddedPart::ToField { field, by })
    };
    assert_eq!(w.write("m", to("n", 2)), Ok(KeyAnswer::Integer(2)));
    assert_eq!(w.write("m", to("n", -5)), Ok(KeyAnswer::Integer(-3)));
    let json = Ok(KeyAnswer::Datum(Datum::new(DatumForm::Json, b"-3")));
    assert_eq!(w.read("m", KeyRead::Field("n".into())), json);
    let overflow = Err(KeyError::Overflow { value: -3 });
    assert_eq!(w.write("m", to("n", i64::MIN)), overflow);
    w.did("m", field("t", "1"));
    let found = KeyType::Map;
    assert_eq!(w.write("m", to("t", 1)), Err(KeyError::WrongType { found }));
    for other in ["1.0", "18446744073709551615", "\"1\"", "null"] {
        let value = Datum::new(DatumForm::Json, other.as_bytes());
        let field = "o".into();
        w.did("m", add(AddedPart::Field { field, value }));
        assert_eq!(w.write("m", to("o", 1)), Err(KeyError::WrongType { found }));
    }
}

fn items(w: &mut World, start: i64, stop: i64) -> String {
    match w.read("l", KeyRead::Items(Places { start, stop })) {
        Ok(KeyAnswer::Items(items)) => items.iter().map(super::world::text).collect(),
        other => format!("{other:?}"),
    }
}

#[test]
fn lists_grow_and_shrink_at_both_ends() {
    let mut w = World::new();
    assert_eq!(w.write("l", push(&[], ListSide::Back)), count(0));
    assert_eq!(w.write("l", push(&["c", "d"], ListSide::Back)), count(2));
    assert_eq!(w.write("l", push(&["b", "a"], ListSide::Front)), count(4));
    assert_eq!(items(&mut w, 0, -1), "abcd");
    assert_eq!(items(&mut w, 1, 2), "bc");
    assert_eq!(items(&mut w, -2, 100), "cd");
    assert_eq!(items(&mut w, -100, 0), "a");
    assert_eq!(items(&mut w, 3, 1), "");
    assert_eq!(items(&mut w, 4, 9), "");
    assert_eq!(items(&mut w, i64::MIN, i64::MAX), "abcd");
    assert_eq!(w.read("l", KeyRead::Length(KeyType::List)), count(4));
    assert_eq!(item(&w.does(pop("l", ListSide::Front, 0))), "a");
    assert_eq!(item(&w.does(pop("l", ListSide::Back, 0))), "d");
    assert_eq!(w.write("l", push(&["x"], ListSide::Front)), count(3));
    assert_eq!(items(&mut w, 0, -1), "xbc");
    for left in ["x", "b", "c"] {
        assert_eq!(item(&w.does(pop("l", ListSide::Front, 0))), left);
    }
    assert_eq!(
        w.does(pop("l", ListSide::Front, 0)),
        Err(KeyError::NotFound)
    );
    assert_eq!(w.read("l", KeyRead::Exists), bool(false));
}

#[test]
fn lists_are_trimmed() {
    let mut w = World::new();
    let trim = |start, stop| remove(RemovedPart::ItemsBut(Places { start, stop }));
    w.did("l", push(&["a", "b", "c", "d", "e"], ListSide::Back));
    assert_eq!(w.write("l", trim(0, -1)), count(5));
    assert_eq!(w.write("l", trim(1, -2)), count(3));
    assert_eq!(items(&mut w, 0, -1), "bcd");
    assert_eq!(w.write("l", trim(-1, -1)), count(1));
    assert_eq!(items(&mut w, 0, -1), "d");
    w.did("l", push(&["z"], ListSide::Front));
    assert_eq!(items(&mut w, 0, -1), "zd");
    assert_eq!(w.write("l", trim(5, 9)), count(0));
    assert_eq!(w.read("l", KeyRead::Exists), bool(false));
}

#[test]
fn sets_hold_each_member_once() {
    let mut w = World::new();
    let more = |names: &[&str]| add(AddedPart::Members(members(names)));
    assert_eq!(w.write("s", more(&[])), count(0));
    assert_eq!(w.read("s", KeyRead::Exists), bool(false));
    assert_eq!(w.write("s", more(&["b", "a", "b"])), count(2));
    assert_eq!(w.write("s", more(&["c", "a"])), count(1));
    let all = Ok(KeyAnswer::Members(members(&["a", "b", "c"])));
    assert_eq!(w.read("s", KeyRead::Members), all);
    assert_eq!(w.read("s", KeyRead::Contains("b".into())), bool(true));
    assert_eq!(w.read("s", KeyRead::Contains("x".into())), bool(false));
    assert_eq!(w.read("s", KeyRead::Length(KeyType::Set)), count(3));
    let fewer = |names: &[&str]| remove(RemovedPart::Members(members(names)));
    assert_eq!(w.write("s", fewer(&["x", "a", "a"])), count(1));
    assert_eq!(w.write("s", fewer(&["b", "c"])), count(2));
    assert_eq!(w.read("s", KeyRead::Exists), bool(false));
}

fn ranked(outcome: Outcome) -> String {
    let Ok(KeyAnswer::Ranked(members)) = outcome else {
        return format!("{outcome:?}");
    };
    let told = members.iter().map(|(name, score)| format!("{name}{score}"));
    told.collect::<Vec<_>>().join(" ")
}

#[test]
fn rankings_are_in_order() {
    let mut w = World::new();
    for (member, at, created) in [
        ("b", 2.0, true),
        ("a", 2.0, true),
        ("c", -1.5, true),
        ("d", 9.0, true),
        ("d", 3.0, false),
    ] {
        assert_eq!(w.write("r", score(member, at)), bool(created));
    }
    assert_eq!(w.write("r", score("zero", -0.0)), bool(true));
    let zero = w.read("r", KeyRead::Score("zero".into()));
    assert!(matches!(zero, Ok(KeyAnswer::Score(at)) if at.is_sign_positive()));
    let rank = |member: &str, reverse| KeyRead::Rank {
        member: member.into(),
        reverse,
    };
    assert_eq!(w.read("r", rank("c", false)), count(0));
    assert_eq!(w.read("r", rank("a", false)), count(2));
    assert_eq!(w.read("r", rank("b", false)), count(3));
    assert_eq!(w.read("r", rank("d", true)), count(0));
    assert_eq!(w.read("r", rank("x", true)), Err(KeyError::NotFound));
    assert_eq!(
        w.read("r", KeyRead::Score("d".into())),
        Ok(KeyAnswer::Score(3.0))
    );
    assert_eq!(
        w.read("r", KeyRead::Score("x".into())),
        Err(KeyError::NotFound)
    );
    let all = Places { start: 0, stop: -1 };
    assert_eq!(ranked(w.read("r", range(all))), "c-1.5 zero0 a2 b2 d3");
    let part = |span, reverse, limit| {
        KeyRead::Range(RankingPart {
            span,
            reverse,
            limit,
        })
    };
    let places = |start, stop| RankingSpan::Places(Places { start, stop });
    let scores = |min, max| RankingSpan::Scores { min, max };
    for (span, reverse, limit, told) in [
        (places(0, 1), true, None, "d3 b2"),
        (places(-2, -1), false, None, "b2 d3"),
        (places(-2, -1), true, None, "zero0 c-1.5"),
        (places(0, -1), false, Some(2), "c-1.5 zero0"),
        (places(0, -1), true, Some(0), ""),
        (scores(0.0, 2.0), false, None, "zero0 a2 b2"),
        (scores(0.0, 2.0), true, Some(2), "b2 a2"),
        (scores(4.0, 5.0), false, None, ""),
        (scores(2.0, 0.0), false, None, ""),
    ] {
        assert_eq!(
            ranked(w.read("r", part(span, reverse, limit))),
            told,
            "{span:?}"
        );
    }
    let gone = |member: &str| remove(RemovedPart::Score(member.into()));
    for member in ["a", "b", "c", "d", "zero"] {
        assert_eq!(w.write("r", gone(member)), bool(true));
        assert_eq!(w.write("r", gone(member)), bool(false));
    }
    assert_eq!(w.read("r", KeyRead::Exists), bool(false));
}
