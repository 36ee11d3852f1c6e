// What all parts share comes first: what is a part's own is stronger.
import './style/tokens.css';
import './style/layout.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { fetchTheRest } from './shared/later.tsx';
import { listenToKeys } from './state/keys.ts';
import './state/theme.ts';

const page = document.getElementById('page');
if (page) {
  // What the document has stands until here, so that there is something to see at once.
  page.replaceChildren();
  render(<App />, page);
}
listenToKeys();
fetchTheRest();
