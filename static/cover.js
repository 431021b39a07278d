// A page belongs to whom it was drawn for. When nobody is signed in any more, or
// somebody else is, what it shows is taken out of it: others may sit there now. It
// hears so from the server, at once where another tab signs out or in, and before
// it is shown again where the browser's back button brings it out of its cache.
(() => {
  'use strict';
  const $ = (id) => document.getElementById(id);
  const hf = window.holdfast;
  const root = document.documentElement;
  const viewer = root.dataset.viewer;
  if (!viewer) return;
  const here = root.hasAttribute('data-posted') ? $('live')?.dataset.session ?? '/' : location.pathname + location.search; // where this page can be opened again

  // ---- who is signed in

  // pulse asks what changed, and by that who is signed in; null where that can't be known.
  hf.pulse = async () => {
    let res, now;
    try {
      res = await fetch('/pulse?since=' + (root.dataset.pulse || 0), { headers: { 'HX-Request': 'true' }, cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(10000) });
      if (res.status === 401 && res.headers.has('HX-Redirect')) { hf.cover('nobody'); return null; }
      if (!res.ok) return null;
      now = await res.json();
    } catch { return null; } // it is asked again
    if (now.for !== viewer) { hf.cover('other'); return null; }
    if (hf.covered) { back(); return null; }
    return now;
  };

  // Tabs of a browser tell each other by a mark whose signing in or out they saw;
  // the server says what became of it.
  const mark = 'holdfast-viewer';
  function tell(who) {
    try { if (localStorage.getItem(mark) !== who) localStorage.setItem(mark, who); } catch { /* then they hear of it later */ }
  }
  tell(viewer);
  document.addEventListener('submit', (e) => { if (e.target.getAttribute('action') === '/logout') tell(''); });
  window.addEventListener('storage', (e) => {
    if (e.key === mark && (e.newValue !== viewer || hf.covered)) look([0, 300, 1000, 3000]);
  });
  async function look([wait, ...more]) {
    if (wait === undefined) return;
    await new Promise((then) => setTimeout(then, wait));
    const was = hf.covered;
    await hf.pulse();
    if (hf.covered === was) look(more);
  }

  // A page that waits in the browser's cache shows nothing until it is known whose it is.
  window.addEventListener('pagehide', (e) => root.toggleAttribute('data-away', e.persisted));
  window.addEventListener('pageshow', async (e) => {
    if (!e.persisted) return;
    root.toggleAttribute('data-away', true);
    if (!await hf.pulse() && !hf.covered) { hf.keepTyped(); return location.replace(here); }
    root.removeAttribute('data-away');
  });

  // ---- covering

  const words = {
    nobody: { title: 'Signed out', h: 'You are signed out', p: 'The work continues.', a: 'Sign in to see it', to: '/login?next=' + encodeURIComponent(here) },
    other: { title: 'Covered', h: 'Somebody else is signed in here', p: 'This page was opened by another person, so it shows nothing any more.', a: 'Go to your sessions', to: '/' },
  };

  hf.covered = false;
  hf.cover = (who) => {
    const say = words[who], box = $('signed-out');
    if (!hf.covered) {
      hf.covered = true;
      $('typed-kept').hidden = who === 'other' || !hf.keepTyped();
      hf.source?.()?.gone(who === 'other' ? 'revoked' : 'signed_out'); // its last reading is drawn before anything goes
      if ($('live')) coverSession(); else $('main').replaceChildren(box);
      for (const el of document.querySelectorAll('.sign-out, #nav-count')) el.remove();
      $('keys-help')?.close();
      box.hidden = false;
      $('say').textContent = '';
      $('say-now').textContent = say.h;
    }
    if (who === 'other') { hf.dropTyped(); $('typed-kept').hidden = true; }
    document.title = say.title + ' · Holdfast';
    $('signed-out-h').textContent = say.h;
    $('signed-out-p').textContent = say.p;
    const a = box.querySelector('a');
    a.textContent = say.a;
    a.href = say.to;
  };

  // coverSession leaves the readings and the headings of cards: what kind of thing
  // waits, and nothing of what it is.
  function coverSession() {
    for (const el of document.querySelectorAll('a.skip[href="#journal"], #main > :not(#signed-out, #register, #live), #live > aside, #live > .col > :not(.needs), .needs .refusal, #lost, #needs-list > :not(.card), #register-act > *')) el.remove();
    for (const card of document.querySelectorAll('#needs-list > .card')) {
      card.querySelector('.card-for')?.remove();
      card.replaceChildren(card.querySelector('.card-h'));
    }
    for (const d of document.querySelectorAll('#reading-execution .cell-d, #reading-needs .cell-d')) d.replaceChildren(...d.querySelectorAll('.as-of'));
    for (const a of document.querySelectorAll('#register a')) a.replaceWith(...a.childNodes);
  }

  // back shows the page again to whom it belongs. What was typed is in the tab's
  // storage; where a browser has none it is shown here.
  function back() {
    if (!hf.tellTyped()) return location.replace(here);
    const box = $('signed-out');
    box.querySelector('a').href = here;
    box.querySelector('a').textContent = 'Load the page again';
    $('signed-out-h').textContent = 'You are signed in again';
  }
})();
