//! Configuration: which source wins, what is reported, and that its page is true.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

use tanda_server::config::{self, ConfiguredPassword, Mistakes, OPTIONS, Source, Sources};

fn sources(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Sources {
    let owned = |pairs: &[(&str, &str)]| {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(pair).collect()
    };
    Sources {
        file: Some(("tanda.toml".to_owned(), file.to_owned())),
        env: owned(env),
        flags: owned(flags),
    }
}

fn mistakes(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Vec<String> {
    let Mistakes(found) = config::load(&sources(file, env, flags)).unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn every_default_is_valid_and_within_its_bounds() {
    let loaded = config::load(&Sources::default()).unwrap();
    assert_eq!(loaded.origins.len(), OPTIONS.len());
    assert!(
        loaded
            .origins
            .iter()
            .all(|(_, _, source)| *source == Source::Default)
    );
    assert_eq!(loaded.config.fila.to_string(), "127.0.0.1:5555");
    assert_eq!(loaded.config.amqp.to_string(), "127.0.0.1:5672");
    assert_eq!(loaded.config.firemq.to_string(), "127.0.0.1:5673");
    assert_eq!(loaded.config.amaquet.to_string(), "127.0.0.1:7272");
    assert_eq!(loaded.config.http.to_string(), "127.0.0.1:15672");
}

#[test]
fn keys_flags_and_variables_are_distinct() {
    let distinct = |names: Vec<String>| {
        let set: std::collections::BTreeSet<&String> = names.iter().collect();
        set.len() == names.len()
    };
    assert!(distinct(OPTIONS.iter().map(|spec| spec.flag()).collect()));
    assert!(distinct(OPTIONS.iter().map(|spec| spec.env()).collect()));
}

#[test]
fn flags_win_over_environment_over_file_over_default() {
    let file = "fila = \"127.0.0.1:1\"\nhttp = \"127.0.0.1:2\"\nno_http = false\n\
                [limits]\nconnections_max = 3\n";
    let env = [
        ("TANDA_HTTP", "127.0.0.1:4"),
        ("TANDA_LIMITS_CONNECTIONS_MAX", "5"),
    ];
    let flags = [("limits.connections_max", "6")];
    let loaded = config::load(&sources(file, &env, &flags)).unwrap();
    assert_eq!(loaded.config.fila.port(), 1);
    assert_eq!(loaded.config.http.port(), 4);
    assert_eq!(loaded.config.limits_connections_max, 6);
    let source = |key| {
        let found = loaded.origins.iter().find(|(k, ..)| *k == key);
        found.map(|(.., source)| source.to_string()).unwrap()
    };
    assert_eq!(source("fila"), "tanda.toml");
    assert_eq!(source("http"), "TANDA_HTTP");
    assert_eq!(source("limits.connections_max"), "--limits-connections-max");
    assert_eq!(source("log.level"), "default");
}

#[test]
fn all_mistakes_are_reported_at_once_with_where_they_are() {
    let file = "data_dri = \"x\"\n[limits]\nmax_frame = \"1MB\"\nconnections_max = 0\n";
    let found = mistakes(file, &[("TANDA_LOG_LEVEL", "loud")], &[("fila", "nowhere")]);
    let expect = [
        "tanda.toml: unknown option `data_dri`; did you mean `data_dir`?",
        "--fila: fila = \"nowhere\": expected an IP address and a port, \
         like \"127.0.0.1:5555\" or \"[::1]:5555\"",
        "TANDA_LOG_LEVEL: log.level = \"loud\": expected error, warn, info, debug or trace",
        "tanda.toml: limits.connections_max = \"0\": allowed is 1 to 1000000",
        "tanda.toml: limits.max_frame = \"1MB\": expected a number with a unit \
         (B, KiB, MiB, GiB, TiB), like \"64MiB\"",
    ];
    assert_eq!(found, expect);
}

#[test]
fn a_number_without_a_unit_is_refused_where_a_unit_is_needed() {
    let found = mistakes(
        "[limits]\nmax_frame = 1048576\nframe_timeout = 60\n",
        &[],
        &[],
    );
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.iter().all(|mistake| mistake.contains("with a unit")),
        "{found:?}"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    let found = mistakes(
        "no_http = \"maybe\"\nhttp_hosts = [1]\ndata_dir = true\n",
        &[],
        &[],
    );
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_file_that_is_no_toml_is_named_with_the_line() {
    let found = mistakes("fila = \n", &[], &[]);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("tanda.toml: "), "{found:?}");
    assert!(found[0].contains("line 1"), "{found:?}");
}

#[test]
fn an_unknown_variable_is_a_warning_because_orchestrators_add_their_own() {
    let env = [
        ("TANDA_DATA_DRI", "x"),
        ("TANDA_SERVICE_HOST", "10.0.0.1"),
        ("PATH", "/bin"),
    ];
    let loaded = config::load(&sources("", &env, &[])).unwrap();
    assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].contains("did you mean TANDA_DATA_DIR?"));
}

#[test]
fn an_address_that_others_can_reach_must_be_allowed_aloud() {
    let flags = [("fila", "0.0.0.0:5555")];
    let found = mistakes("", &[], &flags);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("--allow-unauthenticated"), "{found:?}");
    let allowed = [flags[0], ("allow_unauthenticated", "true")];
    assert!(config::load(&sources("", &[], &allowed)).is_ok());
    let closed = [flags[0], ("no_fila", "true")];
    assert!(config::load(&sources("", &[], &closed)).is_ok());
}

