import { useEffect, useRef, useState } from 'preact/hooks';
import type { Row, TurnView } from '../../../src/projection/model.ts';
import { duration, moment, short } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { Icon } from '../shared/icon.tsx';
import { memo } from '../shared/memo.ts';
import { api } from '../state/api.ts';
import { conversation } from '../state/route.ts';
import { threadsOf } from '../state/threads.ts';
import { EventRow } from './event-row.tsx';
import type { RunningCall } from '../state/running-calls.ts';
import { RunningCalls } from './running-calls.tsx';
import { ErrorBanner } from './error-banner.tsx';

interface TurnRowProps {
  turn: TurnView;
  isChosen: boolean;
  /** Text streamed so far. */
  text: string | null;
  /** Tool calls of the running turn. */
  calls: readonly RunningCall[] | null;
}

const WORDS = { running: 'running', done: 'done', failed: 'failed', aborted: 'aborted' } as const;

/** One turn in two lines; expanded, its events. */
export const TurnRow = memo(function TurnRow({ turn, isChosen, text, calls }: TurnRowProps) {
  const [isOpen, setOpen] = useState(false);
  const { id, number, agent, status, startedAt, endedAt, tokens, missed, trigger, retries, error } = turn;
  const used = tokens.input + tokens.output;
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isChosen) row.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  return (
    <li ref={row} class={`turn turn-${status}`} aria-current={isChosen ? 'true' : undefined} data-turn={id}>
      <div class="turn-line">
        <button
          type="button"
          class="tool"
          aria-expanded={isOpen}
          aria-label={`Events of turn ${number} of ${agent}`}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'down' : 'right'} />
        </button>
        <Go class="turn-go" to={{ turn: id, agent, event: null, step: null, vs: null }} title={id}>
          <span class="turn-number">{number}</span>
          <b class="clip">{agent}</b>
          <span class={`turn-status turn-status-${status}`}>{WORDS[status]}</span>
          <span class="turn-summary clip">
            <bdi>{summaryOf(turn)}</bdi>
            {missed && <span class="turn-missed"> · had missed {missed.count}</span>}
          </span>
          <span class="turn-numbers">
            {[
              moment(startedAt),
              ...(retries > 0 ? [`${retries} retried`] : []),
              ...(endedAt === null ? [] : [duration(endedAt - startedAt)]),
              ...(used > 0 ? [`${short(used)} tok`] : []),
            ].join(' · ')}
          </span>
        </Go>
      </div>
      <Threads of={turn} />
      {calls !== null && calls.length > 0 && <RunningCalls calls={calls} />}
      {text !== null && text !== '' && (
        <p class="turn-text" dir="auto">
          {text.slice(-600)}
        </p>
      )}
      {error !== null && status === 'failed' && <ErrorBanner turn={turn} />}
      {isOpen && (
        <div class="turn-events">
          {trigger && (
            <p class="turn-trigger quiet">
              answers {trigger.name}: <bdi>{trigger.text}</bdi>
            </p>
          )}
          <TurnEvents turn={id} until={turn.to} steps={turn.steps + turn.callCount} />
        </div>
      )}
    </li>
  );
});

/** The conversations of the tasks that the turn gave to others. */
function Threads({ of }: { of: TurnView }) {
  // A turn that has called nothing has given no task.
  const given = of.callCount === 0 ? [] : threadsOf(of);
  if (given.length === 0) return null;
  return (
    <p class="turn-threads">
      {given.map(({ id, assignee, thread, outcome }) => (
        <Go key={id} to={{ conversation: thread }} title={thread}>
          thread of {assignee}, {outcome ?? 'under way'}
        </Go>
      ))}
    </p>
  );
}

function summaryOf({ said, calls, callCount, handoff, trigger, status }: TurnView): string {
  const names = calls
    .slice(-3)
    .map(({ name, outcome }) => (outcome === 'done' ? name : `${name} ${outcome ?? '…'}`));
  const called = callCount > names.length ? `${callCount} calls, last ${names.join(', ')}` : names.join(', ');
  const parts = [handoff ? `handed over to ${handoff.to.join(', ')}` : called, said.trim()];
  const summary = parts.filter((part) => part !== '').join(' · ');
  if (summary !== '') return summary;
  return status === 'running' && trigger ? `answers ${trigger.name}` : '';
}

/** Fetched again when the turn has made progress. */
function TurnEvents({ turn, until, steps }: { turn: string; until: number | null; steps: number }) {
  const [rows, setRows] = useState<readonly Row[] | string>([]);
  const id = conversation.value;
  useEffect(() => {
    if (id === null) return;
    let isOver = false;
    api.rows(id, { turn, limit: 500 }).then(
      (answer) => !isOver && setRows(answer.rows),
      (error: unknown) => !isOver && setRows(error instanceof Error ? error.message : String(error)),
    );
    return () => (isOver = true);
  }, [id, turn, until, steps]);
  if (typeof rows === 'string') return <p class="quiet">{rows}</p>;
  return rows.map((row) => <EventRow key={row.seq} row={row} isChosen={false} />);
}
