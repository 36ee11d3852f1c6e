import { useRef } from 'preact/hooks';
import type { TaskInfo } from '../../../src/library/troupe.ts';
import { api } from './api.ts';
import { maySay } from './caller.ts';
import { type Fetched, useFetched } from './fetched.ts';

/** Whether the user of the page may answer or decide. Null: unknown yet. A text: no, and who may. */
export type MayDecide = true | string | null;

/**
 * The server decides, because it knows the key, who is asked, and whom the company trusts. `state` names what else the answer
 * depends on, such as the open tasks: after a change the server is asked again.
 */
export function useMayDecide(conversation: string, task: string, state: string): MayDecide {
  const before = useRef<MayDecide>(null);
  const found = useFetched(`may ${conversation} ${state}`, null, () => api.openTasks(conversation), ALWAYS);
  // The previous answer stays while the server is asked again, so that buttons do not move.
  if (found.state !== 'loading') before.current = mayOf(found, task);
  return before.current;
}

const ALWAYS = () => true;

function mayOf(found: Exclude<Fetched<TaskInfo[]>, { state: 'loading' }>, task: string): MayDecide {
  if (found.state === 'failed') return `Who may decide it is not known: ${found.message}`;
  const one = found.value.find(({ id }) => id === task);
  if (!one) return 'It is over.';
  if (one.decidable === true) return true;
  return whoMay(one.by ?? []);
}

/** Text for users who may not decide. */
export function whoMay(by: readonly string[]): string {
  const people = by.length > 0 ? by.join(' or ') : 'A person';
  if (!maySay('write')) return `${people} may, with a key that has the scope write; yours has not.`;
  if (by.length > 0) return `${people} may, not you.`;
  return 'Only people whom the company trusts may, while the conversation is not archived.';
}
