import { api } from './api.ts';
import { refusal } from './refusal.ts';
import { messageOf } from '../shared/format.ts';

/** How long a browser may take to begin saving, ms. */
const SAVED_WITHIN_MS = 60_000;

/** Requested with the key of this page, which a link would not send. */
export async function saveExport(conversation: string, format: 'jsonl' | 'html'): Promise<void> {
  const blob = await exported(conversation, format);
  if (!blob) return;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = `${conversation}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVED_WITHIN_MS);
}

/** Prints the whole log: the exported page, in a frame of its own that runs no scripts. */
export async function printWhole(conversation: string): Promise<void> {
  const html = await (await exported(conversation, 'html'))?.text();
  if (html === undefined) return;
  // The policy of this page refuses styles in a document, and lets scripts adopt them. Texts of the log have no tags.
  const [found = '', styles = ''] = /<style>([^]*?)<\/style>/.exec(html) ?? [];
  const frame = document.createElement('iframe');
  frame.className = 'unseen';
  frame.title = 'The whole conversation, to be printed';
  frame.setAttribute('sandbox', 'allow-same-origin allow-modals');
  frame.srcdoc = html.replace(found, '');
  frame.addEventListener('load', () => {
    const view = frame.contentWindow as (Window & typeof globalThis) | null;
    if (!view) return;
    const sheet = new view.CSSStyleSheet();
    sheet.replaceSync(styles);
    view.document.adoptedStyleSheets = [sheet];
    view.addEventListener('afterprint', () => frame.remove());
    view.print();
  });
  document.body.append(frame);
}

async function exported(conversation: string, format: 'jsonl' | 'html'): Promise<Blob | null> {
  try {
    return await api.exported(conversation, format);
  } catch (error) {
    refusal.value = messageOf(error);
    return null;
  }
}
