// What the server said of a form is in the address that it led to. Once it is shown
// the address is the page's alone, so that a reload, or a copy of it, doesn't say it
// again. Without scripts it stays.
(() => {
  'use strict';
  if (!document.querySelector('[data-testid=notice]')) return;
  const url = new URL(location.href);
  if (!url.searchParams.has('notice')) return;
  url.searchParams.delete('notice');
  url.searchParams.delete('seq'); // the entry that it is about
  history.replaceState(history.state, '', url);
})();