#[test]
fn contradictions_are_refused() {
    let doors = ["fila", "amqp", "firemq", "amaquet", "http"];
    let closed: String = doors.map(|door| format!("no_{door} = true\n")).concat();
    assert_eq!(mistakes(&closed, &[], &[]).len(), 1);
    assert_eq!(
        mistakes("fila = \"127.0.0.1:9\"\nhttp = \"127.0.0.1:9\"\n", &[], &[]).len(),
        1
    );
    let sizes = "[limits]\nmax_body = \"1MiB\"\nmax_frame = \"2MiB\"\nmax_message = \"2MiB\"\n";
    assert_eq!(mistakes(sizes, &[], &[]).len(), 2);
    let payloads = "[amaquet.limits]\nmax_payload = \"2MiB\"\npayload_reservation = \"1MiB\"\n";
    assert_eq!(mistakes(payloads, &[], &[]).len(), 1);
}

#[test]
fn the_payloads_of_amaquet_have_a_hard_limit() {
    let with = |bytes: &str| format!("[amaquet.limits]\nmax_payload = \"{bytes}\"\n");
    let most = config::load(&sources(&with("64MiB"), &[], &[])).unwrap();
    assert_eq!(most.config.amaquet_max_payload.0, 64 << 20);
    assert_eq!(mistakes(&with("65MiB"), &[], &[]).len(), 1);
}

/// TOML takes no `amaquet = "..."` beside a section `[amaquet]`.
#[test]
fn the_address_of_a_door_may_stand_in_its_section() {
    let file = "[amaquet]\naddress = \"127.0.0.1:1\"\nvhost = \"shop\"\n\
                [amaquet.limits]\nmax_payload = \"1MiB\"\nmax_wait = \"1m\"\n";
    let config = config::load(&sources(file, &[], &[])).unwrap().config;
    assert_eq!(config.amaquet.port(), 1);
    assert_eq!(config.amaquet_vhost, "shop");
    assert_eq!(config.amaquet_max_payload.0, 1 << 20);
    assert_eq!(config.amaquet_max_wait.as_secs(), 60);
    let plain = config::load(&sources("amaquet = \"127.0.0.1:2\"\n", &[], &[]));
    assert_eq!(plain.unwrap().config.amaquet.port(), 2);
    let other = mistakes(
        "[no_fila]\naddress = true\n[limits]\naddress = 1\n",
        &[],
        &[],
    );
    assert_eq!(other.len(), 2, "{other:?}");
}

