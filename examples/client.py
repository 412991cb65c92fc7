#!/usr/bin/env python3
"""Sells one job through jobledger's HTTP API and waits for the event, with nothing but the standard library.

    jobledger serve --deliver --allow-private &
    JOBLEDGER_URL=http://127.0.0.1:8080 JOBLEDGER_TOKEN=jl_... python3 examples/client.py
"""
import base64, hashlib, hmac, json, os, queue, threading, time, urllib.error, urllib.request, uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

SECRET, events = os.urandom(32), queue.Queue()


def call(method, path, body=None):
    """Every write has a permanent key: after a lost answer the same call again is safe, and is right.
    .../attempts is the exception: it is NOT_ALLOWED then. Do not call the provider; reconcile the job."""
    headers = {"Authorization": "Bearer " + os.environ["JOBLEDGER_TOKEN"], "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    for pause in (0.2, 1, 5, 0):
        request = urllib.request.Request(os.environ["JOBLEDGER_URL"] + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            problem = json.load(refusal)
            if not pause or not problem["retryable"]:
                raise SystemExit(f"{method} {path}: {problem['code']}: {problem['detail']}")
        except OSError:
            if not pause:
                raise
        time.sleep(pause)


class Receiver(BaseHTTPRequestHandler):
    """Takes only what is signed and fresh. An event can come twice: its webhook-id is the same then."""
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers["content-length"]), 1 << 20))
        id, sent = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        want = b"v1," + base64.b64encode(hmac.digest(SECRET, f"{id}.{sent}.".encode() + body, hashlib.sha256))
        given = self.headers["webhook-signature"].encode("latin-1").split()
        genuine = any(hmac.compare_digest(want, s) for s in given) and abs(time.time() - int(sent)) < 300
        if genuine:
            events.put(json.loads(body))
        self.send_response(204 if genuine else 401)
        self.end_headers()

    def log_message(self, *_): ...


receiver = HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
call("POST", "/v1/endpoints", {"url": f"http://127.0.0.1:{receiver.server_port}/",
                               "secret": "whsec_" + base64.b64encode(SECRET).decode()})
job = f"py-{uuid.uuid4()}"
call("POST", "/v1/grants", {"owner": "ada", "amount": 100, "key": "welcome-" + job})
call("POST", "/v1/jobs", {"id": job, "owner": "ada", "cost": 7})
attempt = call("POST", f"/v1/jobs/{job}/attempts", {"provider": "acme"})["attempt"]  # now call acme, once
call("POST", f"/v1/jobs/{job}/attempts/{attempt}/accepted", {"upstream_id": "acme-" + job})
end = call("POST", f"/v1/jobs/{job}/reports", {"outcome": "completed", "attempt": attempt, "cost": 5})
event = next(e for e in iter(lambda: events.get(timeout=30), None) if e["data"]["job"] == job)
print(f"used {end['consumed']}, returned {end['returned']}, told of {event['type']}")
