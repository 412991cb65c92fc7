// Sells one job through jobledger's HTTP API and waits for the event, with nothing but Node.js.
//
//	jobledger serve --deliver --allow-private &
//	JOBLEDGER_URL=http://127.0.0.1:8080 JOBLEDGER_TOKEN=jl_... npx tsx examples/client.ts
import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

type Problem = { code: string; detail: string; retryable: boolean };
// Every write has a permanent key: after a lost answer the same call again is safe, and is right.
// .../attempts is the exception: it is NOT_ALLOWED then. Do not call the provider; reconcile the job.
async function call<T>(method: string, path: string, body: object): Promise<T> {
  const { JOBLEDGER_URL: url, JOBLEDGER_TOKEN: token = "" } = process.env;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  for (const pause of [200, 1000, 5000, 0]) {
    try {
      const signal = AbortSignal.timeout(10_000);
      const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body), signal });
      if (answer.ok) return (await answer.json()) as T;
      const problem = (await answer.json()) as Problem;
      if (!pause || !problem.retryable) throw new RangeError(`${path}: ${problem.code}: ${problem.detail}`);
    } catch (error) {
      if (!pause || error instanceof RangeError) throw error;
    }
    await new Promise((resume) => setTimeout(resume, pause));
  }
  throw new Error(path);
}

// Only what is signed and fresh is taken. An event can come twice: its webhook-id is the same then.
const secret = randomBytes(32);
function genuine(headers: IncomingMessage["headers"], body: string): boolean {
  const sent = String(headers["webhook-timestamp"]);
  const want = createHmac("sha256", secret).update(`${headers["webhook-id"]}.${sent}.${body}`).digest();
  const given = String(headers["webhook-signature"]).split(" ").map((s) => Buffer.from(s.slice(3), "base64"));
  if (Math.abs(Date.now() / 1000 - Number(sent)) > 300) return false;
  return given.some((s) => s.length === want.length && timingSafeEqual(s, want));
}

const job = `ts-${randomUUID()}`;
const told = new Promise<{ type: string }>((resolve) => {
  const receiver = createServer(async (request, response) => {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    response.writeHead(genuine(request.headers, body) ? 204 : 401).end();
    if (response.statusCode === 204 && JSON.parse(body).data.job === job) resolve(JSON.parse(body));
  }).listen(0, "127.0.0.1", async () => {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    await call("POST", "/v1/endpoints", { url, secret: `whsec_${secret.toString("base64")}` });
    await call("POST", "/v1/grants", { owner: "ada", amount: 100, key: `welcome-${job}` });
    await call("POST", "/v1/jobs", { id: job, owner: "ada", cost: 7 });
    const of = `/v1/jobs/${job}`;
    const { attempt } = await call<{ attempt: number }>("POST", `${of}/attempts`, { provider: "acme" });
    await call("POST", `${of}/attempts/${attempt}/accepted`, { upstream_id: `acme-${job}` });
    const report = { outcome: "completed", attempt, cost: 5 };
    const end = await call<{ consumed: number; returned: number }>("POST", `${of}/reports`, report);
    console.log(`used ${end.consumed}, returned ${end.returned}, told of ${(await told).type}`);
    process.exit(0);
  });
});
