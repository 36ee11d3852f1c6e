import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { rowOf } from '../../../src/projection/row.ts';
import { whole } from '../shared/format.ts';
import { everyRow } from '../state/every-row.ts';
import { isFiltered, rowsQuery } from '../state/filter.ts';
import { isFold } from '../state/fold-noise.ts';
import { onEvents } from '../state/live.ts';
import { route } from '../state/route.ts';
import type { RowSource } from '../state/row-source.ts';
import { head } from '../state/selection.ts';
import { someRows } from '../state/some-rows.ts';
import { scrollFor, windowOf } from '../state/window.ts';
import { listed } from '../state/listed.ts';
import { EventRow } from './event-row.tsx';

const ROW_PX = 28;

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
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ top: Number.MAX_SAFE_INTEGER, height: 400 });
  const [follows, setFollows] = useState(true);
  /** A ref, so that it is current at once: an earlier render must not pull back a reader who scrolls up. */
  const tail = useRef<{ follows: boolean; source: RowSource | null; top: number; count: number }>({
    follows: true,
    source: null,
    top: 0,
    count: 0,
  });
  const follow = (isOn: boolean) => {
    tail.current.follows = isOn;
    setFollows(isOn);
  };
  /** The row at the top edge. It stays in place when older rows are added above. */
  const anchor = useRef<{ seq: number; offset: number } | null>(null);
  const version = source.version.value;
  const count = source.count();
  const { event } = route.value;
  /** The event last sought outside the loaded rows. It is sought only once, since it may not match the filter. */
  const sought = useRef<number | null>(null);
  const shownEvent = useRef<{ source: RowSource; event: number | null } | null>(null);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    // An empty list has no scroll position.
    const measure = () =>
      setPlace(({ top }) => ({
        top: tail.current.count === 0 ? top : element.scrollTop,
        height: element.clientHeight,
      }));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const known = tail.current;
    const isPlaced = known.source === source && known.count > 0;
    // The user has scrolled, but the scroll event has not arrived yet.
    if (isPlaced && known.count <= count && element.scrollTop < known.top - 1) follow(false);
    const index = event === null ? -1 : source.indexOf(event);
    const isNew = shownEvent.current?.source !== source || shownEvent.current.event !== event;
    const line = index >= 0 ? source.lineAt(index) : null;
    if (isNew && line && isFold(line)) source.unfold(line.seq);
    else if (isNew && index >= 0) {
      shownEvent.current = { source, event };
      const { scrollTop, clientHeight: height } = element;
      const wanted = scrollFor(index, { scrollTop, height, rowHeight: ROW_PX });
      // A distant event is shown with its surroundings.
      if (wanted !== null)
        element.scrollTop = Math.abs(wanted - scrollTop) > height ? wanted - height / 2 : wanted;
      if (index < count - 1) follow(false);
    } else if (isNew && event !== null && count > 0 && sought.current !== event) {
      sought.current = event;
      follow(false);
      source.seek(event);
    } else if (known.follows || (!isPlaced && event === null)) element.scrollTop = count * ROW_PX;
    else if (anchor.current) {
      const now = source.indexOf(anchor.current.seq);
      if (now >= 0) element.scrollTop = now * ROW_PX + anchor.current.offset;
    }
    Object.assign(known, { source, count, top: element.scrollTop });
  }, [version, source, event, follows]);

  const { first, end } = windowOf(
    Math.min(place.top, Math.max(0, count * ROW_PX - place.height)),
    place.height,
    ROW_PX,
    count,
  );
  useEffect(() => source.need(first, end), [source, first, end, version]);
  listed.value = source;

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    const { scrollTop, clientHeight, scrollHeight } = element;
    const top = source.lineAt(Math.floor(scrollTop / ROW_PX));
    anchor.current = top && { seq: top.seq, offset: scrollTop % ROW_PX };
    follow(scrollHeight - scrollTop - clientHeight < ROW_PX);
    tail.current.top = scrollTop;
    setPlace({ top: scrollTop, height: clientHeight });
  };
  const rows = [];
  // One slot per visible row: a new row reuses the elements of one that left.
  const slots = end - first;
  for (let index = first; index < end; index++) {
    rows.push(<Slot key={index % slots} source={source} index={index} event={event} />);
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
      <span>{line.count} more of little weight</span>
    </button>
  );
}
