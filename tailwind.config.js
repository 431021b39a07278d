// The look of the pages as tokens. Each becomes a CSS variable of the same name,
// light and dark, and the utilities below speak of nothing else, so that a page
// can't hold a colour or a size that isn't in this file. Dark needs no variants
// (dark:…): the variables change, by the system's wish or by
// <html data-theme="dark|light">, which the server sets.
const fs = require('node:fs')
const plugin = require('tailwindcss/plugin')

const light = {
  paper: '#f3f1ea', surface: '#fcfbf7', sunken: '#ece8df',
  ink: '#1b2125', 'ink-2': '#434c51', 'ink-3': '#596167',
  line: '#d5d0c3', 'line-strong': '#7f7a6c', // line is decoration only
  accent: '#0b5260', 'accent-ink': '#ffffff', focus: '#0b5260',
  run: '#1d5a37', 'run-bg': '#e4efe4',
  ask: '#744600', 'ask-bg': '#fbedcf', 'ask-line': '#a8690b',
  unk: '#5a2a6b', 'unk-bg': '#f2e8f5', 'unk-line': '#8a4e9e',
  rev: '#1c4a8a', 'rev-bg': '#e5ecf7',
  bad: '#8b2320', 'bad-bg': '#fae5e1',
  off: '#3d474d', 'off-bg': '#e3e5e5',
  'add-bg': '#ddeedd', 'add-ink': '#174a2c', 'del-bg': '#f9ddd8', 'del-ink': '#7a1e1b',
  hatch: '#8a4e9e4d',
}

const dark = {
  paper: '#121619', surface: '#1a1f23', sunken: '#0d1012',
  ink: '#e7e4db', 'ink-2': '#bcc1bf', 'ink-3': '#9aa3a3',
  line: '#313a3f', 'line-strong': '#748084',
  accent: '#83cbd8', 'accent-ink': '#0b1a1e', focus: '#9ad9e4',
  run: '#8fd3a6', 'run-bg': '#16291d',
  ask: '#f3c66c', 'ask-bg': '#2d220d', 'ask-line': '#c8922b',
  unk: '#d9b3e6', 'unk-bg': '#281a2e', 'unk-line': '#a770ba',
  rev: '#a3c3f3', 'rev-bg': '#17233a',
  bad: '#f2a49c', 'bad-bg': '#331715',
  off: '#c0c8cb', 'off-bg': '#262c30',
  'add-bg': '#15301f', 'add-ink': '#b5e3c4', 'del-bg': '#3a1a18', 'del-ink': '#f4bdb6',
  hatch: '#be82d247',
}

// Ink on paper; what a state says by colour, the shapes and words say too.
const print = {
  paper: '#fff', surface: '#fff', sunken: '#f6f6f6',
  ink: '#000', 'ink-2': '#222', 'ink-3': '#444',
  line: '#bbb', 'line-strong': '#666',
  accent: '#000', 'accent-ink': '#fff', focus: '#000',
  run: '#000', 'run-bg': '#fff', ask: '#000', 'ask-bg': '#fff', 'ask-line': '#000',
  unk: '#000', 'unk-bg': '#fff', 'unk-line': '#000', rev: '#000', 'rev-bg': '#fff',
  bad: '#000', 'bad-bg': '#fff', off: '#000', 'off-bg': '#fff',
  'add-bg': '#fff', 'add-ink': '#000', 'del-bg': '#fff', 'del-ink': '#000',
  hatch: '#999',
}

const type = { 't-label': '.75rem', 't-small': '.8125rem', 't-body': '.9375rem', 't-h2': '1.0625rem', 't-h1': '1.375rem' }
const space = { s1: '.25rem', s2: '.5rem', s3: '.75rem', s4: '1rem', s5: '1.5rem', s6: '2rem', s7: '3rem' }
const radius = { r1: '2px', r2: '4px' } // controls, cards
const family = {
  sans: '"IBM Plex Sans", ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  mono: '"IBM Plex Mono", ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
}
// What is pressed: a control, a small one, a link that stands alone.
const tap = { tap: '2rem', 'tap-s': '1.75rem', 'tap-link': '1.5rem' }
const tapCoarse = { tap: '2.75rem', 'tap-s': '2.75rem', 'tap-link': '2.75rem' }

