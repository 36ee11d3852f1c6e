import { signal } from '@preact/signals';

/** The event under the pointer or the focus. It is highlighted in the list, the lanes and the prompt alike. */
export const hovered = signal<number | null>(null);

/** Handlers for an element that represents an event. */
export function hovers(seq: number | null) {
  if (seq === null) return {};
  return {
    onPointerEnter: () => (hovered.value = seq),
    onPointerLeave: () => (hovered.value = null),
    onFocusIn: () => (hovered.value = seq),
    onFocusOut: () => (hovered.value = null),
  };
}
