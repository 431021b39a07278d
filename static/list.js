// Lists don't reorder while they are read: a line says that something changed.
// The same word from the server keeps the count of what needs the person, the
// title and the icon right on every page, and notifies a hidden tab if that was
// asked for.
(() => {
  'use strict';
  const $ = (id) => document.getElementById(id);

  // A part that waits for something says where it is read again (data-follows). It is
  // replaced once it waits no more, and nothing else of the page; nothing is typed there.
  const FOLLOW = 2000; // ms
  async function follow() {
    const part = document.querySelector('[data-follows]');
    if (!part) return;
    try {
      if (!document.hidden && !window.holdfast.covered) {
        const res = await fetch(part.dataset.follows, { cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(10000) });
        const next = res.ok && new DOMParser().parseFromString(await res.text(), 'text/html').getElementById(part.id);
        if (next && !next.hasAttribute('data-follows') && !window.holdfast.covered) show(part, next);
      }
    } catch { /* it is asked again */ }
    setTimeout(follow, FOLLOW);
  }
  function show(part, next) {
    const had = part.contains(document.activeElement);
    for (const el of next.querySelectorAll('.manual-only')) el.hidden = true;
    part.replaceWith(next);
    if (had) next.querySelector('h2')?.focus({ preventScroll: true });
    $('say').textContent = [...next.querySelectorAll('[data-news]')].map((el) => el.textContent.replace(/\s+/g, ' ').trim()).join(' ');
  }
  setTimeout(follow, FOLLOW);

  const pulse = document.querySelector('[data-pulse]');
  if (!pulse) return;
  const changes = $('changes');
  let known = Number(pulse.dataset.needs || 0);

  // number puts the count before the title. It takes away only what it, or the
  // server, has put there itself: a session may be called anything.
  let own = pulse.hasAttribute('data-counted') ? `(${known}) ` : '';
  function number(n) {
    const bare = own && document.title.startsWith(own) ? document.title.slice(own.length) : document.title;
    own = n ? `(${n}) ` : '';
    if (document.title !== own + bare) document.title = own + bare;
  }

  async function ask() {
    const now = await window.holdfast.pulse();
    if (!now) return;
    const count = $('nav-count');
    if (count && !$('live')) {
      count.hidden = now.needs === 0;
      if (count.textContent !== String(now.needs)) count.textContent = String(now.needs);
      const link = $('favicon');
      if (link && now.icon && link.getAttribute('href') !== now.icon) link.setAttribute('href', now.icon);
      if (!pulse.hasAttribute('data-prefixed')) number(now.needs);
    }
    const full = $('journal-full');
    if (full && full.hidden === now.full) {
      const show = () => { full.hidden = !now.full; };
      if (window.holdfast.still) window.holdfast.still(show); else show();
      window.holdfast.refresh?.();
    }
    if (now.needs > known) window.holdfast?.notify?.('holdfast-needs', 'A session needs you');
    known = now.needs;
    if (changes && now.changed > 0) {
      changes.hidden = false;
      $('changes-words').textContent = now.changed === 1 ? '1 session changed.' : `${now.changed} sessions changed.`;
    }
  }
  setInterval(() => {
    const wanted = !document.hidden || (window.Notification?.permission === 'granted' && window.holdfast?.wantsNotice?.());
    if (wanted) ask();
  }, 20000);
  document.addEventListener('visibilitychange', () => !document.hidden && ask());
})();
