import { Go } from '../shared/go.tsx';
import { conversation } from '../state/route.ts';
import { head, nameOf } from '../state/selection.ts';
import { useEvent } from './detail/turn-answers.ts';
import '../style/thread-head.css';

/** A thread's id ends with the id of its task. */
const THREAD = /\.d-[0-9a-f]{12}$/;

/** Tells whose task a thread is, and links back to the turn that gave it. */
export function ThreadHead() {
  // The first event of other conversations is not needed.
  const isThread = THREAD.test(conversation.value ?? '');
  const opening = useEvent(isThread && head.value > 0 ? 1 : null);
  if (opening.state !== 'there' || opening.value?.kind !== 'delegation.opened') return null;
  const { home, delegator, assignee, group } = opening.value.body;
  return (
    <p class="thread-head">
      <span class="clip">
        A task of <b>{nameOf(delegator)}</b> for <b>{nameOf(assignee)}</b> in
      </span>
      <Go class="clip" to={{ conversation: home, ...turnOf(group, home) }}>
        {home}
      </Go>
    </p>
  );
}

/** The tasks of one turn form a group, which is named after the turn. */
function turnOf(group: string, home: string): { turn?: string; tab?: 'tools' } {
  const turn = group.slice(0, group.lastIndexOf('/'));
  return turn.startsWith(`${home}:`) ? { turn, tab: 'tools' } : {};
}
