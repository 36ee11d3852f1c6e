import { signal } from '@preact/signals';

/** What to erase: a person, whose id the user may have to type, or a conversation. */
export type Erasing = { person: string | null; name: string } | { conversation: string };

type Asked =
  /** `about` limits the palette's items. */
  { name: 'palette' | 'help'; about: 'conversation' | null } | { name: 'erase'; subject: Erasing };

/** `number` is new for each dialog, so that a new dialog opens and a closed one stays closed. */
type Shown = Asked & { number: number };

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

/** Keeps keys that are typed for a dialog that is not shown yet, and prevents their other effects. */
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

/** Returns the kept text, for the field that now has the focus. */
export function typedAhead(): string {
  const typed = ahead;
  ahead = '';
  return typed;
}
