import { useEffect, useMemo } from 'preact/hooks';
import { rowOf } from '../../../src/library/projection/row.ts';
import { whole } from '../shared/format.ts';
import { everyRow } from '../state/every-row.ts';
import { isFiltered, rowsQuery } from '../state/filter.ts';
import { isFold } from '../state/fold-noise.ts';
import { onEvents } from '../state/live.ts';
import { route } from '../state/route.ts';
import type { RowSource } from '../state/row-source.ts';
import { head } from '../state/selection.ts';
import { someRows } from '../state/some-rows.ts';
import { listed } from '../state/listed.ts';
import { EventRow } from './event-row.tsx';
import { ROW_PX, useRowScroll } from './row-scroll.ts';

/** The events, newest at the bottom. Only visible rows are in the document. */
export function EventList() {
  const { conversation, kind, q, problems, by, at } = route.value;
  const hasHead = head.value > 0;
  const source = useMemo<RowSource | null>(() => {
    if (conversation === null || !hasHead) return null;
    const filter = { kind, q, problems, by };
    return kind === '*' && !isFiltered(filter)
      ? everyRow(conversation, at ?? head.peek())
      : someRows(conversation, {
          query: rowsQuery(filter),
          end: at,
          isFolded: kind === '' && !isFiltered(filter),
        });
  }, [conversation, hasHead, kind, q, problems, by, at]);
  useEffect(() => {
    if (!source) return;
    const stop =
      at === null
        ? onEvents((events) => source.arrived(events.map(rowOf), events.at(-1)?.seq ?? 0))
        : () => {};
    return () => {
      stop();
      source.close();
    };
  }, [source]);
  return source && <Rows key={conversation} source={source} />;
}

function Rows({ source }: { source: RowSource }) {
  const { event } = route.value;
  const { box, count, first, end, most, follows, follow, onScroll } = useRowScroll(source, event);
  listed.value = source;
  const rows = [];
  // A new row reuses the elements of one that scrolled away. All others keep theirs, since the number of slots does not change.
  for (let index = first; index < end; index++) {
    rows.push(<Slot key={index % most} source={source} index={index} event={event} />);
  }
  return (
    <>
      {source.problem.value !== null && <p class="list-nothing problem">{source.problem.value}</p>}
      <div
        class="list-rows"
        id="rows"
        ref={box}
        tabIndex={0}
        role="group"
        aria-label="Events"
        onScroll={onScroll}
        onWheel={(wheel) => {
          if (wheel.deltaY < 0 && canScroll(wheel.currentTarget)) follow(false);
        }}
        onKeyDown={(key) => {
          if (UPWARDS.has(key.key) && canScroll(key.currentTarget)) follow(false);
        }}
      >
        {count === 0 && source.problem.value === null && <p class="list-nothing quiet">No event matches.</p>}
        <div class="list-space" style={{ height: `${count * ROW_PX}px` }}>
          <div class="list-window" style={{ transform: `translateY(${first * ROW_PX}px)` }}>
            {rows}
          </div>
        </div>
      </div>
      <footer class="list-foot">
        <span class="quiet">{whole(count)} lines</span>
        <span class="spring" />
        <label class="list-check">
          <input
            type="checkbox"
            checked={follows}
            onChange={(change) => {
              follow(change.currentTarget.checked);
              if (change.currentTarget.checked) source.seek(null);
            }}
          />
          Follow the newest
        </label>
      </footer>
    </>
  );
}

const UPWARDS: ReadonlySet<string> = new Set(['ArrowUp', 'PageUp', 'Home']);

/** False until the list has content. */
function canScroll({ scrollTop, clientHeight, scrollHeight }: Element): boolean {
  return scrollTop > 0 || scrollHeight <= clientHeight;
}

function Slot({ source, index, event }: { source: RowSource; index: number; event: number | null }) {
  const line = source.lineAt(index);
  if (line === null) return <div class="event event-blank">…</div>;
  if (!isFold(line)) return <EventRow row={line} isChosen={line.seq === event} />;
  return (
    <button type="button" class="event event-fold" onClick={() => source.unfold(line.seq)}>
      <span class="event-seq">{line.seq}</span>
      <span>{line.count} minor events</span>
    </button>
  );
}