const variables = (tokens) => Object.fromEntries(Object.entries(tokens).map(([name, value]) => ['--' + name, value]))
const names = (tokens, prefix = '') => Object.fromEntries(Object.keys(tokens).map((name) => [name.replace(prefix, ''), `var(--${name})`]))

// Class names are read where classes stand: any in class attributes, and those of
// components also in string literals, since code hands these on. Tailwind's own
// reader takes each word of a file, so that "table" in a sentence or in a list of
// elements would change the stylesheet.
const components = new Set(fs.readFileSync('views/app.css', 'utf8').match(/\.[a-z][a-z0-9-]*/g).map((name) => name.slice(1)))
const attribute = /\bclass=(?:"([^"]*)"|\{([^}]*)\})/g
const literal = /["'`]([a-z][a-z0-9-]*(?: [a-z][a-z0-9-]*)*)["'`]/g
const classes = (text) => [
  ...[...text.matchAll(attribute)].flatMap((m) => (m[1] ?? m[2]).split(/[\s"'`,(){}]+/)),
  ...[...text.matchAll(literal)].flatMap((m) => m[1].split(' ')).filter((name) => components.has(name)),
]

/** @type {import('tailwindcss').Config} */
module.exports = {
  content: {
    files: ['./views/**/*.templ', './views/**/*.go', '!./views/**/*_templ.go', '!./views/**/*_test.go', './static/*.js',
      '!./views/gallery/**', '!./views/internal/**'], // what only development has changes no stylesheet
    extract: { templ: classes, go: classes, js: classes },
  },
  // The components of the design, one class for each templ component. They stay
  // although a template that uses them may come later, or be drawn by a script
  // only: whoever writes one finds its look here.
  safelist: [
    'register', 'cell', 'stale', 'band', 'mark', 'card', 'card-ask', 'card-unk', 'hatch', 'entry', 'tool', 'gap',
    'out', 'out-f', 'diff', 'file', 'plan', 'facts', 'panel', 'trace', 'trace-b', 't-view', 'composer', 'queue', 'notice',
    'tbl', 'cards', 'btn', 'btn-primary', 'btn-strong', 'btn-danger', 'btn-quiet', 'btn-s', 'ico', 'chip', 'count',
    'keyline', 'search', 'rv-sec', 'toc', 'toc-side', 'files', 'pm', 'kv', 'no-print', 'only-narrow', 'fresh', 'md',
  ],
  corePlugins: {
    preflight: false, // views/app.css has its own base
    // No shadows, no gradients, no motion but the one in views/app.css; and
    // none of these leaves its variables on every element.
    boxShadow: false, boxShadowColor: false, ringWidth: false, ringColor: false, ringOffsetWidth: false, ringOffsetColor: false,
    filter: false, blur: false, brightness: false, contrast: false, dropShadow: false, grayscale: false, hueRotate: false,
    invert: false, saturate: false, sepia: false, backdropFilter: false, backdropBlur: false, gradientColorStops: false,
    animation: false, transitionProperty: false, transform: false, translate: false, rotate: false, skew: false, scale: false,
    touchAction: false, scrollSnapType: false, fontVariantNumeric: false, borderSpacing: false, contain: false,
  },
  theme: {
    screens: { middle: { max: '60rem' }, narrow: { max: '40rem' } },
    colors: { transparent: 'transparent', current: 'currentColor', ...names(light) },
    fontFamily: { sans: 'var(--sans)', mono: 'var(--mono)' },
    fontSize: names(type, 't-'),
    spacing: { 0: '0', px: '1px', ...names(space), tap: 'var(--tap)' },
    borderRadius: { none: '0', ...names(radius) },
    maxWidth: { full: '100%', page: '84rem', prose: '72ch' },
  },
  plugins: [
    plugin(({ addBase }) => addBase([
      { ':root': { 'color-scheme': 'light', ...variables({ ...light, ...family, ...type, ...space, ...radius, ...tap }) } },
      { '@media (pointer: coarse)': { ':root': variables(tapCoarse) } },
      { '@media screen and (prefers-color-scheme: dark)': { ':root:not([data-theme=light])': { 'color-scheme': 'dark', ...variables(dark) } } },
      { '@media screen': { ':root[data-theme=dark]': { 'color-scheme': 'dark', ...variables(dark) } } },
      { '@media print': { ':root': variables(print) } },
    ])),
  ],
}
