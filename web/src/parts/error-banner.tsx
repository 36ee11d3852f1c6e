import type { TurnView } from '../../../src/library/projection/model.ts';
import type { ActorStatus } from '../../../src/library/troupe.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { plural } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { actors } from '../state/live.ts';
import { isPast } from '../state/past.ts';
import { nameOf } from '../state/selection.ts';
import { ForkButton } from './detail/fork-button.tsx';

/** Why a turn failed, what was tried, and what a person can do. */
export function ErrorBanner({ turn }: { turn: TurnView }) {
  const { error, retries, retried, id } = turn;
  if (!error) return null;
  return (
    <div class="failure">
      <p>
        <Go to={{ event: error.seq, turn: id, tab: 'raw' }} class="failure-code">
          {error.code}
        </Go>{' '}
        {error.message}
      </p>
      <p class="quiet">
        {retries > 0
          ? `Stopped after ${plural(retries, 'retry').replace('retrys', 'retries')}.`
          : 'Stopped without an automatic retry.'}{' '}
        {retried !== null && (
          <Go to={{ list: 'events', kind: '*', event: retried }}>A retry was requested at {retried}.</Go>
        )}
      </p>
      {!isPast.value && (
        <p class="failure-acts">
          {retried === null && <RetryOffer turn={turn} />}
          <ForkButton turn={id} />
        </p>
      )}
    </div>
  );
}

/** The button if the engine would accept the command, else the reason why not. */
function RetryOffer({ turn: { id, agent } }: { turn: TurnView }) {
  const actor = actors.value.find((each) => each.agent === agent);
  if (!actor) return null;
  const why = refusalOf(actor, id);
  if (why === null) return <CommandButton command={{ command: 'retry', turn: id }} label="Retry" />;
  return <span class="quiet">Retry is not possible: {why}.</span>;
}

function refusalOf({ agent, can, turn, lastTurn, status }: ActorStatus, asked: string): string | null {
  const newest = turn ?? lastTurn;
  if (newest !== asked) return `a later turn of ${nameOf(agent)} exists`;
  if (can.includes('retry')) return null;
  if (status === 'paused') return `${nameOf(agent)} is paused, so resume it first`;
  if (status === 'retired') return `${nameOf(agent)} is retired, so reinstate it first`;
  return status === 'running' ? 'it is running' : `${nameOf(agent)} takes no retry now`;
}
