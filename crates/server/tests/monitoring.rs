//! What monitoring reads over HTTP, and queues of any virtual host.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

mod support;

use serde_json::{Value, json};
use support::{TempDir, TestServer};

fn started(options: &[(&str, &str)]) -> (TempDir, TestServer) {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), options);
    (dir, server)
}

/// Queues `jobs` in `/`, with two messages, and in `dev`.
fn with_queues(server: &TestServer) {
    let mut peer = server.connect();
    peer.create_queue("jobs");
    peer.enqueue("jobs", b"a");
    peer.enqueue("jobs", b"b");
    let definitions = json!({
        "vhosts": [{"name": "dev"}],
        "queues": [
            {"name": "jobs", "vhost": "dev", "durable": true, "auto_delete": false,
             "arguments": {"x-max-length": 7}},
        ],
    });
    let head = "POST /api/definitions HTTP/1.1\r\nHost: localhost";
    let (status, answer) = server.http_with(head, &definitions.to_string());
    assert_eq!(status, 200, "{answer}");
}

fn delete(server: &TestServer, path: &str) -> u16 {
    let head = format!("DELETE {path} HTTP/1.1\r\nHost: localhost");
    let mut stream = std::net::TcpStream::connect(server.address("http")).unwrap();
    let request = format!("{head}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_overview_counts_what_is_there() {
    let (_dir, server) = started(&[]);
    with_queues(&server);
    let _peer = server.connect();
    let (status, it) = server.get("/api/overview");
    assert_eq!(status, 200);
    assert_eq!(it["product_name"], "Tanda");
    assert_eq!(it["product_version"], env!("CARGO_PKG_VERSION"));
    // `jobs` and its dead-letter queue, and the one in `dev`.
    assert_eq!(it["object_totals"]["queues"], 3, "{it}");
    assert_eq!(it["object_totals"]["consumers"], 0);
    assert!(it["object_totals"]["connections"].as_u64().unwrap() >= 1);
    // Six are predeclared in each virtual host.
    assert_eq!(it["object_totals"]["exchanges"], 12);
    let totals = json!({"messages": 2, "messages_ready": 2, "messages_unacknowledged": 0});
    assert_eq!(it["queue_totals"], totals);
    let port = server.address("amqp").port();
    let amqp = json!({
        "node": "tanda", "protocol": "amqp", "ip_address": "127.0.0.1", "port": port,
    });
    assert!(it["listeners"].as_array().unwrap().contains(&amqp), "{it}");
}

#[test]
fn the_node_tells_its_figures() {
    let (_dir, server) = started(&[("memory.limit", "1GiB"), ("disk.alarm", "1MiB")]);
    let (status, nodes) = server.get("/api/nodes");
    assert_eq!(status, 200);
    let (_, node) = server.get("/api/nodes/tanda");
    assert_eq!(nodes.as_array().unwrap().len(), 1);
    for it in [&nodes[0], &node] {
        assert_eq!(
            (&it["name"], &it["running"]),
            (&json!("tanda"), &json!(true))
        );
        assert_eq!(it["mem_limit"], 1 << 30);
        assert_eq!(
            (&it["mem_alarm"], &it["disk_free_alarm"]),
            (&json!(false), &json!(false))
        );
        assert_eq!(it["disk_free_limit"], 1 << 20);
        assert!(it["disk_free"].as_u64().unwrap() > 1 << 20);
        assert!(it["mem_used"].is_u64() && it["uptime"].is_u64(), "{it}");
    }
    assert_eq!(server.get("/api/nodes/other").0, 404);
}

#[test]
fn health_checks_say_what_is_well() {
    let (_dir, server) = started(&[]);
    let port = server.address("amqp").port();
    let check = |path: &str| server.get(&format!("/api/health/checks/{path}"));
    let ok = json!({"status": "ok"});
    for path in ["alarms", "local-alarms", "virtual-hosts"] {
        assert_eq!(check(path), (200, ok.clone()), "{path}");
    }
    let (status, critical) = check("node-is-quorum-critical");
    assert_eq!((status, &critical["status"]), (200, &json!("ok")));
    let there = json!({"status": "ok", "port": port});
    assert_eq!(check(&format!("port-listener/{port}")), (200, there));
    let (status, missing) = check("port-listener/1");
    assert_eq!((status, &missing["status"]), (503, &json!("failed")));
    assert_eq!(missing["missing"], 1);
    assert!(missing["ports"].as_array().unwrap().contains(&json!(port)));
    assert_eq!(check("port-listener/x").0, 400);
    for protocol in [
        "amqp", "amqp091", "AMQP", "http", "fila", "firemq", "amaquet",
    ] {
        let (status, it) = check(&format!("protocol-listener/{protocol}"));
        assert_eq!((status, &it["protocol"]), (200, &json!(protocol)));
    }
    let (status, missing) = check("protocol-listener/mqtt");
    assert_eq!((status, &missing["missing"]), (503, &json!("mqtt")));
    assert_eq!(server.get("/api/aliveness-test/%2F"), (200, ok));
    assert_eq!(server.get("/api/aliveness-test/none").0, 404);
}

#[test]
fn alarms_fail_their_checks() {
    // No disk has so much.
    let (_dir, server) = started(&[("disk.alarm", "1024TiB")]);
    let failed = loop {
        let (status, answer) = server.get("/api/health/checks/alarms");
        // It is looked at soon after the start.
        if status != 200 {
            assert_eq!(status, 503);
            break answer;
        }
    };
    let expected = json!({
        "status": "failed",
        "reason": "There are alarms in effect in the cluster",
        "alarms": [{"node": "tanda", "resource": "disk"}],
    });
    assert_eq!(failed, expected);
    assert_eq!(server.get("/api/nodes/tanda").1["disk_free_alarm"], true);
    assert_eq!(server.get("/api/health/checks/virtual-hosts").0, 200);
}

#[test]
fn queues_of_one_name_in_two_virtual_hosts_are_apart() {
    let (_dir, server) = started(&[]);
    with_queues(&server);
    let depth = |vhost: &str| {
        let path = format!("/api/tanda/vhosts/{vhost}/queues/jobs");
        let (status, it) = server.get(&path);
        let (_, explained) = server.get(&format!("{path}/explain"));
        let (_, stats) = server.get(&format!("{path}/stats"));
        assert_eq!(it["counts"]["depth"], explained["counts"]["depth"]);
        assert_eq!(it["counts"]["depth"], stats["counts"]["depth"]);
        (status, it["counts"]["depth"].clone())
    };
    assert_eq!(depth("%2F"), (200, json!(2)));
    assert_eq!(depth("dev"), (200, json!(0)));
    let (_, stats) = server.get("/api/tanda/vhosts/%2F/queues/jobs/stats");
    assert_eq!(stats["fairness_keys"][0]["pending"], 2, "{stats}");
    let (status, one) = server.get("/api/queues/dev/jobs");
    assert_eq!((status, &one["vhost"]), (200, &json!("dev")));
    assert_eq!(one["arguments"], json!({"x-max-length": 7}));
    let listed = server.get("/api/queues/dev").1;
    assert_eq!(listed[0], one);
    let (status, purged) = server.post("/api/tanda/vhosts/dev/queues/jobs/purge");
    assert_eq!((status, &purged["purged"]), (200, &json!(0)));
    assert_eq!(delete(&server, "/api/queues/dev/jobs?if-unused=maybe"), 400);
    assert_eq!(delete(&server, "/api/queues/dev/jobs?if-unused=true"), 204);
    assert_eq!(delete(&server, "/api/queues/dev/jobs"), 404);
    assert_eq!(depth("dev").0, 404);
    assert_eq!(depth("none").0, 404);
    assert_eq!(depth("%2F"), (200, json!(2)));
    assert_eq!(delete(&server, "/api/queues/%2F/jobs?if-empty=true"), 400);
    assert_eq!(delete(&server, "/api/queues/%2F/jobs.dlq"), 400);
    assert_eq!(delete(&server, "/api/queues/%2F/jobs"), 204);
    assert_eq!(server.get("/api/queues").1, json!([]));
}

#[test]
fn long_lists_come_in_pages() {
    let (_dir, server) = started(&[]);
    with_queues(&server);
    let page = |query: &str| server.get(&format!("/api/queues?{query}"));
    let (status, first) = page("page=1&page_size=2");
    assert_eq!(status, 200);
    assert_eq!(
        (&first["page_count"], &first["item_count"]),
        (&json!(2), &json!(2))
    );
    let (_, dead) = page("page=1&name=dlq");
    let names: Vec<&Value> = dead["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["jobs.dlq"]);
    assert_eq!(page("page=9").0, 400);
    let (_, exchanges) = server.get("/api/exchanges/%2F?page=1&page_size=3");
    assert_eq!(exchanges["filtered_count"], 6);
    assert_eq!(exchanges["items"].as_array().unwrap().len(), 3);
}
