import { signal } from '@preact/signals';

interface Shown {
  name: 'palette' | 'help';
  /** Narrows the palette. */
  about: 'conversation' | null;
  /** Another one each time: what was closed is not opened again, a new one is. */
  number: number;
}

/** What lies over the page. */
export const dialog = signal<Shown | null>(null);

let shown = 0;

/** Typed after a dialog was asked for and before it stood. */
let ahead = '';

export function showDialog(name: Shown['name'], about: Shown['about'] = null): void {
  ahead = '';
  dialog.value = { name, about, number: ++shown };
}

/** Keeps what is typed for a dialog that is not there yet; nothing else may happen with it. */
export function typeAhead(event: KeyboardEvent): void {
  if (!dialog.peek() || document.querySelector('dialog[open]')) return;
  const { key } = event;
  if (event.metaKey || event.ctrlKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  if (key === 'Escape') dialog.value = null;
  else if (key === 'Backspace') ahead = ahead.slice(0, -1);
  else if (key.length === 1) ahead += key;
}

/** For the field that has the focus from now on. */
export function typedAhead(): string {
  const typed = ahead;
  ahead = '';
  return typed;
}
