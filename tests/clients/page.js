// The client in docs/examples/firemq.html, run outside of a browser: `page.js URL CHECK`.
// Node's WebSocket needs --experimental-websocket before Node 22.

"use strict";

const assert = require("node:assert");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");

const [URL_OF_BROKER, CHECK] = process.argv.slice(2);
const page = readFileSync(join(__dirname, "../../docs/examples/firemq.html"), "utf8");
const source = page.match(/<script id="client">([^]*?)<\/script>/)[1];
const { Fire, pack, unpack } = new Function(`${source}; return { Fire, pack, unpack };`)();

const checks = {
  async publishes_and_consumes() {
    const fire = await Fire.connect(URL_OF_BROKER);
    assert.equal(await fire.queue("page"), "page");
    assert.match(await fire.queue(""), /^amq\.gen-/);
    const wanted = Array.from({ length: 500 }, (_, number) => `text ${number}`);
    await Promise.all(wanted.map((text) => fire.publish("page", text, { n: 1, deep: [{}] })));
    const found = [];
    const all = new Promise((resolve) => {
      fire.consume("page", (text, header) => {
        assert.equal(header.key, "page");
        assert.equal(header.headers.n, 1);
        found.push(text);
        if (found.length === wanted.length) resolve();
      });
    });
    await all;
    assert.deepEqual(found, wanted);
    await assert.rejects(fire.queue("amq.reserved"), /^Error: 403/);
    fire.close();
  },

  async refusals_are_told() {
    await assert.rejects(Fire.connect(URL_OF_BROKER, { password: "wrong" }), /^Error: 403/);
    const closed = new Promise((resolve) => {
      Fire.connect(URL_OF_BROKER, { onClose: resolve }).then((fire) => fire.close());
    });
    await closed;
  },

  // The other side is in together.py: what is ordered here is answered there.
  async orders_and_hears() {
    const fire = await Fire.connect(URL_OF_BROKER);
    const answers = [];
    const all = new Promise((resolve) => {
      fire.consume("answers", (text) => {
        answers.push(text);
        if (answers.length === 3) resolve();
      });
    });
    for (const number of ["1", "2", "3"]) await fire.publish("orders", number);
    await all;
    assert.deepEqual(answers, ["2", "4", "6"]);
    fire.close();
  },

  async message_pack() {
    const values = [
      null, true, false, 0, 127, 128, 255, 256, 65535, 65536, 2 ** 32, 2 ** 52, -1, -33, -(2 ** 40),
      1.5, -0.25, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 63n), "", "t\u00e4xt", "x".repeat(40),
      "x".repeat(70000), new Uint8Array([0, 255]), [], [1, ["a"]], Array(20).fill(7), {},
      { a: { b: [null] } },
    ];
    for (const value of values) assert.deepEqual(plain(unpack(pack(value))), value);
  },
};

/** Maps without a prototype as those with one. */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (value && typeof value === "object" && !(value instanceof Uint8Array)) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
  }
  return value;
}

const late = setTimeout(() => {
  console.error("nothing happened for 30 seconds");
  process.exit(1);
}, 30_000);
checks[CHECK]().then(
  () => process.exit(0),
  (error) => {
    clearTimeout(late);
    console.error(error);
    process.exit(1);
  },
);
