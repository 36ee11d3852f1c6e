import { signal } from '@preact/signals';

/** What is to be erased: a person, whose id may have to be typed, or a conversation. */
export type Erasing = { person: string | null; name: string } | { conversation: string };

type Asked =
  /** `about` narrows the palette. */
  { name: 'palette' | 'help'; about: 'conversation' | null } | { name: 'erase'; subject: Erasing };

/** `number` is new for each dialog: a closed dialog is not reopened, a new one is. */
type Shown = Asked & { number: number };

/** The open dialog. */
export const dialog = signal<Shown | null>(null);

let shown = 0;

/** Text typed between the request for a dialog and its appearance. */
let ahead = '';

export function showDialog(name: 'palette' | 'help', about: 'conversation' | null = null): void {
  show({ name, about });
}

export function showErasure(subject: Erasing): void {
  show({ name: 'erase', subject });
}

function show(asked: Asked): void {
  ahead = '';
  dialog.value = { ...asked, number: ++shown };
}

/** Keeps keys typed for a dialog that is not shown yet, and prevents any other effect of them. */
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

/** The text for the field that now has the focus. */
export function typedAhead(): string {
  const typed = ahead;
  ahead = '';
  return typed;
}
