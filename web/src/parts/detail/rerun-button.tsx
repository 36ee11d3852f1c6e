import { mayGive } from '../../state/caller.ts';
import { useState } from 'preact/hooks';
import type { TurnView } from '../../../../src/library/projection/model.ts';
import { plural } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { later } from '../../shared/later.tsx';
import { counterpartOf } from '../../state/copied.ts';
import { READ_ONLY } from '../../state/connection.ts';
import { route } from '../../state/route.ts';
import { mode } from '../../state/settings.ts';
import { runsOf } from './chosen.ts';

const RerunDialog = later(async () => (await import('./rerun-dialog.tsx')).RerunDialog);

/** Runs a turn again in a fork, with a change. A turn that is still running cannot be compared yet. */
export function RerunButton({ turn }: { turn: TurnView }) {
  const [isOpen, setOpen] = useState(false);
  if (turn.status === 'running') return null;
  const isOff = mode === 'read-only';
  if (!mayGive('rerun')) return null;
  const { runs } = route.value;
  const { length } = runsOf(turn.id);
  const original = counterpartOf(turn);
  return (
    <>
      {length > 0 && (
        <Go to={{ conversation: null, view: 'compare', runs }}>compare with {plural(length, 'run')}</Go>
      )}
      {original !== null && (
        <Go to={{ conversation: null, view: 'compare', runs: `${original},${turn.id}` }}>
          compare with the original
        </Go>
      )}
      <button
        type="button"
        class="button"
        disabled={isOff}
        title={isOff ? READ_ONLY : 'In a fork, with a change, beside this turn'}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        Run again…
      </button>
      {isOpen && <RerunDialog turn={turn} onClose={() => setOpen(false)} />}
    </>
  );
}
