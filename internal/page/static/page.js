// Makes the pages live, and lets the pictures of the lab play. Without it, both are complete.

const calm = matchMedia("(prefers-reduced-motion: reduce)");

// follow shows what becomes of the page: the server sends its main part again when that has changed.
function follow(main, status) {
  let source;
  const say = (text, on) => {
    status.hidden = false;
    status.classList.toggle("on", on);
    if (status.textContent !== text) status.textContent = text;
  };
  const open = () => {
    source = new EventSource(location.href);
    source.addEventListener("main", (event) => {
      say("live", true);
      renew(main, JSON.parse(event.data));
    });
    source.addEventListener("same", () => say("live", true));
    source.addEventListener("trouble", () => say("busy; it is tried again", false));
    source.addEventListener("gone", () => {
      source.close();
      location.reload();
    });
    source.onerror = () => say(source.readyState === EventSource.CLOSED ? "not live: reload to look again" : "not live: the server is looked for", false);
  };
  const close = () => source?.close();
  document.addEventListener("visibilitychange", () => {
    close();
    if (!document.hidden) open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
  open();
}

// renew replaces the parts of the page that have changed, and leaves the focus where it was.
function renew(main, html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  if (main.querySelector("[data-running]") && !fresh.querySelector("[data-running]")) {
    location.reload();
    return;
  }
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = main.querySelector(`#${CSS.escape(part.id)}`);
    if (!old || old.innerHTML === part.innerHTML) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const made = document.importNode(part, true);
    if (!calm.matches) made.classList.add("fresh");
    old.replaceWith(made);
    if (!focused) continue;
    const again = [...made.querySelectorAll("a, button, input")].find((e) => e.getAttribute("href") === focused.getAttribute("href") && e.textContent === focused.textContent);
    again?.focus({ preventScroll: true });
  }
}

const svg = (name, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

// Player shows a picture up to a moment: what is later is not there yet.
class Player {
  constructor(root) {
    this.root = root;
    this.picture = root.querySelector("svg");
    this.told = root.querySelector("[data-told]");
    this.rows = [...document.querySelectorAll("tr[data-x]")];
    this.left = Number(root.dataset.left);
    this.right = Number(root.dataset.right);
    this.prepare(Number(root.dataset.top), Number(root.dataset.bottom), Number(root.dataset.height));
    for (const part of root.querySelectorAll("[data-controls]")) part.hidden = false;
    this.button = root.querySelector("[data-go=play]");
    root.addEventListener("click", (event) => {
      const go = event.target.closest("[data-go]");
      if (go) this.go(go.dataset.go);
    });
    document.addEventListener("keydown", (event) => this.key(event));
    this.flip = root.querySelector("[data-flip]");
    const step = /^#step-(\d+)$/.exec(location.hash);
    if (step) this.stand(Number(step[1]));
    else if (calm.matches) this.stand(this.rows.length - 1);
    else {
      this.stand(0);
      this.play();
    }
  }

  // prepare finds what in the picture has a time: what lasts is cut, what does not appears.
  prepare(top, bottom, height) {
    this.clip = svg("rect", { x: 0, y: 0, width: 0, height });
    const path = svg("clipPath", { id: "player-until" });
    path.append(this.clip);
    this.picture.querySelector("defs").append(path);
    this.cursor = svg("path", { class: "cursor", d: `M0 ${top}V${bottom}` });
    this.marks = [];
    for (const e of [...this.picture.children]) {
      const at = /^translate\((\d+) (\d+)\)/.exec(e.getAttribute("transform") ?? "");
      const x = Number(at ? at[1] : e.getAttribute("x"));
      const y = Number(at ? at[2] : e.getAttribute("y"));
      const inside = y > top && y <= bottom && x >= this.left;
      if (e.matches("path.number, path.want") || (e.localName === "rect" && inside)) {
        e.setAttribute("clip-path", "url(#player-until)");
      } else if (inside && (e.localName === "text" || e.localName === "g")) {
        this.marks.push([e, x]);
      }
    }
    this.picture.append(this.cursor);
  }

  // until shows what is left of x.
  until(x) {
    this.x = x;
    const end = x >= this.right;
    this.clip.setAttribute("width", end ? this.picture.viewBox.baseVal.width : x);
    this.cursor.setAttribute("transform", `translate(${x} 0)`);
    this.cursor.classList.toggle("not-yet", end);
    const window = this.picture.parentElement;
    const seen = x * this.picture.clientWidth / this.picture.viewBox.baseVal.width;
    if (window.scrollWidth > window.clientWidth) window.scrollLeft = seen - window.clientWidth * 0.7;
    for (const [e, at] of this.marks) e.classList.toggle("not-yet", !end && at >= x);
  }

  // stand goes to a step and tells it.
  stand(n) {
    this.at = Math.min(Math.max(n, 0), this.rows.length - 1);
    const row = this.rows[this.at];
    this.until(Number(row.dataset.x));
    this.tell(row);
  }

  tell(row) {
    for (const r of this.rows) r.classList.toggle("now", r === row);
    const what = [...row.querySelectorAll("td p")].map((p) => p.textContent.trim()).join("\n");
    const text = `${this.at} of ${this.rows.length - 1}: ${row.dataset.say ?? what}`;
    this.told.textContent = row.dataset.say && this.at === 0 ? row.dataset.say : text;
    if (this.flip) this.flip.hash = `step-${this.at}`;
  }

  // play moves on by itself: a step in a moment, all of it in some seconds.
  play() {
    this.stop();
    if (this.at >= this.rows.length - 1) this.stand(0);
    const each = Math.max(60, Math.min(700, 6000 / this.rows.length));
    this.button.textContent = "Pause";
    this.playing = true;
    let began, from = this.x;
    const frame = (now) => {
      if (!this.playing) return;
      began ??= now;
      const next = this.rows[this.at + 1];
      const to = Number(next.dataset.x);
      const part = Math.min(1, (now - began) / each);
      if (part < 1) {
        this.until(from + (to - from) * part);
      } else {
        this.stand(this.at + 1);
        began = now;
        from = this.x;
        if (this.at >= this.rows.length - 1) return this.stop();
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  stop() {
    this.playing = false;
    this.button.textContent = "Play";
  }

  go(where) {
    const was = this.playing;
    this.stop();
    switch (where) {
      case "first": return this.stand(0);
      case "back": return this.stand(this.at - 1);
      case "on": return this.stand(this.at + 1);
      case "last": return this.stand(this.rows.length - 1);
      case "play": return was ? this.stand(this.at) : this.play();
    }
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
    const where = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", " ": "play" }[event.key];
    if (event.key === " " && event.target.closest("button, a")) return;
    if (where) {
      event.preventDefault();
      this.go(where);
    } else if (event.key === "f" && this.flip) {
      this.flip.click();
    }
  }
}

const main = document.querySelector("main[data-live]");
if (main) follow(main, document.querySelector("#live"));
const player = document.querySelector("[data-player]");
if (player) new Player(player);
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", () => setTimeout(() => form.querySelectorAll("button").forEach((b) => { b.disabled = true; })));
}
addEventListener("pageshow", () => document.querySelectorAll("form[method=post] button").forEach((b) => { b.disabled = false; }));
