import { computed } from '@preact/signals';
import { useState } from 'preact/hooks';
import type { TaskView } from '../../../src/library/projection/model.ts';
import type { ConversationId } from '../../../src/events/index.ts';
import { memo } from '../shared/memo.ts';
import { Go } from '../shared/go.tsx';
import { shown } from '../state/live.ts';
import { approvalDraft } from '../state/approval-draft.ts';
import { isPast } from '../state/past.ts';
import { nameOf } from '../state/selection.ts';
import { middle } from '../state/middle.ts';
import { Decide } from './decide.tsx';

const open = computed(() =>
  (shown.value?.tasks ?? []).filter(({ kind, outcome }) => outcome === null && kind !== 'delegation'),
);

/** Questions and approvals that wait for people: the oldest, so that the list above keeps its place, and the others on request. */
export function Tasks() {
  const [isWhole, setWhole] = useState(false);
  const conversation = shown.value?.conversation;
  // The conversation view shows them in their place.
  if (open.value.length === 0 || conversation === undefined || middle.value === 'talk') return null;
  return (
    <section class="tasks" aria-label="Waiting for you">
      {open.value.slice(0, isWhole ? undefined : 1).map((task) => (
        <Task key={task.id} task={task} conversation={conversation} isPast={isPast.value} />
      ))}
      {open.value.length > 1 && (
        <button type="button" class="list-more" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show the oldest only' : `Show ${open.value.length - 1} more`}
        </button>
      )}
    </section>
  );
}

interface TaskProps {
  task: TaskView;
  conversation: ConversationId;
  isPast: boolean;
}

const Task = memo(function Task({ task, conversation, isPast: isOver }: TaskProps) {
  const isEdited = approvalDraft(conversation, task.id).args.value.state === 'open';
  return (
    <div class="task">
      <p class="task-head">
        <b>
          <bdi>{nameOf(task.owner)}</bdi>
        </b>{' '}
        {task.kind === 'question' ? 'asks' : 'wants to run'}{' '}
        <Go to={{ event: task.seq, tab: 'raw' }} class="quiet">
          event {task.seq}
        </Go>
      </p>
      {task.kind === 'question' && <p class="task-text">{task.text}</p>}
      {/* The editor shows the arguments. */}
      {task.kind !== 'question' && !isEdited && <pre tabIndex={0}>{task.text}</pre>}
      {!isOver && <Decide task={task} conversation={conversation} />}
    </div>
  );
});
