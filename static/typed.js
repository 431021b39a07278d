// What somebody typed into a form of ours, and nobody can be told since nobody is
// signed in any more, stays in this tab: for the same person's next sign-in here,
// and for no one else, who would find it gone. So does a text in a card when its
// page is left or loaded again. It is never sent by itself.
(() => {
  'use strict';
  const $ = (id) => document.getElementById(id);
  const hf = window.holdfast;
  const name = 'holdfast-typed';
  const viewer = document.documentElement.dataset.viewer;
  if (!viewer) return;

  const either = (f) => f.type === 'radio' || f.type === 'checkbox';
  // A page that was refused has what was typed as its default. What the server
  // keeps of a message or a mission stands there again anyway, but for the key
  // that it went under.
  function typed(f) {
    if (f.matches('[data-unsent]')) return f.form.dataset.key || hf.unkept();
    if (f.matches('textarea')) return f.value !== '' && !f.readOnly;
    return either(f) ? f.checked : f.value !== f.defaultValue;
  }

  const note = (f, out) => ({ at: hf.path(), id: f.id, text: f.matches('textarea'), value: f.value, checked: f.checked, key: f.form.dataset.key || '', out });

  // keepTyped notes what would be lost with the page, and tells how much that is.
  let refused = []; // by the browser, which may have no storage for us
  hf.keepTyped = () => {
    const fields = [...document.querySelectorAll('main form[method=post] :is(textarea, input:not([type=hidden], [type=password]))')];
    const found = fields.filter((f) => f.id && typed(f)).map((f) => note(f, true));
    const before = read().filter((f) => f.at !== hf.path() || !found.some((g) => g.id === f.id));
    refused = write([...before, ...found]) ? [] : found.filter((f) => f.text);
    return found.filter((f) => f.text).length;
  };

  // A form that is sent with its page keeps nothing: its answer says what became
  // of it. Who signs out leaves nothing.
  const sent = new WeakSet();
  let out = false;
  document.addEventListener('submit', (e) => {
    if (e.defaultPrevented) return;
    if (e.target.getAttribute('action') === '/logout') { out = true; hf.dropTyped(); return; }
    sent.add(e.target);
    hf.sentTyped(e.target);
  });
  document.addEventListener('input', (e) => sent.delete(e.target.form));

  window.addEventListener('pagehide', () => {
    if (out || hf.covered || document.documentElement.hasAttribute('data-posted')) return;
    const found = [...document.querySelectorAll('.card form[method=post] textarea')].filter((f) => f.id && typed(f) && !sent.has(f.form)).map((f) => note(f, false));
    const before = read().filter((f) => f.at !== hf.path() || !found.some((g) => g.id === f.id) && $(f.id)?.form && typed($(f.id)));
    write([...before, ...found]);
  });

  // reveal opens what hides a text that would be sent.
  hf.reveal = (within) => {
    for (const f of within.querySelectorAll('details:not([open]) textarea')) if (typed(f)) open(f);
  };
  function open(el) {
    for (let d = el.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
  }
  // A browser that loads a page again may put texts back, by the time that it shows it.
  window.addEventListener('pageshow', () => hf.reveal(document));

  // tellTyped shows what could be noted nowhere; false if there is nothing.
  hf.tellTyped = () => {
    if (!refused.length) return false;
    if (!document.querySelector('[data-testid=typed-left]')) tell(refused.map((f) => f.value), 'You typed this before you were signed out. It was not sent, and stands here only.');
    return true;
  };

  hf.dropTyped = () => {
    refused = [];
    document.querySelector('[data-testid=typed-left]')?.remove();
    write([]);
  };

  // sentTyped forgets what a form has sent after all.
  hf.sentTyped = (form) => {
    const ids = new Set([...form.elements].map((f) => f.id));
    write(read().filter((f) => f.at !== hf.path() || !ids.has(f.id)));
  };

  function write(fields) {
    try {
      if (fields.length) sessionStorage.setItem(name, JSON.stringify({ for: viewer, fields })); else sessionStorage.removeItem(name);
      return true;
    } catch { return false; }
  }

  function read() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(name) || 'null');
      if (kept && kept.for !== viewer) sessionStorage.removeItem(name);
      return kept?.for === viewer ? kept.fields : [];
    } catch { return []; }
  }

  // ---- as the page begins

  const fields = read();
  const here = fields.filter((f) => f.at === hf.path());
  const left = here.filter((f) => !restore(f) && f.text);
  write(fields.filter((f) => !here.includes(f)));
  if (left.length) tell(left.map((f) => f.value), whyLeft());

  // A key is that of a form whose answer was not seen: it may have been taken.
  function whyLeft() {
    const when = left.some((f) => f.out) ? 'were signed out' : 'left this page';
    if (left.some((f) => f.key)) return `You typed this before you ${when}. It may have been sent: the journal tells. What it was for is not asked here any more.`;
    return `You typed this before you ${when}. It was not sent, and what it was for is not asked here any more.`;
  }

  function restore(f) {
    const el = $(f.id);
    if (!el?.form) return false;
    if (either(el)) el.checked = f.checked; else el.value = f.value;
    if (f.key) el.form.dataset.key = f.key;
    open(el);
    el.dispatchEvent(new Event('input', { bubbles: true })); // so that it is kept on, as if it had been typed now
    return true;
  }

  // tell shows what was typed and has no form here.
  function tell(texts, why) {
    const box = document.createElement('section');
    box.className = 'notice off';
    box.dataset.testid = 'typed-left';
    const p = document.createElement('p');
    p.textContent = why;
    const b = document.createElement('button');
    b.type = 'button';
    b.className = 'btn-s';
    b.textContent = 'Take it away';
    b.addEventListener('click', () => { box.remove(); $('main').focus(); });
    box.append(p, ...texts.map((text) => {
      const pre = document.createElement('pre');
      pre.className = 'cmd';
      pre.textContent = text;
      return pre;
    }), b);
    const flash = $('flash');
    if (flash) flash.append(box); else $('main').prepend(box);
  }
})();
