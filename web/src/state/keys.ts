import { dialog, showDialog, typeAhead } from './dialogs.ts';
import { moveInList, moveInTurns } from './listed.ts';
import { decideInHome, moveInHome } from './home-keys.ts';
import { goLive, isPast, replay, shiftSpeed, step, togglePlay } from './past.ts';
import { conversation, go, route, TABS } from './route.ts';
import { toggleTheme } from './theme.ts';

const focusOn = (id: string) => document.getElementById(id)?.focus();

const move = (by: 1 | -1) => (conversation.peek() === null ? moveInHome(by) : moveInList(by));

const ACTS: Record<string, (event: KeyboardEvent) => void> = {
  j: () => move(1),
  k: () => move(-1),
  '[': () => moveInTurns(-1),
  ']': () => moveInTurns(1),
  '/': () => focusOn('search'),
  c: () => focusOn('composer'),
  f: () => go({ problems: !route.peek().problems }),
  l: goLive,
  d: toggleTheme,
  '?': () => showDialog('help'),
  ' ': togglePlay,
  r: replay,
  '<': () => shiftSpeed(-1),
  '>': () => shiftSpeed(1),
};

/**
 * Global keys, active while no field has the focus. An element that uses a key itself, such as a button for space, takes
 * precedence.
 */
export function listenToKeys(): void {
  addEventListener('keydown', typeAhead, { capture: true });
  addEventListener('keydown', (event) => {
    const hasModifier = event.metaKey || event.ctrlKey;
    if (hasModifier && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      if (dialog.peek()?.name === 'palette') dialog.value = null;
      else showDialog('palette');
    } else if (!event.defaultPrevented && !hasModifier && !event.altKey && !dialog.peek()) act(event);
  });
}

function act(event: KeyboardEvent): void {
  const { key } = event;
  const target = event.target as HTMLElement;
  if (key === 'Escape') return leave(target);
  if (target.closest('input:not([type=checkbox],[type=range]),textarea,select')) return;
  if (key === ' ' && target.closest('button,a,summary,input')) return;
  if (isPast.peek() && /^Arrow(Left|Right)$/.test(key) && !target.closest('[role],input,[role=tablist]'))
    return step(key === 'ArrowLeft' ? -1 : 1);
  if (conversation.peek() === null && decideInHome(event)) return;
  const tab = TABS[Number(key) - 1];
  const action = tab ? () => go({ tab }) : ACTS[key];
  if (!action) return;
  event.preventDefault();
  action(event);
}

/** Leaves a field first, and then deselects the event. */
function leave(target: HTMLElement): void {
  if (target.closest('input,textarea,select')) target.blur();
  else if (route.peek().event !== null) go({ event: null });
}
