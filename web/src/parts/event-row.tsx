import type { Row } from '../../../src/library/projection/model.ts';
import { ERASED } from '../shared/erased.ts';
import { clock, moment } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { memo } from '../shared/memo.ts';
import { route } from '../state/route.ts';
import { nameOf } from '../state/selection.ts';

const LEVELS: Record<Row['level'], string> = { talk: '', work: '', noise: '', problem: '!' };

/** One event in a row of fixed height. */
export const EventRow = memo(function EventRow({ row, isChosen }: { row: Row; isChosen: boolean }) {
  const { seq, at, kind, author, to, summary, turn, level, erased } = row;
  // A reader of the Events tab stays on that tab.
  const tab = route.peek().tab === 'events' ? 'events' : 'raw';
  return (
    <Go
      class={`event event-${level}`}
      to={{ event: seq, tab, ...(turn !== null && { turn, step: null, vs: null }) }}
      isCurrent={isChosen}
      title={`${new Date(at).toDateString()} ${clock(at)} ${kind}: ${summary}`}
    >
      <span class="event-seq">{seq}</span>
      <span class="event-time">{moment(at)}</span>
      <span class={`event-kind event-kind-${level} clip`}>
        {LEVELS[level] && <b aria-hidden="true">{LEVELS[level]} </b>}
        {kind}
      </span>
      <span class="event-text clip">
        <b>
          <bdi>{author}</bdi>
          {to.length > 0 && ` → ${to.length > 3 ? `${to.length} agents` : to.map(nameOf).join(', ')}`}
        </b>{' '}
        {turn !== null && kind.startsWith('turn.') && (
          <span class="quiet">turn {turn.slice(turn.lastIndexOf(':') + 1)} </span>
        )}
        {erased && <span class="hole">{ERASED}</span>} <bdi>{summary}</bdi>
      </span>
    </Go>
  );
});
