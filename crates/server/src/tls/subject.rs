//! Whom a certificate is about: the name in it, as a user's name.

use std::fmt::Write;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::config::CertificateName;

/// Longest name, in bytes: that of a user.
const NAME_BYTES_MAX: usize = 255;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;

const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// Names of attributes (RFC 4514 section 3, and those that certificates often have), by the bytes
/// of their object ids.
const ATTRIBUTES: &[(&[u8], &str)] = &[
    (COMMON_NAME, "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "SERIALNUMBER"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "T"),
    (&[0x55, 4, 42], "GN"),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1],
        "UID",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25],
        "DC",
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1],
        "EMAILADDRESS",
    ),
];

/// The name that a certificate gives its holder. `None` when there is none that could be a user's.
pub(crate) fn name_of(certificate: &CertificateDer<'_>, which: CertificateName) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let attributes = attributes_of(certificate.subject())?;
    let name = match which {
        CertificateName::CommonName => common_name(&attributes)?,
        CertificateName::DistinguishedName => distinguished_name(&attributes),
    };
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len());
    (is_name && !name.chars().any(char::is_control)).then_some(name)
}

/// One attribute of a subject.
#[derive(Debug, PartialEq, Eq)]
struct Attribute<'a> {
    /// Which of the sets it stands in; mostly each has its own.
    set: usize,
    id: &'a [u8],
    value: &'a str,
}

/// Several are nobody's.
fn common_name(attributes: &[Attribute<'_>]) -> Option<String> {
    let mut names = attributes.iter().filter(|it| it.id == COMMON_NAME);
    let name = names.next()?;
    names.next().is_none().then(|| name.value.to_owned())
}

/// RFC 4514, section 2: the last set first.
fn distinguished_name(attributes: &[Attribute<'_>]) -> String {
    let mut text = String::new();
    let sets = attributes.chunk_by(|a, b| a.set == b.set);
    for set in sets.collect::<Vec<_>>().into_iter().rev() {
        for (at, attribute) in set.iter().enumerate() {
            if !text.is_empty() {
                text.push(if at == 0 { ',' } else { '+' });
            }
            let known = ATTRIBUTES.iter().find(|(id, _)| *id == attribute.id);
            match known {
                Some((_, name)) => text.push_str(name),
                None => text.push_str(&dotted(attribute.id)),
            }
            text.push('=');
            escape(&mut text, attribute.value);
        }
    }
    text
}

/// RFC 4514, section 2.4.
fn escape(text: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        let is_edge = c == ' ' && (at == 0 || at == last) || c == '#' && at == 0;
        if is_edge || "\"+,;<>\\".contains(c) {
            text.push('\\');
        }
        text.push(c);
    }
}

/// An object id in its usual form.
fn dotted(id: &[u8]) -> String {
    let mut text = String::new();
    let mut number = 0_u64;
    for byte in id {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        let written = if text.is_empty() {
            let first = (number / 40).min(2);
            write!(text, "{first}.{}", number - first * 40)
        } else {
            write!(text, ".{number}")
        };
        debug_assert!(written.is_ok(), "writing to a String does not fail");
        number = 0;
    }
    text
}

/// Reads what stands in the sequence of a subject. `None` when it is none, or a value is of a kind
/// of text that nobody should use any more.
fn attributes_of(subject: &[u8]) -> Option<Vec<Attribute<'_>>> {
    let mut attributes = Vec::new();
    let mut sets = subject;
    let mut number = 0;
    while !sets.is_empty() {
        let mut set = take(&mut sets, SET)?;
        while !set.is_empty() {
            let mut pair = take(&mut set, SEQUENCE)?;
            let id = take(&mut pair, OBJECT_ID)?;
            let (kind, value) = take_any(&mut pair)?;
            if ![UTF8_STRING, PRINTABLE_STRING, IA5_STRING].contains(&kind) {
                return None;
            }
            attributes.push(Attribute {
                set: number,
                id,
                value: std::str::from_utf8(value).ok()?,
            });
        }
        number += 1;
    }
    Some(attributes)
}

/// Takes a value of one kind off the front.
fn take<'a>(input: &mut &'a [u8], kind: u8) -> Option<&'a [u8]> {
    let (found, value) = take_any(input)?;
    (found == kind).then_some(value)
}

/// Takes a value of DER off the front: its tag and contents.
fn take_any<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (tag, rest) = input.split_first()?;
    let (first, mut rest) = rest.split_first()?;
    let len = match usize::from(*first) {
        short @ 0..0x80 => short,
        long => {
            let (digits, after) = rest.split_at_checked(long - 0x80)?;
            if digits.is_empty() || digits.len() > 2 {
                return None;
            }
            rest = after;
            digits
                .iter()
                .fold(0, |len, digit| len << 8 | usize::from(*digit))
        }
    };
    let (value, after) = rest.split_at_checked(len)?;
    *input = after;
    Some((*tag, value))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn named(pairs: &[(DnType, &str)], which: CertificateName) -> Option<String> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in pairs {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        name_of(certificate.der(), which)
    }

    #[test]
    fn a_certificate_has_one_common_name_and_a_whole_name() {
        let pairs = [
            (DnType::CountryName, "ES"),
            (DnType::OrganizationName, "Huerta, S.L."),
            (DnType::CommonName, "anna"),
        ];
        let common = named(&pairs, CertificateName::CommonName);
        assert_eq!(common.as_deref(), Some("anna"));
        let whole = named(&pairs, CertificateName::DistinguishedName);
        assert_eq!(whole.as_deref(), Some(r"CN=anna,O=Huerta\, S.L.,C=ES"));
        assert_eq!(named(&pairs[..2], CertificateName::CommonName), None);
        let long = "x".repeat(256);
        let pairs = [(DnType::CommonName, long.as_str())];
        assert_eq!(named(&pairs, CertificateName::CommonName), None);
        let pairs = [(DnType::CommonName, "a\nb")];
        assert_eq!(named(&pairs, CertificateName::CommonName), None);
    }

    #[test]
    fn two_common_names_are_nobodys() {
        let one = |value: &'static str| Attribute {
            set: 0,
            id: COMMON_NAME,
            value,
        };
        assert_eq!(common_name(&[one("a"), one("b")]), None);
        assert_eq!(distinguished_name(&[one("a"), one(" b#")]), r"CN=a+CN=\ b#");
    }

    #[test]
    fn damaged_names_are_nobodys() {
        let whole = [
            0x31, 12, 0x30, 10, 6, 3, 0x55, 4, 3, 0x0c, 3, b'a', b'b', b'c',
        ];
        assert!(attributes_of(&whole).is_some());
        for len in 1..whole.len() {
            assert_eq!(attributes_of(&whole[..len]), None, "{len}");
        }
        let mut other = whole;
        other[9] = 0x14;
        assert_eq!(attributes_of(&other), None);
        assert_eq!(dotted(&[0x2a, 0x86, 0x48]), "1.2.840");
    }
}
