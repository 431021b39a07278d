// What a session's page shows of itself while it is open: whether it is still
// observed, as a fact of its own and never mixed with what the session does;
// new entries; cards that come and go without taking the focus or the text that
// is being written; and the few words that are said aloud.
(() => {
  'use strict';
  const live = document.getElementById('live');
  const $ = (id) => document.getElementById(id);
  const hf = window.holdfast;

  // ---- what the server sends, fitted to what the page has

  // fit takes out rows that stand here already, parts that have no place here, and
  // the composer's key, which is new only after the form was taken (settled).
  hf.fit = (html, settled) => {
    const t = document.createElement('template');
    t.innerHTML = html;
    // An answer may come after a stream that has told more since: what is older is not put in its place.
    const state = t.content.querySelector('#page-state');
    const late = state && $('page-state') && older(state, $('page-state'));
    for (const el of [...t.content.children]) {
      const oob = el.hasAttribute('hx-swap-oob');
      const key = el.id === 'composer-key';
      if (oob ? !$(el.id) || (key ? !settled : late) : el.matches('li') && $(el.id)) el.remove();
    }
    return t.innerHTML;
  };

  function older(a, b) {
    const [headA, nowA, headB, nowB] = [a.dataset.head, a.dataset.now, b.dataset.head, b.dataset.now].map(Number);
    return headA < headB || (headA === headB && nowA < nowB);
  }

  if (!live) return;
  const list = $('journal-list');
  const milestones = new Set(['call.settled', 'call.unknown', 'turn.ended', 'message.completed', 'session.blocked', 'limit.reached', 'step.recovered']);

  // ---- what is said aloud: milestones only, at most one in ten seconds

  const every = live.dataset.announce || 'milestones';
  let waiting = [];
  let spoken = -Infinity;
  const speak = (id, words) => {
    if (hf.covered) return; // to nobody
    const el = $(id);
    el.textContent = '';
    requestAnimationFrame(() => { el.textContent = words; });
  };
  hf.say = (words) => {
    if (every === 'off') return;
    waiting.push(words);
    flush();
  };
  hf.sayNow = (words) => speak('say-now', words);
  function flush() {
    if (!waiting.length || performance.now() - spoken < 10000) return;
    spoken = performance.now();
    const more = waiting.length - 1;
    speak('say', waiting.at(-1).replace(more ? /\.$/ : '', '') + (more ? `, and ${count(more, 'more entry', 'more entries')}` : ''));
    waiting = [];
  }

  // ---- time: the server's clock is the only one

  let clockAt = performance.now();
  let clock = Number(live.dataset.now);
  const now = () => clock + (performance.now() - clockAt);
  hf.now = now;
  function setClock(ms) {
    if (!Number.isFinite(ms)) return;
    clock = ms;
    clockAt = performance.now();
  }
  const took = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    const two = (a, au, b, bu) => (b ? `${a} ${au} ${b} ${bu}` : `${a} ${au}`);
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 86400) return two(Math.floor(s / 3600), 'h', Math.floor(s % 3600 / 60), 'min');
    return two(Math.floor(s / 86400), 'd', Math.floor(s % 86400 / 3600), 'h');
  };
  const count = (n, one, many) => `${n} ${n === 1 ? one : many}`;
  const stamp = (ms) => new Date(ms).toISOString().slice(11, 19);
  const number = (n) => '#' + String(n).padStart(4, '0');
  function ages() {
    // Entries that are pieces come without the parts of the page that the server draws.
    const latest = Date.parse(lastRow()?.dataset.at);
    for (const el of document.querySelectorAll('[data-last]')) if (latest > Number(el.dataset.since)) el.dataset.since = latest;
    for (const el of document.querySelectorAll('[data-since]')) {
      const words = took(now() - Number(el.dataset.since));
      if (el.textContent !== words) el.textContent = words;
    }
  }

  // ---- the second reading

  const source = () => hf.source();
  const LOST = 60000;      // of silence: then it is called disconnected
  const FAILING = 8000;    // of tries that fail: likewise
  let checked = now();     // when the page was last known to be what the server has

  function view() {
    const s = source();
    if (!s) return 'manual';
    if (s.mode === 'gone') return 'signed_out';
    if (s.held) return 'held';
    switch (s.mode) {
      case 'polling': return 'polling';
      case 'open': return 'live';
      case 'connecting': return s.heard ? 'live' : 'manual';
    }
    const lost = performance.now() - (s.lostAt || performance.now());
    if (lost > LOST || (s.failures > 2 && lost > FAILING)) return 'disconnected';
    return lost > 1500 || s.mode === 'hidden' ? 'reconnecting' : shown;
  }

  function lastRow() {
    let li = list.lastElementChild;
    while (li && !li.dataset.seq) li = li.previousElementSibling;
    return li;
  }

  const looks = {
    live: ['Live', 'eye'], polling: ['Refreshing every 15 s', 'eye'], reconnecting: ['Reconnecting', 'eyeoff'], disconnected: ['Disconnected', 'eyeoff'],
    signed_out: ['Signed out', 'lock'], held: ['Held by you', 'eyeheld'], manual: ['', 'eye'],
  };
  let shown = 'manual';
  let lostSince = 0;
  let heldAt = now();
  let saidLost = false;
  let drawn = false;       // the last reading of a page that is covered

  function detail(key) {
    const s = source();
    const last = s.cursor();
    const age = took(now() - Date.parse(lastRow()?.dataset.at));
    switch (key) {
      case 'live': return `Entry ${number(last)}, ${age} ago. Checked ${took(performance.now() - s.heard)} ago.`;
      case 'polling': return `Checked ${took(performance.now() - s.heard)} ago.`;
      case 'reconnecting': return `Since ${stamp(lostSince)}.`;
      case 'disconnected': { // it asks for a while, several times, and then waits
        const wait = s.asking ? 0 : Math.ceil((s.retryAt - performance.now()) / 1000);
        return `Since ${stamp(lostSince)}. ${wait > 0 ? `Trying again in ${wait} s.` : 'Asking the server.'}`;
      }
      case 'signed_out': return s.why === 'revoked' ? 'The work continues. You may not see this session any more.' : 'The work continues. Sign in to see it.';
      case 'held': return `As of ${stamp(heldAt)}. ${count(Math.max(0, s.head - last), 'newer entry', 'newer entries')}.`;
    }
    return '';
  }

  function setText(el, words) {
    if (el && el.textContent !== words) el.textContent = words;
  }

  // render writes the view's reading, and marks the other two when they are only last known.
  function render() {
    const s = source();
    if (!s || drawn) return;
    const key = view();
    if (key === 'live' || key === 'polling') { checked = now(); lostSince = 0; } else lostSince ||= now();
    if (key !== 'held') heldAt = now();
    const cell = $('reading-view');
    if (key !== shown) {
      cell.dataset.state = key;
      if (key !== 'manual') {
        cell.querySelector('use').setAttribute('href', '#i-' + looks[key][1]);
        setText(cell.querySelector('.words'), looks[key][0]);
      }
      changed(shown, key);
      shown = key;
    }
    if (key !== 'manual') setText(cell.querySelector('.cell-d'), detail(key));
    const stale = key === 'disconnected' || key === 'signed_out' || key === 'held';
    document.documentElement.toggleAttribute('data-lost', stale);
    for (const id of ['reading-execution', 'reading-needs']) {
      $(id).classList.toggle('stale', stale);
      $(id).querySelector('.band').hidden = !stale;
    }
    $('try-now').hidden = key !== 'disconnected';
    for (const el of document.querySelectorAll('.last-known')) setText(el, stale ? ' last known' : '');
    for (const el of document.querySelectorAll('#reading-execution .as-of')) setText(el, stale ? `As of ${stamp(checked)}. May have changed since. ` : key === 'manual' ? el.textContent : '');
    for (const el of document.querySelectorAll('#reading-needs .as-of')) setText(el, stale ? 'New requests would not show here. ' : '');
    setText($('lost'), key === 'disconnected' && document.querySelector('#needs-list .card') ? 'You can answer now; the server will say whether the request still stands.' : '');
    newer();
    title();
    if (key === 'signed_out') {
      drawn = true;
      hf.cover(s.why === 'revoked' ? 'other' : 'nobody');
    }
  }

  function changed(from, to) {
    if (saidLost && (to === 'live' || to === 'polling')) {
      saidLost = false;
      const n = added;
      hf.say(`Connected. ${count(n, 'entry', 'entries')} added.`);
    }
  }

  function sayLost() {
    if (!saidLost && lostSince && shown !== 'held' && shown !== 'signed_out' && now() - lostSince > 10000) {
      saidLost = true;
      added = 0;
      hf.say('Connection lost. The work carries on.');
    }
  }

  // ---- entries

  let added = 0;

  // still keeps what the person looks at, or writes in, where it is.
  function still(change) {
    const active = document.activeElement;
    const anchor = active && active !== document.body && inView(active) ? active : window.scrollY > 0 ? [...list.children].find(inView) : null;
    const before = anchor?.getBoundingClientRect().top;
    change();
    if (anchor?.isConnected) {
      const moved = anchor.getBoundingClientRect().top - before;
      if (moved) window.scrollBy({ top: moved, behavior: 'instant' });
    }
  }
  hf.still = still;

  function inView(el) {
    const r = el.getBoundingClientRect();
    return r.height > 0 && r.bottom > 0 && r.top < window.innerHeight;
  }

  let follow = false;
  let before = 0;
  const atEnd = () => {
    const end = $('latest');
    return window.scrollY > 0 && inView(end) && getSelection().isCollapsed && !$('composer').contains(document.activeElement);
  };

  document.body.addEventListener('htmx:sseBeforeMessage', (e) => {
    const s = source();
    if (s.held || Number(e.detail.lastEventId) <= s.cursor()) { e.preventDefault(); return; }
    beforeRows();
  });
  document.body.addEventListener('htmx:sseMessage', () => afterRows());

  let anchorAt = null;
  function beforeRows() {
    before = source().cursor();
    follow = atEnd();
    const active = document.activeElement;
    const composing = $('composer').contains(active) && inView(active);
    anchorAt = composing ? { el: active, top: active.getBoundingClientRect().top } : null;
  }

  function afterRows() {
    const fresh = [];
    for (let li = list.lastElementChild; li && !(Number(li.dataset.seq) <= before); li = li.previousElementSibling) if (li.dataset.seq) fresh.unshift(li);
    still(() => { for (const li of fresh) { write(li); finish(li); } });
    for (const li of fresh) tellPieces(li);
    thin(fresh);
    added += fresh.length;
    for (const li of fresh) {
      if (every === 'all' ? !li.hidden : milestones.has(li.dataset.kind)) {
        const h = li.querySelector('h3');
        if (h) hf.say(h.textContent.replace(/\s+/g, ' ').trim());
      }
    }
    if (anchorAt?.el.isConnected) window.scrollBy({ top: anchorAt.el.getBoundingClientRect().top - anchorAt.top, behavior: 'instant' });
    if (follow) $('latest').scrollIntoView({ block: 'end', behavior: 'instant' });
    else unread.push(...fresh.filter((li) => !li.hidden));
    setText($('entry-count'), count(source().cursor(), 'entry', 'entries') + ' in all');
    setText($('latest-words'), `End of the journal, entry ${number(source().cursor())}${lastRow()?.hidden ? ', which stands within a row above' : ''}.`);
    render();
  }

  // write takes the text that a piece brings to its message, which stands where it
  // began. A row comes once, and so does what it brings.
  const coming = new Map(); // what isn't drawn yet, by draft
  function write(li) {
    const to = li.dataset.addsTo && $(li.dataset.addsTo);
    if (to && Number(li.dataset.seq) > Number(to.dataset.through)) {
      if (!coming.size) requestAnimationFrame(draw);
      const more = coming.get(to) || document.createDocumentFragment();
      coming.set(to, more);
      more.append(...li.childNodes);
      keepEnd(more, to);
      to.dataset.through = li.dataset.seq;
    }
    if (li.dataset.addsTo) li.replaceChildren();
  }

  // draw adds to the drafts what has come since the last frame: a long text takes long
  // to lay out, and an agent may bring hundreds of pieces at once.
  function draw() {
    const end = atEnd();
    still(() => {
      for (const [to, more] of coming) {
        if (!to.isConnected) continue; // it stands there whole by now
        to.append(more);
        to.normalize();
        keepEnd(to, to);
      }
    });
    coming.clear();
    if (end) $('latest').scrollIntoView({ block: 'end', behavior: 'instant' });
  }

  // keepEnd keeps as much of a draft as a page has that is opened now: its end.
  function keepEnd(text, draft) {
    let over = text.textContent.length - Number(draft.dataset.most);
    if (over > 0) $(draft.id + '-before').hidden = false;
    while (over > 0) {
      const first = text.firstChild, size = first.textContent.length;
      if (size <= over || first.nodeType !== Node.TEXT_NODE) first.remove();
      else first.deleteData(0, /[\uDC00-\uDFFF]/.test(first.data[over]) ? over + 1 : over);
      over -= size;
    }
  }

  // finish takes the row of a message that was being written out of sight: the one
  // that has come has all of it.
  function finish(li) {
    const row = li.dataset.finishes && $(li.dataset.finishes)?.closest('li');
    if (!row) return;
    const open = row.querySelector('details[open]');
    if (open) li.querySelector('details')?.setAttribute('open', '');
    const had = row.contains(document.activeElement);
    row.replaceChildren();
    row.hidden = true;
    tellPieces(rowFrom(row, 'nextElementSibling'));
    if (had) { const to = li.querySelector('summary, .rail a'); to?.focus({ preventScroll: true }); }
  }

  // tellPieces lets a row name the pieces between it and the row before: a number that
  // stands nowhere would look like a loss.
  const rowFrom = (li, way) => { do li = li[way]; while (li && (li.hidden || !li.dataset.seq)); return li; };
  function tellPieces(li) {
    const rail = li && !li.hidden && li.querySelector('.rail');
    const row = rail && rowFrom(li, 'previousElementSibling');
    if (!row) return;
    const first = Number(row.dataset.seq) + 1, last = Number(li.dataset.seq) - 1;
    let el = rail.querySelector('.with');
    if (first > last) { el?.remove(); return; }
    if (!el) {
      el = document.createElement('span');
      el.className = 'with';
      el.title = list.dataset.pieces;
      rail.append(el);
    }
    setText(el, `with ${number(first)}${first < last ? ` to ${number(last)}` : ''}`);
  }

  // thin takes pieces of output out again that were shown in a box long since:
  // they have nothing to read, and an hour of them would make the page slow.
  const pieces = [];
  function thin(fresh) {
    for (const li of fresh) if (li.hidden) pieces.push(li);
    while (pieces.length > 500) pieces.shift().remove();
  }

  let unread = []; // entries that have come and weren't on the screen yet
  function newer() {
    const s = source();
    while (unread.length && !(unread[0].isConnected && unread[0].getBoundingClientRect().top >= window.innerHeight)) unread.shift();
    const behind = s.held ? Math.max(0, s.head - s.cursor()) : unread.filter((li) => li.getClientRects().length).length;
    const link = $('newer');
    link.hidden = behind === 0;
    setText(link, count(behind, 'newer entry', 'newer entries') + (s.held ? ' not shown' : ' below'));
  }

  // ---- what was said of a form that was taken goes when more has happened since

  const LATER = ['turn.started', 'turn.ended', 'prompt.admitted', 'prompt.withdrawn', 'permission.replied', 'call.resolved', 'attempt.resolved', 'interrupt.requested', 'continuation.requested']
    .map((kind) => `li[data-kind="${kind}"]`).join();
  const READ = 10000;            // for so long it stands in any case
  const notices = new WeakMap(); // what each is about, and since when it stands

  function outlive() {
    for (const p of document.querySelectorAll('.notice.ok')) {
      if (!notices.has(p)) notices.set(p, { since: performance.now(), about: Number(/#(\d+)/.exec(p.textContent)?.[1] || source().cursor()) });
      const { since, about } = notices.get(p);
      if (performance.now() - since < READ || p.contains(document.activeElement)) continue;
      if (!(Number([...list.querySelectorAll(LATER)].at(-1)?.dataset.seq) > about)) continue;
      // It goes with its place, so that it leaves no hole. What stands below it moves up
      // then, so not while somebody may be about to press something there, or writes.
      if (!document.hidden && inView(p) && (pressable() || writing())) continue;
      still(() => (p.parentElement.matches('main > .wrap') ? p.parentElement : p).remove());
    }
  }
  const pressable = () => [...$('needs-list').querySelectorAll('button, .btn')].some(inView);
  const writing = () => document.activeElement.matches('textarea, input') && dirty(document.activeElement.form ?? list);

  // ---- parts of the page that the server draws anew

  document.body.addEventListener('htmx:oobBeforeSwap', (e) => {
    const next = e.detail.fragment.firstElementChild;
    const have = e.detail.target;
    if (!next || next.id !== have.id) return;
    e.detail.shouldSwap = false;
    still(() => (have.dataset.merge === 'cards' ? mergeCards(have, next) : replace(have, next)));
    swapped = performance.now();
    setClock(Number($('page-state')?.dataset.now));
    render();
    ages();
  });

  const dirty = (el) => [...el.querySelectorAll('textarea, input:not([type=hidden])')].some((f) => (f.type === 'radio' || f.type === 'checkbox' ? f.checked !== f.defaultChecked : f.value !== f.defaultValue));
  const busy = (el) => el.contains(document.activeElement) || dirty(el);

  // replace swaps a part, unless somebody writes in it; what had the focus keeps it.
  function replace(have, next) {
    if (have.isEqualNode(next)) return;
    const focused = have.contains(document.activeElement) ? document.activeElement.id : '';
    if (focused && !next.querySelector('#' + CSS.escape(focused))) {
      const held = document.activeElement;
      if (held.matches('textarea, input, select')) return;
    }
    for (const d of have.querySelectorAll('details[open][id]')) next.querySelector('#' + CSS.escape(d.id))?.setAttribute('open', '');
    have.replaceWith(next);
    htmx.process(next);
    if (focused) ($(focused) || hf.fallback(next))?.focus({ preventScroll: true });
  }
  hf.fallback = (part) => (part.id === 'queue-box' ? part.querySelector('button') || $('text') : null);

  // mergeCards leaves a card that hasn't changed as it stands, and one that is
  // being read or written in too: a line above it says that it has changed.
  function mergeCards(have, next) {
    const known = new Set([...have.children].map((el) => el.id));
    const want = [...next.children];
    const wanted = new Set(want.map((el) => el.id));
    for (const old of [...have.children]) {
      if (wanted.has(old.id) || old.querySelector('[data-sending]')) continue; // an answer is on its way: its own reply will do
      if (busy(old)) setTimeout(() => answered(old)); else old.remove();
    }
    let place = have.firstElementChild;
    for (const el of want) {
      const old = $(el.id);
      if (old && have.contains(old)) {
        if (old.dataset.version !== el.dataset.version || !el.dataset.version) {
          if (el.dataset.version && busy(old)) outdate(old, 'This changed. ', el);
          else { if (place === old) place = el; old.replaceWith(el); htmx.process(el); }
        }
        place = ($(el.id) || el).nextElementSibling;
        continue;
      }
      have.insertBefore(el, place);
      htmx.process(el);
      if (!known.has(el.id)) arrived(el);
    }
  }

  function arrived(card) {
    const h = card.matches('.card') && card.querySelector('h3');
    if (!h) return;
    card.dataset.arrived = performance.now();
    card.classList.add('fresh');
    const words = h.textContent.replace(/\s+/g, ' ').trim().replace(/^Decision:/, 'Decision needed:').replace(/^Reconcile:/, 'To reconcile:');
    hf.sayNow(words);
    hf.notify?.(card.id, card.matches('.card-unk') ? 'A session has something to reconcile' : 'A session needs a decision');
  }

  // outcome is the entry that tells what became of a card: its own, or none.
  function outcome(card) {
    if (card.id !== 'held') return [...list.querySelectorAll(`li[data-of="${CSS.escape(card.id)}"]`)].at(-1);
    const row = [...list.querySelectorAll('li[data-kind="turn.ended"], li[data-kind="continuation.requested"]')].at(-1);
    return row?.dataset.kind === 'continuation.requested' ? row : undefined;
  }

  // answered makes a card that somebody reads say what became of it: the row that
  // tells it stands in the journal by now. What was typed stays to be copied.
  function answered(card) {
    if (card.dataset.answered) return;
    card.dataset.answered = '1';
    const row = outcome(card);
    const told = row?.querySelector('h3 > span')?.textContent.replace(/\s+/g, ' ').trim().replace(/\bit\b/, 'this');
    const words = told ? `${told} at ${row.querySelector('time').textContent}. ` : 'This ended or was answered. ';
    const at = document.activeElement;
    outdate(card, words);
    for (const form of card.querySelectorAll('form')) {
      form.addEventListener('submit', (e) => e.preventDefault(), { capture: true });
      for (const b of form.querySelectorAll('button')) b.remove();
    }
    if (at && !at.isConnected) card.querySelector('h3')?.focus();
    hf.sayNow(words.trim());
  }

  function outdate(card, words, next) {
    card.querySelector('.outdated')?.remove();
    const p = document.createElement('p');
    p.className = 'notice off outdated';
    p.append(words);
    const b = document.createElement('button');
    b.type = 'button';
    b.className = 'btn-s';
    b.textContent = next ? 'Show the change' : 'Take it away';
    b.addEventListener('click', () => {
      if (next) { carry(card, next); card.replaceWith(next); htmx.process(next); } else card.remove();
      $('needs').focus();
    });
    p.append(b);
    card.prepend(p);
  }

  // carry takes what was typed over to the card that takes the place of another.
  function carry(from, to) {
    for (const f of from.querySelectorAll('textarea, input:not([type=hidden])')) {
      const same = [...to.querySelectorAll(f.tagName)].find((g) => g.name === f.name && g.type === f.type && (f.type !== 'radio' || g.value === f.value));
      if (same && f.type === 'radio') same.checked = f.checked; else if (same) same.value = f.value;
    }
    const was = from.querySelector('form')?.dataset.key, form = to.querySelector('form');
    if (was && form) form.dataset.key = was; // it may have been recorded under this one
    hf.reveal(to);
  }

  // ---- title and icon

  function title() {
    const s = $('page-state');
    if (!s) return;
    const lost = shown === 'disconnected';
    const words = (lost ? 'Not connected: ' : '') + s.dataset.title;
    if (document.title !== words && !document.querySelector('#errors:not(.refusal *)')) document.title = words;
    const icon = lost ? s.dataset.iconOffline : s.dataset.icon;
    const link = $('favicon');
    if (link.getAttribute('href') !== icon) link.setAttribute('href', icon);
  }

  // Paper says as of when it is: of a page that follows its session that isn't
  // when it was opened, but when it was last known to be what the server has.
  window.addEventListener('beforeprint', () => {
    render();
    const at = $('as-of');
    if (!at) return; // nobody's any more
    at.dateTime = new Date(checked).toISOString();
    setText(at, new Date(checked).toUTCString().slice(5, 25).replace(/^0/, ''));
  });

  // ---- controls that need a script

  const hold = $('hold');
  hold.hidden = false;
  hold.addEventListener('click', () => {
    const held = !source().held;
    hold.setAttribute('aria-pressed', String(held));
    source().hold(held);
    render();
  });
  $('newer').addEventListener('click', (e) => {
    unread = [];
    if (!source().held) return;
    e.preventDefault();
    hold.setAttribute('aria-pressed', 'false');
    source().hold(false);
  });
  $('try-now').addEventListener('click', () => source().now());

  // Earlier entries come in place; the first of them takes the focus.
  document.addEventListener('click', async (e) => {
    const a = e.target.closest('#earlier a.btn');
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    try {
      const res = await fetch(a.href.split('#')[0], { headers: { 'HX-Request': 'true' }, redirect: 'error' });
      if (!res.ok || !res.headers.get('X-Holdfast-Head')) throw new Error('refused');
      const t = document.createElement('template');
      t.innerHTML = hf.fit(await res.text());
      // :scope finds nothing in a fragment.
      const items = [...t.content.children].filter((el) => el.matches('li'));
      const rows = items.filter((li) => li.dataset.seq);
      const more = t.content.querySelector('#earlier');
      const then = list.querySelector('li[data-seq]:not([hidden])');
      still(() => { list.prepend(...items); tellPieces(then); });
      if (more) $('earlier').replaceWith(more); else $('earlier').remove();
      const first = rows.find((li) => li.getClientRects().length);
      if (first) { first.tabIndex = -1; first.focus(); }
      speak('say', `${count(rows.filter((li) => !li.hidden).length, 'entry', 'entries')} added`);
    } catch {
      location.href = a.href;
    }
  });

  // A worker that falls silent, and a place in the queue, make no entries: where
  // that can be, the parts are asked for when nothing came since the last beat.
  let swapped = performance.now();
  async function refresh(now) {
    if (hf.covered || !now && (!$('page-state').hasAttribute('data-volatile') || performance.now() - swapped < 9000)) return;
    swapped = performance.now();
    try {
      const res = await fetch(hf.path(), { headers: { 'HX-Request': 'true' }, cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(5000) });
      if (res.ok && res.headers.get('X-Holdfast-Head')) hf.swapParts(await res.text());
    } catch { /* the next beat asks again, and the stream tells if the server is away */ }
  }

  hf.refresh = () => refresh(true);

  // swapParts takes parts that came without entries.
  hf.swapParts = (html, asked) => {
    if (hf.covered || source()?.held && !asked) return; // the person wants the page as it is, or isn't there
    const sink = document.createElement('div');
    sink.hidden = true;
    document.body.append(sink);
    htmx.swap(sink, hf.fit(html, asked), { swapStyle: 'innerHTML', swapDelay: 0, settleDelay: 0 });
    sink.remove();
  };

  // ---- begin

  const begin = () => {
    const s = source();
    if (!s) return;
    s.addEventListener('mode', render);
    s.addEventListener('clock', (e) => { setClock(e.detail); refresh(); });
    s.addEventListener('rows-before', beforeRows);
    s.addEventListener('rows', afterRows);
    s.addEventListener('tick', () => { render(); sayLost(); flush(); outlive(); });
    setInterval(ages, 2000);
    render();
  };
  document.addEventListener('htmx:load', begin, { once: true });
})();