#[test]
fn options_of_tls_belong_together() {
    let files = "[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
    let loaded = config::load(&sources(files, &[], &[])).unwrap();
    assert_eq!(loaded.config.fila_tls, None);
    for (file, expected) in [
        ("[tls]\ncertificate = \"c.pem\"\n", "tls.key is not"),
        ("[tls]\nkey = \"k.pem\"\n", "tls.certificate is not"),
        ("[tls]\nclient_ca = \"a.pem\"\n", "tls.certificate is not"),
        ("fila_tls = \"127.0.0.1:1\"\n", "tls.certificate is not"),
        ("amqp_tls = \"127.0.0.1:1\"\n", "tls.certificate is not"),
        ("firemq_tls = \"127.0.0.1:1\"\n", "tls.certificate is not"),
        ("amaquet_tls = \"127.0.0.1:1\"\n", "tls.certificate is not"),
        ("http_tls = \"127.0.0.1:1\"\n", "tls.certificate is not"),
    ] {
        let found = mistakes(file, &[], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }
    let closed = [
        "no_fila_tls",
        "no_amqp_tls",
        "no_firemq_tls",
        "no_amaquet_tls",
        "no_http_tls",
    ];
    let closed = closed.map(|door| (door, "true"));
    let unused = mistakes(files, &[], &closed);
    assert!(unused[0].contains("no door uses it"), "{unused:?}");
    let same = mistakes(files, &[], &[("fila_tls", "127.0.0.1:5555")]);
    assert!(same[0].contains("fila and fila_tls are both"), "{same:?}");
}

#[test]
fn a_door_that_others_can_reach_may_ask_for_certificates_instead() {
    let files = "[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
    let open = [("fila_tls", "0.0.0.0:5556")];
    assert_eq!(mistakes(files, &[], &open).len(), 1);
    let proved = [open[0], ("tls.client_ca", "a.pem")];
    assert!(config::load(&sources(files, &[], &proved)).is_ok());
    let optional = [proved[0], proved[1], ("tls.client_auth", "optional")];
    assert_eq!(mistakes(files, &[], &optional).len(), 1);
}

#[test]
fn the_page_lists_every_option_as_it_is_declared() {
    const BEGIN: &str = "<!-- options: begin -->\n";
    const END: &str = "<!-- options: end -->";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    if table != config::markdown() {
        if std::env::var_os("TANDA_WRITE_DOCS").is_some() {
            let fresh = format!("{before}{BEGIN}{}{END}{after}", config::markdown());
            std::fs::write(path, fresh).unwrap();
            return;
        }
        panic!(
            "docs/configuration.md does not match the declared options; run \
             `TANDA_WRITE_DOCS=1 cargo test -p tanda-server --test configuration`"
        );
    }
}

const SECRET: &str = "a-bootstrap-key-that-nobody-may-see-1";

#[test]
fn a_secret_is_never_shown() {
    let env = [("TANDA_AUTH_BOOTSTRAP_APIKEY", SECRET)];
    let loaded = config::load(&sources("", &env, &[])).unwrap();
    let shown = format!(
        "{:?} {:?} {:?}",
        loaded.config, loaded.origins, loaded.warnings
    );
    assert!(!shown.contains(SECRET), "{shown}");
    let key = loaded.config.auth_bootstrap_apikey.unwrap();
    assert_eq!(key.reveal(), SECRET);

    let short = &SECRET[..31];
    let spaced = SECRET.replace('-', " ");
    for bad in [short, &spaced, &SECRET.repeat(100)] {
        let found = mistakes("", &[("TANDA_AUTH_BOOTSTRAP_APIKEY", bad)], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("auth.bootstrap_apikey"), "{found:?}");
        assert!(!found[0].contains(bad), "{found:?}");
    }
    // A file that is wrong, and wrong in that very line.
    for bad in [
        format!("[auth]\nbootstrap_apikey = \"{SECRET}\nenabled = true\n"),
        format!("[auth]\nbootstrap_apikey = {SECRET}\n"),
        format!("[auth]\nbootstrap_apikey = \"{SECRET}\"\nbootstrap_apikey = \"{SECRET}\"\n"),
        format!("[auth]\nbootstrap_apikey = [\"{SECRET}\"]\n"),
        format!("[auth]\nbootstrap_key = \"{SECRET}\"\n"),
        format!("[auth]\nenabled = \"no\"\nbootstrap_apikey = \"{SECRET}\"\n"),
    ] {
        let found = mistakes(&bad, &[], &[]).join("\n");
        assert!(
            !found.is_empty() && !found.contains("nobody-may-see"),
            "{found}"
        );
    }
}

#[test]
fn a_key_makes_a_door_safe_to_open() {
    let open = [("fila", "0.0.0.0:5555"), ("http", "0.0.0.0:15672")];
    let found = mistakes("", &[], &open);
    assert_eq!(found.len(), 2, "both doors: {found:?}");
    assert!(found[0].contains("auth.enabled"), "{found:?}");
    let with = |option| {
        let flags = [open[0], open[1], option];
        config::load(&sources("", &[], &flags)).is_ok()
    };
    assert!(with(("auth.enabled", "true")));
    assert!(with(("auth.bootstrap_apikey", SECRET)));
    assert!(with(("auth.bootstrap_apikey_file", "/etc/tanda/bootstrap")));
    assert!(with(("allow_unauthenticated", "true")));
    assert!(!with(("auth.enabled", "auto")));
    assert!(!with(("auth.enabled", "false")));
}

#[test]
fn options_of_keys_that_contradict_each_other() {
    let file = format!("[auth]\nenabled = false\nbootstrap_apikey = \"{SECRET}\"\n");
    assert_eq!(mistakes(&file, &[], &[]).len(), 1);
    let both = [
        ("auth.bootstrap_apikey", SECRET),
        ("auth.bootstrap_apikey_file", "f"),
    ];
    assert_eq!(mistakes("", &[], &both).len(), 1);
    let found = mistakes("[auth]\nenabled = 3\n", &[], &[]);
    assert_eq!(found.len(), 1);
}

#[test]
fn users_stand_in_the_file() {
    let hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
    let file = format!(
        "[[users]]\nname = \"anna\"\npassword_hash = \"{hash}\"\ntags = [\"management\"]\n\
         [[users.permissions]]\nconfigure = \"\"\nwrite = \"a\"\nread = \".*\"\n\
         [[users]]\nname = \"bert\"\n"
    );
    let loaded = config::load(&sources(&file, &[], &[])).unwrap();
    let [anna, bert] = loaded.config.users.as_slice() else {
        panic!("{:?}", loaded.config.users);
    };
    assert_eq!((&*anna.name, &*bert.name), ("anna", "bert"));
    assert_eq!(anna.permissions.len(), 1);
    assert_eq!(bert.password, ConfiguredPassword::None);
    // Nowhere is the hash shown.
    assert!(!format!("{:?}", loaded.config).contains(hash));
}

#[test]
fn mistakes_in_users_are_told_without_their_secrets() {
    let secret = "hush-hush";
    let user = |rest: &str| format!("[[users]]\nname = \"anna\"\n{rest}\n");
    for (file, says) in [
        (
            user("password = \"hush-hush\""),
            "a password does not stand here",
        ),
        (
            user("password_hash = \"hush-hush\""),
            "password_hash is not the base64",
        ),
        (
            user("password_hash = [\"hush-hush\"]"),
            "password_hash: expected a string",
        ),
        (
            user("password_hash = \"x\"\npassword_file = \"y\""),
            "both set",
        ),
        (
            user("hashing_algorithm = \"argon2id\""),
            "password_hash is not",
        ),
        (user("tag = \"x\""), "unknown key `tag`"),
        (user("tags = \"x\""), "expected an array"),
        (
            user("[[users.permissions]]\nread = \"\"\nwrite = \"\""),
            "configure is missing",
        ),
        (
            user("[[users.permissions]]\nread = \"(\"\nwrite = \"\"\nconfigure = \"\""),
            "permissions in \"/\": read: cannot use the regular expression",
        ),
        (user("[[users]]\nname = \"anna\""), "is there twice"),
        (
            "[[users]]\ntags = []".to_owned(),
            "[[users]] number 1: it has no name",
        ),
        ("users = \"anna\"".to_owned(), "expected tables"),
    ] {
        let found = mistakes(&file, &[], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(says) && !found[0].contains(secret),
            "{found:?}"
        );
    }
}
