// Shared styles come first, so that a part's own styles override them.
import './style/tokens.css';
import './style/base.css';
import './style/layout.css';
import './style/narrow.css';
import { effect } from '@preact/signals';
import { render } from 'preact';
import { App } from './app.tsx';
import { listenToKeys } from './state/keys.ts';
import { route } from './state/route.ts';
import './state/theme.ts';

function start(): void {
  const page = document.getElementById('page');
  if (!page) return;
  // The static document stays until here, so that something is visible at once.
  page.replaceChildren();
  render(<App />, page);
  listenToKeys();
}

// A separate task: evaluating the modules and drawing take equally long, and the browser may respond in between.
setTimeout(start);

/** Nothing is sought on most pages. */
const stopWaiting = effect(() => {
  const { q, hit, find } = route.value;
  if (`${q}${hit}${find}`.trim() === '') return;
  void import('./state/hits.ts').then(({ markHits }) => markHits());
  queueMicrotask(() => stopWaiting());
});
