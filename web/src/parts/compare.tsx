import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Event, Rerun } from '../../../src/events/index.ts';
import type { ComparedCall, ComparedTurn, TurnComparison } from '../../../src/library/troupe.ts';
import { messageOf, dollars, duration, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { Skeleton } from '../shared/skeleton.tsx';
import { api, ApiError } from '../state/api.ts';
import { followStream, settled } from '../state/follow-stream.ts';
import { route } from '../state/route.ts';
import { partsOf } from './detail/chosen.ts';
import '../style/home.css';
import '../style/compare.css';

const MOST_RUNS = 8;

/** A turn and its runs side by side: the address names them. */
export function Compare() {
  const { runs } = route.value;
  const [original = '', ...made] = runs
    .split(',')
    .filter(Boolean)
    .slice(0, MOST_RUNS + 1);
  const [found, setFound] = useState<Readonly<Record<string, TurnComparison | string>>>({});
  useEffect(() => {
    const ends = made.map((run) =>
      followRun(original, run, (answer) => setFound((before) => ({ ...before, [run]: answer }))),
    );
    return () => ends.forEach((end) => end());
  }, [runs]);
  const parts = partsOf(original);
  return (
    <main class="home compare" aria-label="Comparison">
      <header class="home-top">
        <h1>{parts ? `Turn ${parts.number} of ${parts.agent}, run again` : 'Comparison'}</h1>
      </header>
      {parts && (
        <p>
          <Go to={{ conversation: parts.conversation, turn: original, agent: parts.agent, runs }}>
            Back to the turn
          </Go>
          , where it can be run again with another change.
        </p>
      )}
      {!parts || made.length === 0 ? (
        <p class="problem">The address names no turn and its runs.</p>
      ) : (
        <Table columns={made.map((run) => ({ run, of: found[run] ?? null }))} original={original} />
      )}
    </main>
  );
}

interface Column {
  run: string;
  /** Null until it has begun; a text says why it cannot be compared. */
  of: TurnComparison | string | null;
}

const FACTS: readonly [string, (turn: ComparedTurn) => string][] = [
  ['State', ({ status, problem }) => problem ?? status],
  ['Model', ({ model }) => model ?? '–'],
  ['Steps', ({ steps }) => String(steps)],
  ['Tokens in', ({ usage }) => whole(usage.input)],
  ['Tokens out', ({ usage }) => whole(usage.output)],
  ['Cost', ({ cost }) => (cost === null ? '–' : dollars(cost))],
  ['Time', ({ ms }) => (ms === null ? '–' : duration(ms))],
];

function Table({ columns, original }: { columns: readonly Column[]; original: string }) {
  const there = columns.flatMap(({ of }) => (of !== null && typeof of === 'object' ? [of] : []));
  const [first] = there;
  const problem = columns.find(({ of }) => typeof of === 'string')?.of;
  if (!first) return typeof problem === 'string' ? <p role="alert">{problem}</p> : <Running />;
  const row = (name: string, before: ComponentChildren, of: (one: TurnComparison) => ComponentChildren) => (
    <tr key={name}>
      <th scope="row">{name}</th>
      <td dir="auto">{before}</td>
      {columns.map((column) => (
        <td key={column.run} dir="auto">
          {typeof column.of === 'string' ? column.of : column.of ? of(column.of) : '…'}
        </td>
      ))}
    </tr>
  );
  return (
    <div class="compare-scroll">
      <table class="compared">
        <thead>
          <tr>
            <td />
            <th scope="col">
              <TurnLink turn={original} name="Before" />
            </th>
            {columns.map(({ run }, at) => (
              <th scope="col" key={run}>
                <TurnLink turn={run} name={columns.length === 1 ? 'In the fork' : `Run ${at + 1}`} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {row('Changed', '–', ({ rerun }) => changeWords(rerun))}
          {FACTS.map(([name, of]) => row(name, of(first.a), ({ b }) => of(b)))}
          {row('Words', columns.length === 1 ? wordsOf(first, 'removed') : first.a.words, (one) =>
            wordsOf(one, 'added'),
          )}
          {row('Calls', <Calls of={first} side="a" />, (one) => (
            <Calls of={one} side="b" />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Running() {
  return (
    <>
      <p role="status">Running…</p>
      <Skeleton />
    </>
  );
}

function TurnLink({ turn, name }: { turn: string; name: string }) {
  const parts = partsOf(turn);
  return (
    <Go to={{ conversation: parts?.conversation ?? null, turn, agent: parts?.agent ?? null }} title={turn}>
      {name}
    </Go>
  );
}

function changeWords(rerun: Rerun | null): string {
  if (rerun === null) return 'another turn';
  const { change } = rerun;
  switch (change?.kind) {
    case undefined:
      return 'nothing';
    case 'message':
      return `message: ${change.content}`;
    case 'instructions':
      return `instructions: ${change.text}`;
    case 'model':
      return `model: ${change.model}`;
    case 'toolResult':
      return `result of ${change.call}: ${change.result}`;
  }
}

/** The words of one side; those that the other lacks are marked. */
function wordsOf({ words }: TurnComparison, own: 'added' | 'removed'): ComponentChildren {
  return words
    .filter(({ change }) => change === 'equal' || change === own)
    .map(({ change, text }, at) =>
      change === 'equal' ? text : own === 'added' ? <ins key={at}>{text}</ins> : <del key={at}>{text}</del>,
    );
}

function Calls({ of: { calls, omitted }, side }: { of: TurnComparison; side: 'a' | 'b' }) {
  if (calls.length === 0) return <>none</>;
  return (
    <ol class="compare-calls">
      {calls.map((pair, at) => (
        <li key={at} class={pair.same ? '' : 'compared-other'}>
          {pair.name}: {side === 'b' && pair.same ? 'the same' : callWords(pair[side])}
        </li>
      ))}
      {omitted > 0 && <li class="quiet">{omitted} more</li>}
    </ol>
  );
}

function callWords(call: ComparedCall | null): string {
  return call ? `${call.args} → ${call.outcome ?? 'no result'}: ${call.result}` : 'not made';
}

/** Events come in bursts: the end of a turn is five of them. */
const SETTLE_MS = 250;
/** What the stream of the fork begins with: the end of the turn is among it, if it has come before the stream. */
const NEWEST = '20';

/** Tells the comparison now, and again until the run has ended. Returns a function that ends it. */
function followRun(
  original: string,
  run: string,
  told: (answer: TurnComparison | string) => void,
): () => void {
  let isOver = false;
  let leave = () => {};
  const end = () => {
    isOver = true;
    leave();
    news.stop();
  };
  const ask = async () => {
    const answer = await api.compare(original, run).catch((error: unknown) => {
      // It has not begun.
      if (error instanceof ApiError && error.code === 'turn_unknown' && error.data['turn'] === run)
        return null;
      return messageOf(error);
    });
    if (isOver) return;
    if (answer !== null) told(answer);
    if (typeof answer === 'object' && answer !== null && answer.b.status !== 'running') end();
  };
  const news = settled(SETTLE_MS, () => void ask());
  const conversation = partsOf(run)?.conversation ?? '';
  leave = followStream({ conversation, newest: NEWEST }, (frame) => {
    // At a beginning it may have happened already.
    if (frame === null || (frame.event === 'event' && (JSON.parse(frame.data) as Event).turn === run))
      news.soon();
  });
  return end;
}
