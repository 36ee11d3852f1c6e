import { effect, signal } from '@preact/signals';
import { remember, remembered } from './remember.ts';

/** Null: follows the system setting. */
export const theme = signal<'light' | 'dark' | null>(given());

function given(): 'light' | 'dark' | null {
  const name = remembered('theme');
  return name === 'light' || name === 'dark' ? name : null;
}

effect(() => {
  const name = theme.value;
  if (name === null) delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = name;
  remember('theme', name);
});

/** Switches to the other theme. A choice that equals the system setting is not stored. */
export function toggleTheme(): void {
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const next = (theme.value ?? system) === 'dark' ? 'light' : 'dark';
  theme.value = next === system ? null : next;
}
