import type { TurnView } from '../../../src/projection/model.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { plural } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { isPast } from '../state/past.ts';
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
          {retried === null && <CommandButton command={{ command: 'retry', turn: id }} label="Retry" />}
          <ForkButton turn={id} label="Start a new conversation from here" />
        </p>
      )}
    </div>
  );
}
