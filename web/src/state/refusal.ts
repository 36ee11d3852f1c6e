import { signal } from '@preact/signals';

/** A command's refusal. It outlives the button or the palette in which the command was chosen. */
export const refusal = signal<string | null>(null);
