// The event source of a session's page. It takes the place of the one that
// htmx's SSE extension would make, because that one loses the cursor when it
// connects anew: here the cursor is always the last entry in the page, a row
// that stands there already is dropped, and a gap is read again, so that
// neither a duplicate nor a gap can be shown (RDR-4).
//
// It never becomes CLOSED by itself, or the extension would make another. It
// holds at most one connection, none while the page is hidden, and only with
// one of the four places that all pages of one browser share: a browser has
// six connections to a server, and forms need some of them.
(() => {
  'use strict';

  const TRIES = 4;            // of one question
  const NUDGE = 800;          // ms from one to the next
  const OPEN_LIMIT = 5000;    // ms until a connection must stand
  const DOUBT = 12000;        // ms without a word, longer than from beat to beat, until it is asked whether something was missed
  const SILENCE = 25000;      // ms without a word until it is given up
  const BEHIND = 3000;        // ms that the head may be ahead without a row coming
  const SLEPT = 4000;         // ms between two ticks of a second: the browser stood still
  const HIDDEN = 10000;       // ms until a hidden page gives its connection up
  const PLACES = 4;
  const BACKOFF = [250, 500, 1000, 2000, 4000];
  const POLL = 15000;

  const rows = () => document.getElementById('journal-list');

  class ResumableSource extends EventTarget {
    constructor(url) {
      super();
      ResumableSource.only = this;
      this.url = new URL(url, location.href);
      this.readyState = 0;
      this.onopen = this.onerror = null; // the extension sets them; it needs no word of errors, since this connects anew by itself
      this.mode = 'connecting'; // connecting, open, lost, polling, hidden, gone
      this.held = false;        // the person wants the page to stay as it is; what is newer is counted
      this.failures = 0;
      this.heard = 0;           // when the server was heard last, by this page's own clock
      this.lostAt = 0;
      this.retryAt = 0;
      this.head = 0;
      this.timers = {};
      document.addEventListener('visibilitychange', () => this.visibility());
      window.addEventListener('pageshow', (e) => e.persisted && this.wake());
      window.addEventListener('online', () => this.wake());
      document.addEventListener('resume', () => this.wake()); // what was open may be dead, and nobody says so
      this.timers.watch = setInterval(() => this.watch(), 1000);
      this.start();
    }

    // cursor is the last entry that the page shows.
    cursor() {
      let last = rows()?.lastElementChild;
      while (last && !last.dataset.seq) last = last.previousElementSibling;
      return last ? Number(last.dataset.seq) : 0;
    }

    set(mode) {
      if (this.mode === mode) return;
      this.mode = mode;
      this.dispatchEvent(new Event('mode'));
    }

    async start() {
      if (this.es || this.starting || this.mode === 'gone' || this.closed) return;
      if (document.hidden) return this.hide();
      this.starting = true;
      const place = await takePlace().catch(() => true); // no storage to count in: this page takes one
      this.starting = false;
      if (this.closed || this.mode === 'gone' || document.hidden) return;
      if (place) this.connect(); else this.poll();
    }

    // displaced looks for another place, and polls if there is none.
    displaced() {
      this.drop();
      this.start();
    }

    connect() {
      clearTimeout(this.timers.retry);
      this.url.searchParams.set('after', this.cursor());
      const es = this.es = new EventSource(this.url, { withCredentials: true });
      const mine = (fn) => (e) => this.es === es && fn(e);
      this.timers.open = setTimeout(mine(() => this.fail()), OPEN_LIMIT);
      es.onopen = mine((e) => this.opened(e));
      es.onerror = mine(() => this.fail());
      es.addEventListener('row', mine((e) => this.row(e)));
      es.addEventListener('hb', mine((e) => this.beat(e)));
      es.addEventListener('bye', mine(() => this.fail()));
      es.addEventListener('gone', mine((e) => this.gone(e.data)));
    }

    opened(e) {
      clearTimeout(this.timers.open);
      this.readyState = 1;
      this.hear();
      this.spoke = this.rowAt = this.heard; // when the stream itself spoke, and when it brought a row
      this.set('open');
      if (this.onopen) this.onopen(e);
    }

    hear() {
      this.heard = performance.now();
      this.lostAt = 0;
    }

    row(e) {
      this.hear();
      this.spoke = this.heard;
      this.rowAt = performance.now();
      const id = Number(e.lastEventId);
      this.head = Math.max(this.head, id);
      const last = this.cursor();
      if (this.held || !(id > last)) return;
      if (id > last + 1) return this.fill();
      this.failures = 0; // only now: a stream that opens and brings nothing right is no success
      this.dispatchEvent(new MessageEvent('row', { data: window.holdfast.fit(e.data), lastEventId: e.lastEventId }));
      if (this.cursor() < id && this.mode === 'open') this.fill();
    }

    beat(e) {
      this.hear();
      this.spoke = this.heard;
      const { head, now } = JSON.parse(e.data);
      this.head = Math.max(this.head, head);
      this.dispatchEvent(new CustomEvent('clock', { detail: Date.parse(now) }));
      if (this.held || head <= this.cursor()) this.failures = 0;
      else if (performance.now() - this.rowAt > BEHIND) this.fill();
    }

    // fill fetches what the stream left out. If that can't be had either, the
    // connection is given up like any other that fails.
    async fill() {
      if (this.filling) return;
      this.filling = true;
      const before = this.cursor();
      await this.ask();
      this.filling = false;
      if (this.mode !== 'open' || this.head <= this.cursor()) return;
      if (this.cursor() > before) this.again(); else this.fail();
    }

    // again connects anew from the last entry in the page.
    again() {
      this.drop();
      this.connect();
    }

    drop() {
      clearTimeout(this.timers.open);
      clearTimeout(this.timers.retry);
      if (this.es) this.es.close();
      this.es = null;
      this.readyState = 0;
    }

    fail() {
      this.drop();
      if (this.closed || this.mode === 'gone') return;
      this.lostAt ||= performance.now();
      const wait = this.mode === 'polling' ? POLL : BACKOFF[Math.min(this.failures, BACKOFF.length - 1)] * (0.75 + Math.random() / 2);
      this.failures++;
      this.retryAt = performance.now() + wait;
      if (this.mode !== 'polling') this.set('lost');
      if (this.failures >= 3) this.fallBack(); // the stream hides why: a plain request tells
      this.timers.retry = setTimeout(() => this.start(), wait);
    }

    // fallBack polls where plain requests are answered, and says that the page is lost where not.
    async fallBack() {
      const answered = await this.ask();
      if (this.closed || this.mode === 'gone' || this.mode === 'open' || this.mode === 'hidden') return;
      if (answered) return this.set('polling');
      this.lostAt ||= performance.now();
      this.set('lost');
    }

    // ask fetches what is new by a plain request; true if the server answered.
    async ask() {
      if (this.asking) return this.asking;
      this.asking = this.fetchRows();
      const answered = await this.asking;
      this.asking = null;
      return answered;
    }

    async fetchRows() {
      try {
        const res = await soon(window.holdfast.path() + '?after=' + this.cursor());
        if (res.status === 401) return this.gone('signed_out');
        if (res.status === 404 && (await res.text()).includes('data-testid="failure"')) return this.gone('revoked'); // ours, not a proxy's: somebody else has signed in
        if (!res.ok || !res.headers.get('X-Holdfast-Head')) return false;
        const html = await res.text();
        if (this.mode === 'gone' || this.closed) return true;
        this.head = Math.max(this.head, Number(res.headers.get('X-Holdfast-Head')));
        this.hear();
        if (this.held) return true;
        const fitting = window.holdfast.fit(html);
        this.dispatchEvent(new CustomEvent('rows-before'));
        htmx.swap(rows(), fitting, { swapStyle: 'beforeend', swapDelay: 0, settleDelay: 20 });
        this.dispatchEvent(new CustomEvent('rows'));
        return true;
      } catch {
        return false;
      }
    }

    // poll asks every 15 s, since all places are taken, and looks for one each time.
    async poll() {
      this.set('polling');
      clearTimeout(this.timers.retry);
      const answered = await this.ask();
      if (this.mode !== 'polling' || this.es) return;
      if (!answered) return this.fail();
      this.timers.retry = setTimeout(() => this.start(), this.head > this.cursor() && !this.held ? 0 : POLL);
    }

    watch() {
      const slept = performance.now() - (this.ticked || performance.now()) > SLEPT;
      this.ticked = performance.now();
      const silent = this.mode === 'open' ? performance.now() - this.spoke : 0;
      if (silent > SILENCE) this.fail();
      else if (slept || (silent > DOUBT && this.doubted !== this.spoke)) {
        this.doubted = this.spoke;
        this.wake();
      }
      this.dispatchEvent(new Event('tick'));
    }

    visibility() {
      clearTimeout(this.timers.hide);
      if (document.hidden) this.timers.hide = setTimeout(() => this.hide(), HIDDEN);
      else this.wake();
    }

    hide() {
      if (this.mode === 'gone' || this.closed) return;
      this.drop();
      leavePlace();
      this.set('hidden');
    }

    // wake fetches before it trusts what the page shows. A stream that still
    // stands stays, unless what it should have brought had to be fetched.
    async wake() {
      if (document.hidden || this.closed || this.mode === 'gone' || this.waking) return;
      this.waking = true;
      const open = this.mode === 'open', before = this.cursor();
      if (!open) {
        this.drop();
        this.lostAt ||= performance.now();
        this.set('lost');
      }
      const answered = await this.ask();
      this.waking = false;
      if (this.mode === 'gone') return;
      this.failures = 0;
      if (!open) return this.start();
      if (!answered || this.cursor() !== before) this.again();
    }

    now() { this.failures = 0; this.wake(); }

    // hold keeps the page as it is. The connection stays, to count what is newer.
    hold(on) {
      if (this.mode === 'gone' || this.held === on) return;
      this.held = on;
      this.dispatchEvent(new Event('mode'));
      if (on) return;
      if (this.mode === 'open') this.again(); else this.wake();
    }

    // gone is for good: the person has signed out, or may not read this any more.
    gone(why) {
      this.drop();
      leavePlace();
      this.why = why;
      this.set('gone');
      return true;
    }

    close() {
      this.closed = true;
      this.readyState = 2;
      this.drop();
      leavePlace();
      for (const t of Object.values(this.timers)) { clearTimeout(t); clearInterval(t); }
    }
  }

  // soon asks, and again while there is no answer: after a sleep or a change of the
  // network the browser's idle connections may all be dead, and it tries each.
  function soon(url) {
    const signal = AbortSignal.timeout(OPEN_LIMIT);
    const ask = () => fetch(url, { headers: { 'HX-Request': 'true' }, cache: 'no-store', redirect: 'error', signal });
    return new Promise((resolve, reject) => {
      let left = TRIES;
      for (let i = 0; i < TRIES; i++) {
        setTimeout(() => (signal.answered ? left-- : ask().then((res) => { signal.answered = true; resolve(res); }, (err) => { if (--left === 0) reject(err); })), i * NUDGE);
      }
    });
  }

  // Places: locks where the browser has them; on plain http it has none, and a
  // page marks its place in storage that all pages of the server share.
  let place = null;

  async function takePlace() {
    if (place) return true;
    for (let i = 0; i < PLACES && !place; i++) place = await (navigator.locks ? lockPlace(i) : markPlace(i));
    return place !== null;
  }

  function lockPlace(i) {
    return new Promise((resolve) => {
      navigator.locks.request('holdfast-stream-' + i, { ifAvailable: true }, (lock) => {
        if (!lock) { resolve(null); return null; }
        return new Promise((release) => resolve({ leave: release }));
      }).catch(() => resolve(null));
    });
  }

  // Several pages may mark one place at the same moment, each before it sees the
  // others: the last mark counts, and whoever finds another's in its place gives
  // way. It looks before it writes, so that a mark is never taken back.
  const me = String(Math.random());

  function markPlace(i) {
    const name = 'holdfast-stream-' + i;
    const whose = () => JSON.parse(localStorage.getItem(name) || 'null');
    const stale = (taken) => Date.now() - taken.at >= 15000 || taken.at > Date.now();
    const first = whose();
    if (first && first.who !== me && !stale(first)) return null;
    const mark = () => localStorage.setItem(name, JSON.stringify({ who: me, at: Date.now() }));
    mark();
    let marked = Date.now();
    const mine = { leave: () => { end(); if (whose()?.who === me) localStorage.removeItem(name); } };
    const look = () => {
      const now = whose();
      if (now && now.who !== me) { end(); return give(mine); }
      if (!now || Date.now() - marked >= 5000) { mark(); marked = Date.now(); }
    };
    const hear = (e) => { if (e.key === name) look(); };
    const timer = setInterval(look, 1000);
    window.addEventListener('storage', hear);
    function end() {
      clearInterval(timer);
      window.removeEventListener('storage', hear);
    }
    return mine;
  }

  // give gives way to another page, which has the same place.
  function give(mine) {
    if (place !== mine) return;
    place = null;
    ResumableSource.only?.displaced();
  }

  function leavePlace() {
    if (place) place.leave();
    place = null;
  }
  // A page that is left may be kept, to go back to: it must not keep its connection
  // then, of which a browser has six.
  window.addEventListener('pagehide', () => { leavePlace(); ResumableSource.only?.hide(); });

  // The extension asks again when a part of the page is processed again: one
  // source stays the only one.
  htmx.createEventSource = (url) => {
    const only = ResumableSource.only;
    return only && !only.closed ? only : new ResumableSource(url);
  };
  window.holdfast = {
    source: () => ResumableSource.only,
    // path is where the page can be read: one that answers a form stands at the form's address.
    path: () => document.getElementById('live')?.dataset.session ?? location.pathname,
  };
})();
