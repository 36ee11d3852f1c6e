import { dialog, showDialog, typeAhead } from './dialogs.ts';
import { moveInList, moveInTurns } from './listed.ts';
import { goLive, isPast, step, togglePlay } from './past.ts';
import { go, route, TABS } from './route.ts';
import { toggleTheme } from './theme.ts';

const focusOn = (id: string) => document.getElementById(id)?.focus();

const ACTS: Record<string, (event: KeyboardEvent) => void> = {
  j: () => moveInList(1),
  k: () => moveInList(-1),
  '[': () => moveInTurns(-1),
  ']': () => moveInTurns(1),
  '/': () => focusOn('search'),
  c: () => focusOn('composer'),
  f: () => go({ problems: !route.peek().problems }),
  l: goLive,
  d: toggleTheme,
  '?': () => showDialog('help'),
  ' ': togglePlay,
};

/**
 * Global keys, active while no field has the focus. Elements that use a key themselves, such as a button for space,
 * take precedence.
 */
export function listenToKeys(): void {
  addEventListener('keydown', typeAhead, { capture: true });
  addEventListener('keydown', (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      if (dialog.peek()?.name === 'palette') dialog.value = null;
      else showDialog('palette');
      return;
    }
    const target = event.target as HTMLElement;
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || dialog.peek()) return;
    if (event.key === 'Escape') return leave(target);
    if (target.closest('input:not([type=checkbox],[type=range]),textarea,select')) return;
    if (event.key === ' ' && target.closest('button,a,summary,input')) return;
    if (
      isPast.peek() &&
      /^Arrow(Left|Right)$/.test(event.key) &&
      !target.closest('[role],input,[role=tablist]')
    ) {
      return step(event.key === 'ArrowLeft' ? -1 : 1);
    }
    const tab = TABS[Number(event.key) - 1];
    const act = tab ? () => go({ tab }) : ACTS[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });
}

/** Leaves a field first, then deselects the event. */
function leave(target: HTMLElement): void {
  if (target.closest('input,textarea,select')) target.blur();
  else if (route.peek().event !== null) go({ event: null });
}
