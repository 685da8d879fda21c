// What amqplib sees of the broker: `check.js PORT CHECK`. Each check uses queues of its own.
"use strict";
const assert = require("node:assert");
const amqplib = require("amqplib");

const [port, name] = process.argv.slice(2);
const connect = () => amqplib.connect(`amqp://guest:guest@127.0.0.1:${port}`);

const checks = {
  async publish_confirm_consume() {
    const connection = await connect();
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue("js", { durable: true });
    for (let n = 0; n < 200; n++) {
      channel.sendToQueue("js", Buffer.from(`${n}`), { persistent: true, headers: { n } });
    }
    await channel.waitForConfirms();
    const received = [];
    await channel.prefetch(7);
    await new Promise((resolve) => {
      channel.consume("js", (message) => {
        assert.strictEqual(message.properties.headers.n, received.length);
        received.push(message.content.toString());
        channel.ack(message);
        if (received.length === 200) resolve();
      });
    });
    assert.deepStrictEqual(received, [...Array(200).keys()].map(String));
    await channel.close();
    await connection.close();
  },

  async requeue_and_dead_letters() {
    const connection = await connect();
    const channel = await connection.createConfirmChannel();
    await channel.assertExchange("js.graves", "fanout", { durable: true });
    await channel.assertQueue("js.dead", { durable: true });
    await channel.bindQueue("js.dead", "js.graves", "");
    await channel.assertQueue("js.work", { durable: true, deadLetterExchange: "js.graves" });
    channel.sendToQueue("js.work", Buffer.from("x"));
    await channel.waitForConfirms();
    let message = await channel.get("js.work");
    channel.nack(message, false, true);
    message = await channel.get("js.work");
    assert.strictEqual(message.fields.redelivered, true);
    channel.nack(message, false, false);
    const dead = await soon(() => channel.get("js.dead"));
    const death = dead.properties.headers["x-death"][0];
    assert.strictEqual(death.reason, "rejected");
    assert.strictEqual(death.queue, "js.work");
    channel.ack(dead);
    await connection.close();
  },

  async mandatory_comes_back_before_its_confirm() {
    const connection = await connect();
    const channel = await connection.createConfirmChannel();
    const events = [];
    channel.on("return", (message) => events.push(message.fields.replyText));
    await new Promise((resolve) => {
      channel.publish("amq.topic", "no.where", Buffer.from("x"), { mandatory: true }, (error) => {
        assert.strictEqual(error, null);
        events.push("confirmed");
        resolve();
      });
    });
    assert.deepStrictEqual(events, ["NO_ROUTE", "confirmed"]);
    await connection.close();
  },

  async a_refusal_closes_its_channel_only() {
    const connection = await connect();
    const channel = await connection.createChannel();
    channel.on("error", () => {});
    await assert.rejects(channel.checkQueue("js.missing"), /NOT_FOUND - no queue 'js.missing'/);
    const other = await connection.createChannel();
    await other.assertQueue("", { exclusive: true });
    await connection.close();
  },
};

async function soon(ask) {
  for (const end = Date.now() + 10000; Date.now() < end; ) {
    const found = await ask();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("nothing came");
}

checks[name]().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
