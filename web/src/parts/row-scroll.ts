import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isFold } from '../state/fold-noise.ts';
import type { RowSource } from '../state/row-source.ts';
import { scrollFor, windowOf } from '../state/window.ts';

export const ROW_PX = 28;

/** A ref, so that it is always current: an earlier render must not pull back a reader who scrolls up. */
interface Scroll {
  follows: boolean;
  /** The list as it was last placed. */
  source: RowSource | null;
  top: number;
  count: number;
  /** The row at the top edge. It stays in place when older rows are added above it. */
  anchor: { seq: number; offset: number } | null;
  /** The event last searched outside the loaded rows. It is searched only once, because it may not match the filter. */
  sought: number | null;
  shown: { source: RowSource; event: number | null } | null;
}

interface Target {
  source: RowSource;
  count: number;
  event: number | null;
  follow: (isOn: boolean) => void;
}

/** The scroll position of the list: follows the newest row, shows a selected event, or else stays where it is. */
export function useRowScroll(source: RowSource, event: number | null) {
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ top: Number.MAX_SAFE_INTEGER, height: 400 });
  const [follows, setFollows] = useState(true);
  const { current: scroll } = useRef<Scroll>({
    follows: true,
    source: null,
    top: 0,
    count: 0,
    anchor: null,
    sought: null,
    shown: null,
  });
  const follow = (isOn: boolean) => {
    scroll.follows = isOn;
    setFollows(isOn);
  };
  const version = source.version.value;
  const count = source.count();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    // An empty list has no scroll position.
    const measure = () =>
      setPlace(({ top }) => ({
        top: scroll.count === 0 ? top : element.scrollTop,
        height: element.clientHeight,
      }));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element) placeRows(element, scroll, { source, count, event, follow });
  }, [version, source, event, follows]);

  const bottom = Math.max(0, count * ROW_PX - place.height);
  const { first, end, most } = windowOf(
    follows ? bottom : Math.min(place.top, bottom),
    place.height,
    ROW_PX,
    count,
  );
  useEffect(() => source.need(first, end), [source, first, end, version]);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    const { scrollTop, clientHeight, scrollHeight } = element;
    const topRow = source.lineAt(Math.floor(scrollTop / ROW_PX));
    scroll.anchor = topRow && { seq: topRow.seq, offset: scrollTop % ROW_PX };
    follow(scrollHeight - scrollTop - clientHeight < ROW_PX);
    scroll.top = scrollTop;
    setPlace({ top: scrollTop, height: clientHeight });
  };
  return { box, count, first, end, most, follows, follow, onScroll };
}

function placeRows(element: Element, scroll: Scroll, target: Target): void {
  const { source, count, event, follow } = target;
  const isPlaced = scroll.source === source && scroll.count > 0;
  // The user has scrolled, but the scroll event has not arrived yet.
  if (isPlaced && scroll.count <= count && element.scrollTop < scroll.top - 1) follow(false);
  if (!showEvent(element, scroll, target)) {
    if (scroll.follows || (!isPlaced && event === null)) element.scrollTop = count * ROW_PX;
    else if (scroll.anchor) {
      const now = source.indexOf(scroll.anchor.seq);
      if (now >= 0) element.scrollTop = now * ROW_PX + scroll.anchor.offset;
    }
  }
  Object.assign(scroll, { source, count, top: element.scrollTop });
}

/** Shows an event that was selected since the last placement. False if there is none, or it was not found. */
function showEvent(element: Element, scroll: Scroll, { source, count, event, follow }: Target): boolean {
  const isNew = scroll.shown?.source !== source || scroll.shown.event !== event;
  if (!isNew || event === null) return false;
  const index = source.indexOf(event);
  const line = index >= 0 ? source.lineAt(index) : null;
  if (line && isFold(line)) source.unfold(line.seq);
  else if (index >= 0) {
    scroll.shown = { source, event };
    const { scrollTop, clientHeight: height } = element;
    const wanted = scrollFor(index, { scrollTop, height, rowHeight: ROW_PX });
    if (wanted !== null) element.scrollTop = wanted;
    if (index < count - 1) follow(false);
  } else if (count > 0 && scroll.sought !== event) {
    scroll.sought = event;
    follow(false);
    source.seek(event);
  } else return false;
  return true;
}
