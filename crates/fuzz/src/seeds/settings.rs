//! Inputs to begin with of `config_load`.

use tanda_server::config::OPTIONS;

use super::{Seed, byte_of, seed, short};
use crate::config_load::{Part, VALUES};

const TARGET: &str = "config_load";

pub(super) fn all() -> Vec<Seed> {
    let part = |part: Part| byte_of(&Part::ALL, &part);
    let mut seeds = Vec::new();
    let mut whole = Vec::new();
    for (at, spec) in (0_u8..).zip(OPTIONS) {
        // By default, and at its bounds in the environment and as a flag.
        whole.extend([part(Part::Line), at, 0, 0]);
        let input = [
            [part(Part::Line), at, 0, 0],
            [part(Part::Env), at, 1, 0],
            [part(Part::Flag), at, 2, 0],
        ];
        seeds.push(seed(
            TARGET,
            &format!("option-{}", spec.key),
            input.concat(),
        ));
    }
    seeds.push(seed(TARGET, "defaults", whole));
    for (at, value) in (3_u8..).zip(VALUES) {
        let all = (0_u8..).zip(OPTIONS);
        let lines = all.flat_map(|(option, _)| [part(Part::Line), option, option % 2, at]);
        seeds.push(seed(TARGET, &format!("value-{value}"), lines.collect()));
    }
    let texts: [&str; 12] = [
        "fila = \"127.0.0.1:1\"\n[limits]\nmax_body = \"1MiB\"\nmax_frame = \"1MiB\"\n",
        "[queue]\nbackoff_initial = \"2s\"\nbackoff_max = \"1s\"\n",
        "[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n[auth]\nenabled = true\n",
        "http_hosts = [\"a\", \"b\"]\nno_fila = true\nno_amqp = true\nno_http = true\n",
        "http_hosts = [1, { a = 2 }, 1979-05-27]\n",
        "[auth]\nbootstrap_apikey = [\"hush\"]\n",
        "[limits]\n[limits]\nmax_body = 1.5e400\n",
        "a.b.c.d.e.f.g = {h={i={j=[[[[]]]]}}}\n",
        "fila = \"\"\"\nmany\nlines\"\"\"\n",
        "= 1\n[\n",
        "\u{feff}fila = '0.0.0.0:5555'\r\n",
        "[queue.visibility_timeout]\nof = \"30s\"\n",
    ];
    for (n, text) in texts.into_iter().enumerate() {
        let input = [&[part(Part::Rest)], text.as_bytes()].concat();
        seeds.push(seed(TARGET, &format!("text-{n:02}"), input));
    }
    for place in 0..3 {
        for len in [4, 31, 34] {
            let other = [&[part(Part::AnyEnv)], &short(b"FLIA")[..], &short(b"x")].concat();
            let input = [&other[..], &[part(Part::Secret), place, len]].concat();
            seeds.push(seed(TARGET, &format!("secret-{place}-{len}"), input));
        }
    }
    seeds
}
