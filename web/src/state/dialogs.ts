import { signal } from '@preact/signals';

/** What lies over the page; `about` narrows the palette. */
export const dialog = signal<{ name: 'palette' | 'help'; about: 'conversation' | null } | null>(null);

/** Typed after a dialog was asked for and before it stood. */
let ahead = '';

export function showDialog(name: 'palette' | 'help', about: 'conversation' | null = null): void {
  ahead = '';
  dialog.value = { name, about };
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
