import '../../style/dialog.css';
import '../../style/rerun.css';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { RerunChange } from '../../../../src/events/index.ts';
import type { TurnView } from '../../../../src/library/projection/model.ts';
import { CommandButton } from '../../shared/command-button.tsx';
import { goElsewhere } from '../../state/route.ts';
import { partsOf, runsOf } from './chosen.ts';

interface Draft {
  kind: 'same' | RerunChange['kind'];
  text: string;
  call: string;
  isRun: boolean;
}

const KINDS: readonly [Draft['kind'], string, string][] = [
  ['message', 'Other message', 'Message'],
  ['instructions', 'Other instructions', 'Instructions'],
  ['model', 'Another model', 'Model'],
  ['toolResult', 'Another result of a call', 'Result'],
  ['same', 'Nothing: the same again', ''],
];

/** Asks what the run changes, then shows the run beside the turn and its earlier runs. */
export function RerunDialog({ turn, onClose }: { turn: TurnView; onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [draft, setDraft] = useState<Draft>({
    kind: turn.trigger ? 'message' : 'same',
    text: turn.trigger?.text ?? '',
    call: turn.calls[0]?.call ?? '',
    isRun: false,
  });
  useLayoutEffect(() => box.current?.showModal(), []);
  const change = changeIn(draft);
  return (
    <dialog class="dialog rerun" ref={box} aria-label="Run the turn again" onClose={onClose}>
      <h2>Run turn {partsOf(turn.id)?.number} again</h2>
      <p class="quiet">In a fork; this conversation stays as it is. Calls are answered from the record.</p>
      <Fields turn={turn} draft={draft} setDraft={setDraft} />
      <p class="rerun-acts">
        <CommandButton
          command={{
            command: 'rerun',
            turn: turn.id,
            ...(change && { change }),
            ...(draft.isRun && { tools: 'run' }),
          }}
          label="Run again"
          class="button-main"
          isOff={draft.kind !== 'same' && change === null}
          onAccepted={({ event }) => {
            const parts = partsOf(turn.id);
            const fork = event.kind === 'command' ? event.body.fork?.conversation : undefined;
            if (fork === undefined || !parts) return;
            const earlier = runsOf(turn.id);
            const runs = [turn.id, ...earlier, `${fork}:${parts.agent}:${parts.number}`].join();
            goElsewhere({ conversation: null, view: 'compare', runs });
          }}
        />
        <button type="button" class="button" onClick={() => box.current?.close()}>
          Close
        </button>
      </p>
    </dialog>
  );
}

interface FieldsProps {
  turn: TurnView;
  draft: Draft;
  setDraft: (draft: Draft) => void;
}

function Fields({ turn, draft, setDraft }: FieldsProps) {
  const [, label, field] = KINDS.find(([kind]) => kind === draft.kind) ?? ['same', '', ''];
  return (
    <>
      <label class="rerun-field">
        Change
        <select
          value={draft.kind}
          onChange={({ currentTarget }) => {
            const kind = currentTarget.value as Draft['kind'];
            setDraft({ ...draft, kind, text: kind === 'message' ? (turn.trigger?.text ?? '') : '' });
          }}
        >
          {KINDS.map(([kind, name]) => (
            <option key={kind} value={kind} disabled={kind === 'toolResult' && turn.calls.length === 0}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {draft.kind === 'toolResult' && <CallField turn={turn} draft={draft} setDraft={setDraft} />}
      {field !== '' && (
        <label class="rerun-field">
          {field}
          <textarea
            rows={draft.kind === 'model' ? 1 : 5}
            dir="auto"
            aria-label={field}
            title={label}
            value={draft.text}
            onInput={({ currentTarget }) => setDraft({ ...draft, text: currentTarget.value })}
          />
        </label>
      )}
      <label class="rerun-tools">
        <input
          type="checkbox"
          checked={draft.isRun}
          onChange={({ currentTarget }) => setDraft({ ...draft, isRun: currentTarget.checked })}
        />
        Make the calls that the record has no result of
      </label>
    </>
  );
}

function CallField({ turn, draft, setDraft }: FieldsProps) {
  return (
    <label class="rerun-field">
      Call
      <select
        value={draft.call}
        onChange={({ currentTarget }) => setDraft({ ...draft, call: currentTarget.value })}
      >
        {turn.calls.map(({ call, name }) => (
          <option key={call} value={call}>
            {name} {call}
          </option>
        ))}
      </select>
    </label>
  );
}

function changeIn({ kind, text, call }: Draft): RerunChange | null {
  if (kind === 'same' || (text.trim() === '' && kind !== 'toolResult' && kind !== 'instructions'))
    return null;
  switch (kind) {
    case 'message':
      return { kind, content: text };
    case 'instructions':
      return { kind, text };
    case 'model':
      return { kind, model: text.trim() };
    case 'toolResult':
      return { kind, call, result: text };
  }
}
