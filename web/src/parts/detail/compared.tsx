import type { CallPair, ComparedCall, ComparedTurn, TurnComparison } from '../../../../src/library/troupe.ts';
import { Go } from '../../shared/go.tsx';
import { partsOf } from './chosen.ts';

const FACTS: readonly [string, (turn: ComparedTurn) => string][] = [
  ['State', ({ status, problem }) => problem ?? status],
  ['Model', ({ model }) => model ?? '–'],
  ['Steps', ({ steps }) => String(steps)],
  ['Tokens in', ({ usage }) => usage.input.toLocaleString()],
  ['Tokens out', ({ usage }) => usage.output.toLocaleString()],
  ['Cost', ({ cost }) => (cost === null ? '–' : `$${cost.toFixed(cost < 0.01 ? 6 : 4)}`)],
  ['Time', ({ ms }) => (ms === null ? '–' : `${ms.toLocaleString()} ms`)],
];

export function Compared({ of: { a, b, words, calls, omitted } }: { of: TurnComparison }) {
  const parts = partsOf(b.turn);
  return (
    <>
      <table class="compared">
        <thead>
          <tr>
            <td />
            <th scope="col">Before</th>
            <th scope="col">
              <Go
                to={{
                  conversation: b.turn.split(':').slice(0, -2).join(':'),
                  turn: b.turn,
                  agent: parts?.agent ?? null,
                }}
              >
                In the fork
              </Go>
            </th>
          </tr>
        </thead>
        <tbody>
          {FACTS.map(([name, of]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{of(a)}</td>
              <td>{of(b)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">Words</th>
            <td dir="auto">
              {words.map(({ change, text }, at) =>
                change === 'added' ? null : change === 'removed' ? <del key={at}>{text}</del> : text,
              )}
            </td>
            <td dir="auto">
              {words.map(({ change, text }, at) =>
                change === 'removed' ? null : change === 'added' ? <ins key={at}>{text}</ins> : text,
              )}
            </td>
          </tr>
          {calls.map((pair, at) => (
            <Call key={at} of={pair} />
          ))}
        </tbody>
      </table>
      {omitted > 0 && <p class="quiet">{omitted} more calls</p>}
    </>
  );
}

function Call({ of: { name, same, a, b } }: { of: CallPair }) {
  return (
    <tr class={same ? '' : 'compared-other'}>
      <th scope="row">{name}</th>
      <td>{shown(a)}</td>
      <td>{same ? 'the same' : shown(b)}</td>
    </tr>
  );
}

function shown(call: ComparedCall | null): string {
  return call ? `${call.args} → ${call.outcome ?? 'no result'}: ${call.result}` : 'not made';
}
