/** The look of an exported conversation: as the page, in the light or the dark of whoever reads it. */
export const HTML_STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8d8d8, #3a3a3a); --dim: light-dark(#5c5c5c, #a6a6a6);
  --bad: light-dark(#b3261e, #ff8a80); --card: light-dark(#f6f6f6, #202020); }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 24px 16px 64px;
  color: light-dark(#1a1a1a, #ececec); background: light-dark(#fff, #161616); }
h1 { font-size: 20px; margin: 0 0 4px; overflow-wrap: anywhere; }
p.about, .when, .kind, .empty { color: var(--dim); }
p.about { margin: 0 0 16px; }
table { border-collapse: collapse; margin: 0 0 24px; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; }
td.n, th.n { text-align: right; }
article { padding: 8px 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
details { margin: 8px 0; border: 1px solid var(--line); padding: 0 12px; background: var(--card); }
summary { padding: 8px 0; cursor: pointer; font-weight: 600; }
header.line { display: flex; gap: 8px; flex-wrap: wrap; font-size: 13px; }
.who { font-weight: 600; }
.when { margin-left: auto; font-variant-numeric: tabular-nums; }
pre { font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0 0; }
.words { white-space: pre-wrap; margin: 4px 0 0; }
.bad { color: var(--bad); }
@media print { details { break-inside: avoid; } }
`;
