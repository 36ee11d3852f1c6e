import type { TurnView } from '../../../../src/library/projection/model.ts';
import { calls, shown, streams } from '../../state/live.ts';
import { nameOf } from '../../state/selection.ts';
import { RunningCalls } from '../running-calls.tsx';
import { SpeakerLine } from './words.tsx';

/** The text of running turns so far. Provisional: their events replace it. */
export function UnderWay() {
  const running = (shown.value?.turns ?? []).filter(({ status }) => status === 'running');
  return (
    <>
      {running.map((turn) => (
        <Running key={turn.id} turn={turn} />
      ))}
    </>
  );
}

function Running({ turn }: { turn: TurnView }) {
  const { id, agent, startedAt, from } = turn;
  const name = nameOf(agent);
  const text = streams.value.get(id) ?? '';
  const called = calls.value.get(id) ?? [];
  return (
    <div class="item">
      <article class="words words-agent words-running" aria-label={`${name} is at work`} aria-busy="true">
        <SpeakerLine author={{ kind: 'agent', id: agent, name }} at={startedAt} seq={from} turn={id} />
        <div class="words-body" dir="auto">
          {called.length > 0 && <RunningCalls calls={called} />}
          {text !== '' && <p class="words-plain">{text}</p>}
          <span class="words-dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
        </div>
      </article>
    </div>
  );
}
