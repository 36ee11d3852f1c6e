import { useEffect, useRef, useState } from 'preact/hooks';
import type { Row, TurnView } from '../../../src/library/projection/model.ts';
import { dollars, duration, moment, percent, short, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { Icon } from '../shared/icon.tsx';
import { memo } from '../shared/memo.ts';
import { api } from '../state/api.ts';
import { useFetched } from '../state/fetched.ts';
import { route } from '../state/route.ts';
import { nameOf } from '../state/selection.ts';
import { threadsOf } from '../state/threads.ts';
import { figuresOf } from '../state/turn-figures.ts';
import { Loaded } from './detail/loaded.tsx';
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
  unit: 'dollars' | 'tokens';
  /** The event that broke the provider's cache. */
  broke: Row | null;
}

const WORDS = { running: 'running', done: 'done', failed: 'failed', aborted: 'aborted' } as const;

/** One turn in two lines; expanded, its events. */
export const TurnRow = memo(function TurnRow({ turn, isChosen, text, calls, unit, broke }: TurnRowProps) {
  const [isOpen, setOpen] = useState(false);
  const { id, number, agent, status, startedAt, missed, retries } = turn;
  const summary = summaryOf(turn);
  const row = useRef<HTMLTableSectionElement>(null);
  useEffect(() => {
    if (isChosen) row.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  return (
    <tbody
      ref={row}
      class={`turn turn-${status}`}
      aria-current={isChosen ? 'true' : undefined}
      data-turn={id}
    >
      <tr>
        <td>
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
              <b class="clip" title={`@${agent}`}>
                <bdi>{nameOf(agent)}</bdi>
              </b>
              <span class={`turn-status turn-status-${status}`}>{WORDS[status]}</span>
              <span class="turn-summary clip">
                {summary !== '' && <bdi>{summary}</bdi>}
                {missed && (
                  <span class="turn-missed">
                    {summary !== '' && ' · '}had missed {missed.count}
                  </span>
                )}
              </span>
              <span class="turn-numbers">
                {[moment(startedAt), ...(retries > 0 ? [`${retries} retried`] : [])].join(' · ')}
              </span>
            </Go>
          </div>
        </td>
        <Numbers turn={turn} unit={unit} broke={broke} />
      </tr>
      <More turn={turn} isOpen={isOpen} text={text ?? ''} calls={calls ?? []} />
    </tbody>
  );
});

interface MoreProps {
  turn: TurnView;
  isOpen: boolean;
  text: string;
  calls: readonly RunningCall[];
}

/** The content below a turn's line. */
function More({ turn, isOpen, text, calls }: MoreProps) {
  const isFailure = turn.error !== null && turn.status === 'failed';
  // A turn without calls has given no task.
  const given = turn.callCount === 0 ? [] : threadsOf(turn);
  if (!isOpen && !isFailure && given.length === 0 && calls.length === 0 && text === '') return null;
  return (
    <tr>
      <td colSpan={4}>
        <Threads given={given} />
        {calls.length > 0 && <RunningCalls calls={calls} />}
        {text !== '' && (
          <p class="turn-text" dir="auto">
            {text.slice(-600)}
          </p>
        )}
        {isFailure && <ErrorBanner turn={turn} />}
        {isOpen && <Events of={turn} />}
      </td>
    </tr>
  );
}

function Events({ of: { id, trigger } }: { of: TurnView }) {
  return (
    <div class="turn-events">
      {trigger && (
        <p class="turn-trigger quiet">
          answers {trigger.name}: <bdi>{trigger.text}</bdi>
        </p>
      )}
      <TurnEvents turn={id} />
    </div>
  );
}

/** The columns of a turn. The mark of a broken cache links to the changes in the prompt. */
function Numbers({ turn, unit, broke }: Pick<TurnRowProps, 'turn' | 'unit' | 'broke'>) {
  const { id, agent, number, tokens, status } = turn;
  const { cache, time, ...cost } = figuresOf(turn);
  const used = `${whole(tokens.input)} tokens in, ${whole(tokens.output)} out${status === 'running' ? ' so far' : ''}`;
  const amount = cost[unit];
  return (
    <>
      <td class="turn-figure" title={used}>
        {amount !== null && (unit === 'dollars' ? dollars(amount) : short(amount))}
        {amount !== null && status === 'running' && '…'}
      </td>
      <td class="turn-figure">
        {broke && (
          <Go
            class="turn-broke"
            to={{
              turn: id,
              agent,
              tab: number > 1 ? 'diff' : 'raw',
              event: number > 1 ? null : broke.seq,
              step: null,
              vs: null,
            }}
            title={`event ${broke.seq}: ${broke.summary}`}
          >
            <span class="unseen">cache </span>broke
          </Go>
        )}{' '}
        {cache !== null && percent(cache, 1)}
      </td>
      <td class="turn-figure">{time !== null && duration(time)}</td>
    </>
  );
}

/** Links to the conversations of the tasks that the turn gave to others. */
function Threads({ given }: { given: ReturnType<typeof threadsOf> }) {
  if (given.length === 0) return null;
  return (
    <p class="turn-threads">
      {given.map(({ id, assignee, thread, outcome }) => (
        <Go key={id} to={{ conversation: thread }} title={thread}>
          thread of {nameOf(assignee ?? '')}, {outcome ?? 'under way'}
        </Go>
      ))}
    </p>
  );
}

function summaryOf({ said, calls, callCount, handoff, trigger, status }: TurnView): string {
  const names = calls
    .slice(-3)
    .map(({ name, outcome, ran }) =>
      [name, ...(outcome === 'done' ? [] : [outcome ?? '…']), ...(ran ? [duration(ran.ms)] : [])].join(' '),
    );
  const called = callCount > names.length ? `${callCount} calls, last ${names.join(', ')}` : names.join(', ');
  const parts = [handoff ? `handed over to ${handoff.to.map(nameOf).join(', ')}` : called, said.trim()];
  const summary = parts.filter((part) => part !== '').join(' · ');
  if (summary !== '') return summary;
  return status === 'running' && trigger ? `answers ${trigger.name}` : '';
}

/** The events of a turn, fetched again when the turn makes progress. */
function TurnEvents({ turn }: { turn: string }) {
  const { conversation } = route.value;
  const found = useFetched(conversation && `rows ${turn}`, turn, () =>
    api.rows(conversation ?? '', { turn, limit: 500 }),
  );
  return (
    <Loaded of={found}>
      {({ rows }) => rows.map((row) => <EventRow key={row.seq} row={row} isChosen={false} />)}
    </Loaded>
  );
}
