import { mayGive } from '../../state/caller.ts';
import { useState } from 'preact/hooks';
import type { TurnView } from '../../../../src/library/projection/model.ts';
import { later } from '../../shared/later.tsx';
import { READ_ONLY } from '../../state/connection.ts';
import { mode } from '../../state/settings.ts';

const RerunDialog = later(async () => (await import('./rerun-dialog.tsx')).RerunDialog);

/** Runs a turn again in a fork, with a change. A turn that is still running cannot be compared yet. */
export function RerunButton({ turn }: { turn: TurnView }) {
  const [isOpen, setOpen] = useState(false);
  if (turn.status === 'running') return null;
  const isOff = mode === 'read-only';
  if (!mayGive('rerun')) return null;
  return (
    <>
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
