import { effect, signal } from '@preact/signals';
import { remember, remembered } from './remember.ts';

/** Null: as the system is set. */
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

/** To the other one than is seen; what the system has anyway is not insisted on. */
export function toggleTheme(): void {
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const next = (theme.value ?? system) === 'dark' ? 'light' : 'dark';
  theme.value = next === system ? null : next;
}
