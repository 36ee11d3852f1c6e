import { signal } from '@preact/signals';

/** The refusal of a command. It stays visible longer than the button or palette in which the command was chosen. */
export const refusal = signal<string | null>(null);
