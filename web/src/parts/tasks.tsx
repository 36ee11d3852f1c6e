import { computed } from '@preact/signals';
import { useState } from 'preact/hooks';
import type { TaskView } from '../../../src/projection/model.ts';
import type { ConversationId } from '../../../src/events/index.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { memo } from '../shared/memo.ts';
import { Go } from '../shared/go.tsx';
import { later } from '../shared/later.tsx';
import { approvalDraft, decidedArgs, openArgs } from '../state/approval-draft.ts';
import { shown } from '../state/live.ts';
import { isPast } from '../state/past.ts';
import { mode } from '../state/settings.ts';

const ArgsEditor = later(async () => (await import('./args-editor.tsx')).ArgsEditor);

const open = computed(() =>
  (shown.value?.tasks ?? []).filter(({ kind, outcome }) => outcome === null && kind !== 'delegation'),
);

/** Questions and approvals that wait for people. */
export function Tasks() {
  const conversation = shown.value?.conversation;
  if (open.value.length === 0 || conversation === undefined) return null;
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
      {!isOver &&
        (task.kind === 'question' ? (
          <Answer task={task} conversation={conversation} />
        ) : (
          <Decision task={task} conversation={conversation} />
        ))}
    </div>
  );
});

function Answer({ task: { id, choices }, conversation }: Omit<TaskProps, 'isPast'>) {
  const [content, setContent] = useState('');
  return (
    <div class="task-acts">
      {choices.map((choice) => (
        <CommandButton
          key={choice}
          command={{ command: 'answer', conversation, question: id, content: choice }}
          label={choice}
        />
      ))}
      <input
        type="text"
        aria-label="Answer"
        placeholder="Answer in your own words"
        value={content}
        disabled={mode === 'read-only'}
        onInput={(event) => setContent(event.currentTarget.value)}
      />
      {content.trim() !== '' && (
        <CommandButton command={{ command: 'answer', conversation, question: id, content }} label="Answer" />
      )}
    </div>
  );
}

function Decision({ task: { id, seq, argsHash, text }, conversation }: Omit<TaskProps, 'isPast'>) {
  const draft = approvalDraft(conversation, id);
  const [note, args] = [draft.note.value, draft.args.value];
  const decided = decidedArgs(args);
  const isOpen = args.state !== 'closed';
  const decide = {
    command: 'decide' as const,
    conversation,
    request: id,
    ...(note.trim() !== '' && { note }),
    ...(argsHash !== null && { argsHash }),
  };
  const toggle = () => {
    if (isOpen) draft.args.value = { state: 'closed' };
    else void openArgs(draft, { conversation, request: id, seq });
  };
  return (
    <>
      {isOpen && <ArgsEditor draft={draft} tool={text.split(' ', 1)[0] ?? ''} />}
      <div class="task-acts">
        <CommandButton
          command={{ ...decide, approved: true, ...(decided.state === 'changed' && { args: decided.args }) }}
          label={decided.state === 'changed' ? 'Approve with changes' : 'Approve'}
          isOff={decided.state === 'unclear'}
        />
        <CommandButton command={{ ...decide, approved: false }} label="Deny" />
        <button
          type="button"
          class="button"
          aria-expanded={isOpen}
          disabled={mode === 'read-only'}
          onClick={toggle}
        >
          {isOpen ? 'Keep the arguments' : 'Change the arguments'}
        </button>
        <input
          type="text"
          aria-label="Note to the agent"
          placeholder="Note to the agent"
          value={note}
          disabled={mode === 'read-only'}
          onInput={(event) => (draft.note.value = event.currentTarget.value)}
        />
      </div>
    </>
  );
}
