// Forms of a session's page are sent without leaving it: the server answers with
// the parts that changed, and says what was recorded. Without this script, or
// where anything here fails, the same forms are sent as plain posts. Nothing is
// shown as done before the server has answered; what was typed stays until then.
(() => {
  'use strict';
  const $ = (id) => document.getElementById(id);
  const hf = window.holdfast;
  const live = $('live');

  for (const el of document.querySelectorAll('.manual-only')) el.hidden = true; // a script does it

  // ---- sending

  if (live) {
    document.addEventListener('submit', (e) => {
      const form = e.target;
      if (e.defaultPrevented || form.method !== 'post' || !form.closest('#live') || form.dataset.plain !== undefined) return;
      if (form.dataset.sending) { e.preventDefault(); return; }
      e.preventDefault();
      send(form, e.submitter);
    });
  }

  async function send(form, button) {
    stopKeeping(form);
    form.dataset.sending = '1';
    const words = button?.textContent;
    if (button) {
      button.setAttribute('aria-disabled', 'true');
      button.textContent = 'Sending…';
    }
    const done = () => {
      delete form.dataset.sending;
      if (button?.isConnected) {
        button.removeAttribute('aria-disabled');
        button.textContent = words;
      }
    };
    const body = new URLSearchParams(new FormData(form));
    if (button?.name) body.set(button.name, button.value);
    // Entries bring the form a new key. What may have been recorded already must
    // go again under the one that it went under first, or it is recorded twice.
    body.set('idempotency_key', form.dataset.key ||= body.get('idempotency_key'));
    let res, html;
    try { // a form that was taken leads to the page, which answers a script with its parts
      res = await fetch(button?.getAttribute('formaction') || form.action, { method: 'POST', body, headers: { 'HX-Request': 'true' }, signal: AbortSignal.timeout(20000) });
      html = await res.text();
    } catch {
      done();
      return hf.covered ? undefined : lost(form, button);
    }
    done();
    if (hf.covered) return; // what was typed is kept, under this key
    const taken = res.redirected; // the form was taken, whatever became of the page that it led to
    const refusal = taken || res.ok ? null : refusalIn(html);
    if (taken || (refusal && res.status < 500 && ![401, 409, 429].includes(res.status))) delete form.dataset.key; // it is known what became of it
    if (taken) {
      const whole = res.ok && res.headers.get('X-Holdfast-Head');
      settled(form, body, whole ? res.headers.get('X-Holdfast-Said') || 'Recorded.' : 'Recorded. What came of it will show here.', whole ? html : '', res.headers.get('X-Holdfast-Of') || '');
      if (!whole) hf.source()?.wake();
      return;
    }
    if (refusal) {
      if (res.status === 401) hf.keepTyped(); // with the key that it went under
      show(form, refusal);
      if (res.status === 409 || res.status === 410) hf.refresh?.(); // what stands here is behind
      return;
    }
    if (res.status === 401) { location.href = '/login?next=' + encodeURIComponent(hf.path()); return; }
    lost(form, button); // a proxy's words, not ours
  }

  // refusalIn takes what a page of ours says went wrong out of the page.
  function refusalIn(html) {
    const doc = new DOMParser().parseFromString(html, 'text/html');
    const el = doc.querySelector('[data-testid=error-summary], [data-testid=failure], [data-testid=signed-out-notice]');
    if (!el) return null;
    for (const h of el.querySelectorAll('h1')) {
      const h2 = doc.createElement('h2');
      h2.append(...h.childNodes);
      h.replaceWith(h2);
    }
    for (const id of el.querySelectorAll('[id]')) if ($(id.id)) id.removeAttribute('id');
    el.classList.remove('wrap', 'medium');
    return document.adoptNode(el);
  }

  // hasFocus: else the person has gone on to something else, and is left there.
  function hasFocus(form) {
    const at = document.activeElement;
    return !at || at === document.body || (form.contains(at) && !at.matches('textarea'));
  }

  function settled(form, sent, said, html, of) {
    const card = form.closest('.card, .notice, li');
    const writes = document.activeElement?.matches('textarea') && form.contains(document.activeElement);
    const here = hasFocus(form) || (writes && document.activeElement.value.replace(/\r?\n/g, '\r\n') === sent.get(document.activeElement.name)?.replace(/\r?\n/g, '\r\n'));
    if (here && form.contains(document.activeElement)) document.activeElement.blur();
    for (const t of form.querySelectorAll('textarea')) { // what was written since stays
      const same = t.value.replace(/\r?\n/g, '\n') === (sent.get(t.name) || '').replace(/\r?\n/g, '\n');
      if (same) t.value = '';
      t.defaultValue = '';
      if (t.matches('[data-unsent]')) {
        holdVersion(t.form, '');
        kept = null;
        if (!same) keepSoon();
      }
    }
    clear();
    hf.sentTyped(form);
    if (form.closest('.queue')) card?.remove();
    form.closest('#needs-list > *')?.remove(); // it is answered: by this form
    if (html) hf.swapParts(html, true);
    $('flash').replaceChildren(notice('ok', said, of));
    hf.say(said);
    if (here) focusAfter(form, card);
  }

  function focusAfter(form, card) {
    if (form.closest('#composer') && !card) return $('text')?.focus();
    const next = document.querySelector('#needs-list .card h3');
    if (form.closest('.queue') || form.dataset.testid === 'withdrawal') {
      return (document.querySelector('#queue-box button') || $('text'))?.focus();
    }
    if (next) next.tabIndex = -1;
    (next || $('needs'))?.focus();
  }

  // notice ties the words to the request or call that they are about.
  function notice(kind, words, of) {
    const p = document.createElement('p');
    p.className = 'notice ' + kind;
    p.dataset.testid = 'notice';
    if (of) p.dataset.of = of;
    p.textContent = words;
    return p;
  }

  // show puts a refusal beside its form; the text stays in the form.
  function show(form, ...content) {
    clear();
    const box = document.createElement('div');
    box.className = content.some((el) => el.matches?.('.notice')) ? 'refusal' : 'refusal notice bad';
    box.tabIndex = -1;
    box.dataset.testid = 'refusal';
    box.append(...content);
    const here = hasFocus(form) || form.contains(document.activeElement) && document.activeElement.matches('button');
    form.before(box);
    hf.reveal(form); // what it would send again
    if (here) box.focus(); else hf.sayNow(box.textContent.replace(/\s+/g, ' ').trim());
    if (field()?.form === form) keepSoon();
  }

  function clear() {
    for (const el of document.querySelectorAll('.refusal')) el.remove();
  }

  // lost: whether it was recorded isn't known. The key settles it.
  function lost(form, button) {
    const p = document.createElement('p');
    p.textContent = 'No answer from the server. It may or may not have been recorded. Sending it again is safe: it is recorded once.';
    const again = document.createElement('button');
    again.type = 'button';
    const said = (button?.firstChild?.textContent ?? '').replace(/\s+/g, ' ').trim();
    again.textContent = 'Send it again' + (said && `: ${said}`);
    again.dataset.testid = 'send-again';
    again.addEventListener('click', () => { clear(); send(form, button); });
    show(form, p, again);
  }

  // ---- text that was typed and not sent is kept on the server for its owner

  const ELSEWHERE = 'Not kept: another tab or device keeps another text here. “Keep the text” replaces it.';
  let timer = 0, keeping = false, kept = null, spent = '', asked = false;
  const field = () => document.querySelector('[data-unsent]');
  const hidden = (form, name) => form.querySelector(`[name=${name}]`)?.value || '';

  function keep() {
    const el = field();
    if (!el) return null;
    const k = { url: el.dataset.unsent, key: el.form.dataset.key || hidden(el.form, 'idempotency_key') };
    k.body = new URLSearchParams({ text: el.value, idempotency_key: k.key, for: hidden(el.form, 'for'), kept_at: hidden(el.form, 'kept_at') });
    // A save by itself replaces no text of another tab or device; one that comes
    // after its text was sent keeps nothing.
    if (!asked) k.body.set('typing', k.key === spent ? 'again' : '1');
    return k;
  }

  // Where another one keeps a text the button stands that replaces it.
  const button = document.querySelector('[data-testid=keep]');
  button?.addEventListener('click', (e) => {
    e.preventDefault();
    asked = true;
    keepNow();
  });

  function offerKeeping(on) {
    const box = button?.parentElement;
    if (!box || box.hidden === !on) return;
    if (box.contains(document.activeElement)) field()?.focus();
    box.hidden = !on;
    if (on) hf.sayNow?.(ELSEWHERE);
  }

  function replaced(html) {
    $('unsent-replaced')?.remove();
    $('unsent-state')?.insertAdjacentHTML('afterend', html);
  }

  // The form carries the version that is kept of its text: when it is sent, under
  // whichever key, that one is forgotten, and none that another tab has kept.
  function holdVersion(form, version) {
    const el = form?.querySelector('[name=kept_at]');
    if (el) el.value = version;
  }

  // One save at a time, or an older text could come last.
  async function keepNow() {
    clearTimeout(timer);
    timer = 0;
    if (keeping) return keepSoon();
    const k = keep();
    asked = false;
    if (!k || field().form.dataset.sending) return;
    keeping = true;
    const state = $('unsent-state'), form = field().form, text = k.body.get('text');
    try {
      const res = await fetch(k.url, { method: 'POST', body: k.body, headers: { 'HX-Request': 'true' }, redirect: 'error', signal: AbortSignal.timeout(10000) });
      const elsewhere = res.status === 409 && res.headers.has('X-Holdfast-Kept');
      if (res.status === 200) replaced(await res.text());
      const version = res.headers.get('X-Holdfast-Kept') || ''; // none: it is empty, or was sent under this key
      if (res.ok && (version || !text)) {
        kept = text;
        holdVersion(form, version);
      }
      // It was sent under this key, and still stands here to be written on: who went
      // back to a form that was sent does that. What isn't the same is kept from now on.
      if (res.ok && !version && text && k.body.get('typing') === '1' && !form.dataset.sending && keep()?.key === k.key) {
        spent = k.key;
        keepSoon();
      }
      if (res.ok || elsewhere) offerKeeping(elsewhere);
      if (state) state.textContent = res.ok ? (version ? 'Kept on the server, not sent.' : '') : elsewhere ? ELSEWHERE : res.status === 413 ? 'This is too long to be kept, or to be sent.' : 'Not kept: it stands here only.';
    } catch {
      if (state) state.textContent = 'Not kept yet: no answer from the server.';
    }
    keeping = false;
  }

  function keepSoon() {
    clearTimeout(timer);
    timer = setTimeout(keepNow, 700);
  }
  hf.unkept = () => field() && field().value !== field().defaultValue && field().value !== kept;

  function stopKeeping(form) {
    if (!field() || field().form !== form) return;
    clearTimeout(timer);
    timer = 0;
    if ($('unsent-state')) $('unsent-state').textContent = '';
    offerKeeping(false);
  }

  document.addEventListener('input', (e) => {
    if (e.target.matches('[data-unsent]')) keepSoon();
  });

  // A browser may refuse storage; nothing depends on it.
  function store(name, value) {
    try { sessionStorage.setItem(name, value); } catch { /* as said */ }
  }
  function take(name) {
    try {
      const value = sessionStorage.getItem(name);
      sessionStorage.removeItem(name);
      return value;
    } catch { return null; }
  }
  // What is typed as the page goes is sent behind it, and may come after the
  // request for the next page: that one looks again.
  window.addEventListener('pagehide', () => {
    if (!hf.unkept()) return;
    const k = keep();
    navigator.sendBeacon(k.url, k.body);
    store('holdfast-left', k.url);
  });
  const left = take('holdfast-left');
  const here = field()?.dataset.unsent ?? (live && live.dataset.session + '/unsent');
  if (left && here === left) [300, 1500].forEach((ms) => setTimeout(look, ms));

  const ENDED = '[data-testid=unsent-closed]'; // where the text stands if the session has ended
  async function look() {
    const el = field();
    if (el ? el.value !== el.defaultValue : document.querySelector(ENDED)) return;
    try {
      const doc = new DOMParser().parseFromString(await (await fetch(left.replace(/\/unsent$/, ''))).text(), 'text/html');
      const there = doc.querySelector('[data-unsent]');
      if (!el) $('composer').append(...doc.querySelectorAll(ENDED));
      if (!el || !there?.value || el.value !== el.defaultValue) return;
      el.value = el.defaultValue = there.value;
      holdVersion(el.form, hidden(there.form, 'kept_at'));
    } catch { /* it is on the server, and the next page has it */ }
  }

  // ---- what was on the screen

  if (live) {
    let told = Number(live.dataset.seen);
    const tell = () => {
      const last = Number(document.querySelector('#journal-list > li[data-seq]:last-of-type')?.dataset.seq || 0);
      if (last <= told || hf.source()?.mode === 'gone') return;
      told = last;
      navigator.sendBeacon(live.dataset.session + '/seen', new URLSearchParams({ seq: String(last) }));
    };
    document.addEventListener('visibilitychange', () => document.hidden && tell());
    window.addEventListener('pagehide', tell);
    setInterval(() => !document.hidden && tell(), 20000);
    setTimeout(() => !document.hidden && tell(), 3000);
  }

  // ---- notifications, after a click that asks for them

  const wanted = () => { try { return localStorage.getItem('holdfast-notify') === '1'; } catch { return false; } };
  hf.wantsNotice = wanted;
  const offer = $('notify');
  if (offer && 'Notification' in window) {
    const state = () => {
      offer.hidden = Notification.permission === 'denied';
      const on = Notification.permission === 'granted' && wanted();
      offer.setAttribute('aria-pressed', String(on));
    };
    offer.closest('[hidden]')?.removeAttribute('hidden');
    offer.addEventListener('click', async () => {
      const on = offer.getAttribute('aria-pressed') === 'true';
      if (!on && await Notification.requestPermission() !== 'granted') return state();
      try { localStorage.setItem('holdfast-notify', on ? '0' : '1'); } catch { /* then it holds for nothing */ }
      state();
    });
    state();
  }
  // The text of a request is never in it: it could not be read there.
  hf.notify = (tag, words) => {
    if (!document.hidden || !('Notification' in window) || Notification.permission !== 'granted' || !wanted()) return;
    const n = new Notification(words, { tag, icon: $('favicon')?.href });
    n.addEventListener('click', () => { window.focus(); n.close(); });
  };
})();
