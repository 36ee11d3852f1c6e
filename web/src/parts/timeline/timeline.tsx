import { effect } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Go } from '../../shared/go.tsx';
import { Icon } from '../../shared/icon.tsx';
import { conversation, route } from '../../state/route.ts';
import { shown } from '../../state/live.ts';
import { head, selectedAgent, turns } from '../../state/selection.ts';
import {
  chosenTurn,
  cursor,
  fitChosen,
  moveCursor,
  moveCursorTo,
  selectTarget,
} from '../../state/timeline/cursor.ts';
import { logTimes, openTimes } from '../../state/timeline/loaded-times.ts';
import {
  beat,
  fitAll,
  isAllSeen,
  isAtNewest,
  panBy,
  placed,
  resetView,
  reveal,
  revealEvent,
  spans,
  view,
  width as widthShown,
  zoomBy,
} from '../../state/timeline/view.ts';
import { TimelineCanvas } from './canvas.tsx';
import { AXIS_PX } from './draw.ts';
import { TimelineLanes } from './lanes.tsx';
import { TimelineText } from './text.tsx';
import { wordsOf } from './words.ts';
import { span } from './span-words.ts';
import '../../style/timeline.css';

const BEAT_MS = 500;

/** Who worked when, for how long, and on what. */
export function Timeline() {
  const { scroller, size } = useScroller();
  const id = conversation.value;
  const isOpen = head.value > 0;
  useEffect(() => {
    resetView();
    cursor.value = null;
    return id !== null && isOpen ? openTimes(id, isAtNewest) : undefined;
  }, [id, isOpen]);
  useRevealed();
  useLaneInView(scroller);
  useBeat();
  const lanes = placed.value;
  const all = spans.value;
  const seen = view.value;
  return (
    <>
      <header class="bar">
        <h2>Timeline</h2>
        <span class="quiet clip" title="What is in view">
          {seen && all && (isOneMoment(all) ? AT_ONCE : span(seen))}
        </span>
        <Lineage />
        <span class="spring" />
        <Tool icon="plus" label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(0.5)} />
        <Tool
          icon="minus"
          label="Zoom out"
          title="Zoom out (−)"
          isOff={isAllSeen.value}
          onClick={() => zoomBy(2)}
        />
        <Tool
          icon="target"
          label="Fit the selected turn"
          title="Fit the selected turn (s)"
          isOff={route.value.turn === null && cursor.value === null}
          onClick={fitChosen}
        />
        <Tool
          icon="fit"
          label="Show the whole conversation"
          title="Fit all (0)"
          isOff={isAllSeen.value}
          onClick={fitAll}
        />
      </header>
      <div
        class="timeline-scroller"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-label="Turns by time"
        aria-describedby="timeline-keys"
        onKeyDown={onKey}
        onBlur={() => (cursor.value = null)}
      >
        <TimelineLanes lanes={lanes?.lanes ?? []} />
        <div class="timeline-drawing" style={{ height: `${(lanes?.height ?? 0) + AXIS_PX}px` }}>
          <div class="timeline-pane">
            <TimelineCanvas {...size} />
          </div>
        </div>
      </div>
      <p class="unseen" id="timeline-keys">
        Left and right: turns of an agent. Up and down: agents. Enter selects. Plus and minus zoom, 0 shows
        all.
      </p>
      <p class="unseen" role="status">
        {cursor.value && said()}
      </p>
      {all && <TimelineText spans={all} />}
    </>
  );
}

/** Shown for an imported file without times, all of whose events have the time of the import. */
const AT_ONCE = 'Every event has the same time: the log it was imported from had none';
const ONE_MOMENT_MS = 5;

function isOneMoment({ from, to, lanes }: NonNullable<typeof spans.value>): boolean {
  return head.value > 20 && to - from <= ONE_MOMENT_MS && lanes.every(({ turns: each }) => each.length === 0);
}

/** Scrolls to the lane of the selected turn or agent, and to the lane with the keyboard focus. */
function useLaneInView(scroller: { current: HTMLElement | null }): void {
  const { turn, agent: chosen } = route.value;
  const isChosen = turn !== null || chosen !== null;
  const agent = cursor.value?.agent ?? (isChosen ? (selectedAgent.value?.id ?? null) : null);
  const lane = placed.value?.lanes.find((each) => each.lane.agent === agent);
  useEffect(() => {
    const element = scroller.current;
    if (!element || !lane) return;
    const room = element.clientHeight - AXIS_PX;
    const end = lane.y + Math.min(lane.height, room);
    if (lane.y < element.scrollTop) element.scrollTop = lane.y;
    else if (end > element.scrollTop + room) element.scrollTop = end - room;
  }, [agent, lane?.y, lane?.height]);
}

