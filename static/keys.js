// Single keys (ux §9). They never submit anything: they move the focus, and
// Enter on what has it does the rest. They are ignored in fields, with
// modifiers, on repeat, and when the person has turned them off.
(() => {
  'use strict';
  const $ = (id) => document.getElementById(id);
  const off = document.documentElement.dataset.keys === 'off';
  const help = $('keys-help');
  let armed = null; // where the focus was before a key moved it to a button
  let at = null;    // that button
  let prefix = 0;

  const inField = (el) => el?.closest('input, textarea, select, [contenteditable]');

  // The field that somebody was typing in goes away with the sign-in: what is
  // still typed then is no word to this page.
  const covered = () => $('signed-out')?.hidden === false;

  document.addEventListener('keydown', (e) => {
    if (e.isComposing || e.repeat) return;
    if (e.key === 'Enter' && e.ctrlKey && e.target.matches('[data-unsent]')) {
      e.preventDefault();
      e.target.form.requestSubmit($('send-queue') || e.target.form.querySelector('.btn-primary'));
      return;
    }
    if (e.key === 'Escape' && armed && !help?.open) {
      e.preventDefault();
      const back = armed;
      armed = null;
      hint('');
      if (back === document.body || !back.isConnected) document.activeElement.blur(); else back.focus();
      return;
    }
    if (off || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || inField(e.target) || help?.open || covered()) return;
    if (prefix && performance.now() - prefix < 1500) {
      prefix = 0;
      const to = { s: '/', i: '/needs-you', n: '/sessions/new' }[e.key];
      if (to) { e.preventDefault(); location.href = to; }
      return;
    }
    const act = keys[e.key];
    if (act && act(e) !== false) e.preventDefault();
  });

  const keys = {
    '?': () => (help ? help.showModal() : false),
    '/': () => focus($('q')) || go('/?focus=search'),
    g: () => { prefix = performance.now(); },
    n: () => focus(document.querySelector('#needs-list .card h3, #needs')),
    j: () => step(1),
    k: () => step(-1),
    o: (e) => open(e),
    c: () => focus($('text')),
    a: () => arm('once', 'Press Enter to allow once, Esc to go back'),
    r: () => arm('reject', 'Press Enter to deny, Esc to go back'),
  };

  function go(to) { location.href = to; return true; }

  function focus(el) {
    if (!el) return false;
    armed = document.activeElement || document.body;
    if (!el.matches('a, button, input, textarea, select, summary')) el.tabIndex = -1;
    el.focus();
    return true;
  }

  // step goes to the next item of a list: entries of a journal, rows, cards of an inbox.
  function step(by) {
    const items = [...document.querySelectorAll('#journal-list > li:not([hidden]) h3, .rows .srow-title, [data-testid=inbox] [data-item]')].filter((el) => el.getClientRects().length);
    if (!items.length) return false;
    const at = items.findIndex((el) => el === document.activeElement || el.contains(document.activeElement) || el.closest('li, tr')?.contains(document.activeElement));
    const next = at < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, at + by));
    return focus(items[next]);
  }

  function open(e) {
    const item = e.target.closest('li, tr, .card');
    const d = item?.querySelector('details');
    if (d) { d.open = !d.open; return true; }
    const a = e.target.closest('a[href]') || item?.querySelector('a[href]');
    if (!a || e.target.closest('button, summary') || (item?.closest('.journal') && a !== e.target)) return false;
    a.click();
    return true;
  }

  // arm moves the focus to an answer of the card that has it, or of the only card.
  function arm(reply, words) {
    const cards = [...document.querySelectorAll('.card-ask')];
    const card = document.activeElement?.closest('.card-ask') || (cards.length === 1 ? cards[0] : null);
    const button = card?.querySelector(`button[name=reply][value=${reply}]`);
    if (!button || performance.now() - Number(card.dataset.arrived || -1000) < 500) return false;
    armed = document.activeElement && document.activeElement !== document.body ? document.activeElement : $('needs') || button;
    at = button;
    button.focus();
    hint(words, button);
    button.addEventListener('blur', () => { hint(''); setTimeout(() => { if (at === button && document.activeElement !== button) armed = null; }); }, { once: true });
    return true;
  }

  // hint says beside the button what Enter does.
  function hint(words, button) {
    $('key-hint')?.remove();
    if (!words) return;
    const el = document.createElement('p');
    el.id = 'key-hint';
    el.className = 'hint';
    el.textContent = words;
    button.closest('.row').after(el);
    window.holdfast?.sayNow?.(words);
  }

  if (new URLSearchParams(location.search).get('focus') === 'search') focus($('q'));

  if (help) {
    let back = null;
    for (const a of document.querySelectorAll('[data-opens=keys-help]')) {
      a.addEventListener('click', (e) => { e.preventDefault(); help.showModal(); });
    }
    help.addEventListener('beforetoggle', (e) => { if (e.newState === 'open') back = document.activeElement; });
    // Back on a button that answers, the person would not know that Enter allows.
    help.addEventListener('close', () => (back?.matches('[name=reply]') ? back.closest('.card').querySelector('h3') : back)?.focus?.());
    help.querySelector('[data-closes]')?.addEventListener('click', () => help.close());
  }
})();
