// What somebody typed into a form of ours, and nobody can be told since nobody is
// signed in any more, stays in this tab: for the same person's next sign-in here,
// and for no one else, who would find it gone. It is never sent by itself.
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
    if (f.matches('textarea')) return f.value !== '';
    return either(f) ? f.checked : f.value !== f.defaultValue;
  }

  // keepTyped notes what would be lost with the page; false if it can't be noted.
  hf.keepTyped = () => {
    const fields = [...document.querySelectorAll('main form[method=post] :is(textarea, input:not([type=hidden], [type=password]))')];
    const found = fields.filter((f) => f.id && typed(f)).map((f) => ({
      at: location.pathname, id: f.id, text: f.matches('textarea'), value: f.value, checked: f.checked, key: f.form.dataset.key || '',
    }));
    if (!found.length) return true;
    const before = read().filter((f) => f.at !== location.pathname || !found.some((g) => g.id === f.id));
    return write([...before, ...found]);
  };

  hf.dropTyped = () => { write([]); };

  // sentTyped forgets what a form has sent after all.
  hf.sentTyped = (form) => {
    const ids = new Set([...form.elements].map((f) => f.id));
    write(read().filter((f) => f.at !== location.pathname || !ids.has(f.id)));
  };

  // A browser may refuse storage.
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
  const here = fields.filter((f) => f.at === location.pathname);
  const left = here.filter((f) => !restore(f) && f.text);
  write(fields.filter((f) => !here.includes(f)));
  if (left.length) tell(left.map((f) => f.value));

  function restore(f) {
    const el = $(f.id);
    if (!el?.form) return false;
    if (either(el)) el.checked = f.checked; else el.value = f.value;
    if (f.key) el.form.dataset.key = f.key;
    el.closest('details')?.setAttribute('open', '');
    el.dispatchEvent(new Event('input', { bubbles: true })); // so that it is kept on, as if it had been typed now
    return true;
  }

  // tell shows what was typed for something that stands here no more.
  function tell(texts) {
    const box = document.createElement('section');
    box.className = 'notice off';
    box.dataset.testid = 'typed-left';
    const p = document.createElement('p');
    p.textContent = 'You typed this before you were signed out. It was not sent, and what it was for is not asked here any more.';
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
