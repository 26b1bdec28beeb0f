// Runs graphile-worker until it has settled JOBS jobs that each POST their payload to URL, as many
// at once as CONCURRENCY, and prints how many seconds that took. `batched` uses its local queue and
// batched completion, which fetch and complete many jobs in one statement.
// node worker.js CONNECTION URL JOBS CONCURRENCY plain|batched
const http = require("http");
const { EventEmitter } = require("events");
const { run, Logger } = require("graphile-worker");

const [connectionString, url, jobs, concurrency, mode] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(concurrency) });
const headers = { "Content-Type": "application/json" };

function deliver(payload) {
  return new Promise((done, failed) => {
    const call = http.request(url, { method: "POST", agent, headers }, (reply) => {
      reply.resume();
      reply.on("end", () => (reply.statusCode === 204 ? done() : failed(new Error(reply.statusCode))));
    });
    call.on("error", failed);
    call.end(JSON.stringify(payload));
  });
}

const batched = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };

async function main() {
  const events = new EventEmitter();
  let completed = 0;
  const all = new Promise((done) => events.on("job:complete", () => ++completed === Number(jobs) && done()));
  const began = process.hrtime.bigint();
  await run({
    connectionString, events, noHandleSignals: true, taskList: { deliver },
    logger: new Logger(() => (level, message) => level === "error" && console.error(message)),
    preset: { worker: { concurrentJobs: Number(concurrency), maxPoolSize: 10, ...(mode === "batched" ? batched : {}) } },
  });
  await all;
  console.log(JSON.stringify({ seconds: Number(process.hrtime.bigint() - began) / 1e9 }));
  process.exit(0);
}

main();
