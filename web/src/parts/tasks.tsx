import { computed } from '@preact/signals';
import type { TaskView } from '../../../src/library/projection/model.ts';
import type { ConversationId } from '../../../src/events/index.ts';
import { memo } from '../shared/memo.ts';
import { Go } from '../shared/go.tsx';
import { shown } from '../state/live.ts';
import { isPast } from '../state/past.ts';
import { middle } from '../state/middle.ts';
import { Decide } from './decide.tsx';

const open = computed(() =>
  (shown.value?.tasks ?? []).filter(({ kind, outcome }) => outcome === null && kind !== 'delegation'),
);

/** Questions and approvals that wait for people. */
export function Tasks() {
  const conversation = shown.value?.conversation;
  // The conversation view shows them in their place.
  if (open.value.length === 0 || conversation === undefined || middle.value === 'talk') return null;
  return (
    <section class="tasks" aria-label="Waiting for you">
      {open.value.map((task) => (
        <Task key={task.id} task={task} conversation={conversation} isPast={isPast.value} />
      ))}
    </section>
  );
}

interface TaskProps {
  task: TaskView;
  conversation: ConversationId;
  isPast: boolean;
}

const Task = memo(function Task({ task, conversation, isPast: isOver }: TaskProps) {
  return (
    <div class="task">
      <p class="task-head">
        <b>{task.owner}</b> {task.kind === 'question' ? 'asks' : 'asks for your approval to run'}{' '}
        <Go to={{ event: task.seq, tab: 'raw' }} class="quiet">
          event {task.seq}
        </Go>
      </p>
      {task.kind === 'question' ? <p class="task-text">{task.text}</p> : <pre tabIndex={0}>{task.text}</pre>}
      {!isOver && <Decide task={task} conversation={conversation} />}
    </div>
  );
});
