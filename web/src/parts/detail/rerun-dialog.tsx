import '../../style/dialog.css';
import '../../style/rerun.css';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Event, RerunChange, TurnId } from '../../../../src/events/index.ts';
import type { TurnView } from '../../../../src/library/projection/model.ts';
import type { TurnComparison } from '../../../../src/library/troupe.ts';
import { CommandButton } from '../../shared/command-button.tsx';
import { api, ApiError } from '../../state/api.ts';
import { followStream, settled } from '../../state/follow-stream.ts';
import { partsOf } from './chosen.ts';
import { Compared } from './compared.tsx';

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

/** Asks what should be different, and then shows both turns side by side. */
export function RerunDialog({ turn, onClose }: { turn: TurnView; onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [made, setMade] = useState<TurnId | null>(null);
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
      {made === null ? (
        <>
          <p class="quiet">
            In a fork; this conversation stays as it is. Calls are answered from the record.
          </p>
          <Fields turn={turn} draft={draft} setDraft={setDraft} />
        </>
      ) : (
        <Beside turn={turn.id} made={made} />
      )}
      <p class="rerun-acts">
        {made === null && (
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
              if (fork !== undefined && parts) setMade(`${fork}:${parts.agent}:${parts.number}` as TurnId);
            }}
          />
        )}
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

/** Events come in bursts: the end of a turn is five of them. In ms. */
const SETTLE_MS = 250;
/** Newest events with which the fork's stream begins. They include the end of the turn if it came before the stream. */
const NEWEST = '20';

/** Follows the fork until its turn has ended. */
function Beside({ turn, made }: { turn: TurnId; made: TurnId }) {
  const [found, setFound] = useState<TurnComparison | string | null>(null);
  useEffect(() => {
    let isOver = false;
    const ask = async () => {
      const answer = await api.compare(turn, made).catch((error: unknown) => {
        // The turn has not begun.
        if (error instanceof ApiError && error.code === 'turn_unknown') return null;
        return error instanceof Error ? error.message : String(error);
      });
      if (isOver) return;
      if (answer !== null) setFound(answer);
      if (typeof answer === 'object' && answer !== null && answer.b.status !== 'running') leave();
    };
    const news = settled(SETTLE_MS, () => void ask());
    const conversation = partsOf(made)?.conversation ?? '';
    const leave = followStream({ conversation, newest: NEWEST }, (frame) => {
      // At the beginning of the stream, the turn may already have ended.
      if (frame === null || (frame.event === 'event' && (JSON.parse(frame.data) as Event).turn === made))
        news.soon();
    });
    return () => {
      isOver = true;
      leave();
      news.stop();
    };
  }, [turn, made]);
  if (found === null) return <p role="status">Running…</p>;
  if (typeof found === 'string') return <p role="alert">{found}</p>;
  return <Compared of={found} />;
}