function said(): string {
  const turn = cursor.value;
  if (!turn) return '';
  const { title, lines } = wordsOf({ kind: 'turn', turn, thread: null });
  return [title, ...lines].join(', ');
}

/** Scrolls to the selection in the address, once its time is known. */
function useRevealed(): void {
  const { turn, event } = route.value;
  const isKnown = logTimes.value.times.at.length > 0;
  const isThere = view.value !== null && (turns.value.length > 0 || isKnown);
  const first = logTimes.value.times.first;
  useEffect(() => {
    if (!isThere) return;
    if (event !== null) return revealEvent(event);
    const chosen = chosenTurn();
    if (chosen) reveal([chosen.start, chosen.end]);
  }, [turn, event, isThere, isKnown, first]);
}

/** Lets running turns grow while the page is visible. */
function useBeat(): void {
  useEffect(
    () =>
      effect(() => {
        if (!shown.value || shown.value.totals.running === 0 || route.value.at !== null) return;
        const timer = setInterval(() => {
          if (document.visibilityState === 'visible') beat.value += 1;
        }, BEAT_MS);
        return () => clearInterval(timer);
      }),
    [],
  );
}

/** The element that scrolls the lanes, and its measured size. */
function useScroller() {
  const scroller = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 600, height: 200, top: 0 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => {
      const width = element.querySelector('.timeline-drawing')?.clientWidth ?? 600;
      widthShown.value = width;
      setSize({ width, height: element.clientHeight, top: element.scrollTop });
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => observer.disconnect();
  }, []);
  return { scroller, size };
}

interface ToolProps {
  icon: 'plus' | 'minus' | 'fit' | 'target';
  label: string;
  title: string;
  isOff?: boolean;
  onClick: () => void;
}

function Tool({ icon, label, title, isOff = false, onClick }: ToolProps) {
  return (
    <button type="button" class="tool" aria-label={label} title={title} disabled={isOff} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

/** The parent and the forks of this conversation. */
function Lineage() {
  const { origin = null, forks = [] } = shown.value ?? {};
  const last = forks.at(-1);
  return (
    <span class="clip">
      {origin && (
        <Go to={{ conversation: origin.conversation, list: 'events', kind: '*', event: origin.seq }}>
          forked from {origin.conversation} at {origin.seq}
        </Go>
      )}
      {origin && last && ', '}
      {last && (
        <Go to={{ conversation: last.conversation }}>
          {forks.length > 1 ? `${forks.length} forks, last ` : 'forked as '}
          {last.conversation}
        </Go>
      )}
    </span>
  );
}

const WHEEL_ZOOM = 1.0018;

/** With Ctrl, or where the lanes cannot scroll, the wheel zooms at the pointer. Sideways it moves through time. */
function onWheel(event: WheelEvent): void {
  const element = event.currentTarget as HTMLElement;
  const box = element.querySelector('.timeline-drawing')?.getBoundingClientRect();
  if (!box) return;
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  if (event.ctrlKey || event.metaKey || (!isSideways && element.scrollHeight <= element.clientHeight)) {
    event.preventDefault();
    zoomBy(WHEEL_ZOOM ** event.deltaY, Math.max(0, Math.min(box.width, event.clientX - box.left)));
  } else if (isSideways) {
    event.preventDefault();
    panBy(event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX);
  }
}

function onKey(event: KeyboardEvent): void {
  const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
  if (ctrlKey || metaKey || altKey) return;
  const by = widthShown.peek() / 4;
  const acts: Record<string, () => void> = {
    '+': () => zoomBy(0.5),
    '=': () => zoomBy(0.5),
    '-': () => zoomBy(2),
    '0': fitAll,
    s: fitChosen,
    ArrowLeft: () => (shiftKey ? panBy(-by) : moveCursor(-1, 0)),
    ArrowRight: () => (shiftKey ? panBy(by) : moveCursor(1, 0)),
    ArrowUp: () => moveCursor(0, -1),
    ArrowDown: () => moveCursor(0, 1),
    Home: () => moveCursorTo(0),
    End: () => moveCursorTo(-1),
    Enter: () => {
      const turn = cursor.peek();
      if (turn) selectTarget({ kind: 'turn', turn, thread: null });
    },
  };
  const act = acts[key];
  if (!act) return;
  event.preventDefault();
  act();
}
