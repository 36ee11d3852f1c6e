import { useEffect, useRef, useState } from 'preact/hooks';
import { Go } from '../shared/go.tsx';
import { Icon } from '../shared/icon.tsx';
import { connection, shown, states } from '../state/live.ts';
import { route } from '../state/route.ts';
import { selectEvent, selectTurn, turns } from '../state/selection.ts';
import { LANE_PX, layoutTimeline, xOf, type View } from '../state/timeline-layout.ts';
import { fit, isWholeSeen, pan, reveal, timelineRange, zoom } from '../state/timeline-view.ts';
import { timelineRows } from '../state/timeline-rows.ts';
import { TimelineLanes } from './timeline-lanes.tsx';
import { TimelineText } from './timeline-text.tsx';
import { TimelineDrawing } from './timeline-drawing.tsx';
import '../style/timeline.css';

const AXIS_PX = 24;

/** Who did what to whom, in order. */
export function Timeline() {
  const { scroller, size } = useScroller();
  const { turn, event } = route.value;
  useEffect(() => {
    const from = event ?? turns.peek().find(({ id }) => id === turn)?.from;
    if (from !== undefined) reveal(from);
  }, [turn, event]);

  const projection = shown.value;
  const lanes = Object.keys(projection?.agents ?? {});
  const range = timelineRange.value;
  const view: View = {
    ...range,
    width: size.width,
    lanes: [Math.floor(size.top / LANE_PX) - 2, Math.ceil((size.top + size.height) / LANE_PX) + 2],
  };
  const height = (lanes.length + 1) * LANE_PX;
  const layout = projection ? layoutTimeline(projection, timelineRows(range), view) : null;
  return (
    <section class="timeline" aria-label="Timeline">
      <header class="bar">
        <h2>Timeline</h2>
        <span class="quiet">
          {connection.value.state === 'opening' ? '' : `seq ${range.from}–${range.to}`}
        </span>
        <Lineage />
        <span class="spring" />
        <Tool icon="plus" label="Show fewer events" title="Zoom in (+)" onClick={() => zoom(0.5)} />
        <Tool icon="minus" label="Show more events" title="Zoom out (−)" onClick={() => zoom(2)} />
        <Tool
          icon="fit"
          label="Show the whole conversation"
          title="Fit all (0)"
          isOff={isWholeSeen.value}
          onClick={fit}
        />
      </header>
      <div
        class="timeline-scroller"
        ref={scroller}
        tabIndex={0}
        role="group"
        aria-label="Lanes of agents"
        onKeyDown={onKey}
      >
        <TimelineLanes ids={lanes} agents={projection?.agents ?? {}} />
        <div class="timeline-drawing" onClick={onClick}>
          {layout && projection && (
            <TimelineDrawing
              layout={layout}
              width={size.width}
              height={height}
              axis={AXIS_PX}
              turn={turn}
              event={event}
              at={route.value.at === null ? null : xOf(route.value.at + 1, view)}
              states={route.value.at === null ? states.value : NO_STATES}
            />
          )}
        </div>
      </div>
      {layout && <TimelineText layout={layout} />}
    </section>
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
  icon: 'plus' | 'minus' | 'fit';
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

const NO_STATES: typeof states.value = new Map();

function onWheel(event: WheelEvent): void {
  const box = (event.currentTarget as Element).querySelector('.timeline-drawing')?.getBoundingClientRect();
  if (!box) return;
  const { from, to } = timelineRange.peek();
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)));
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
    event.preventDefault();
    const by = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    const moved = (by / box.width) * (to - from);
    pan(Math.sign(moved) * Math.max(1, Math.abs(moved)));
  }
}

function onKey(event: KeyboardEvent): void {
  const { from, to } = timelineRange.peek();
  const by = Math.max(1, (to - from) / 8);
  const acts: Record<string, () => void> = {
    '+': () => zoom(0.5),
    '=': () => zoom(0.5),
    '-': () => zoom(2),
    '0': fit,
    ArrowLeft: () => pan(-by),
    ArrowRight: () => pan(by),
  };
  const act = acts[event.key];
  if (!act || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  act();
}

/** One click listener for everything: a thousand marks need none of their own. */
function onClick(event: MouseEvent): void {
  const mark = (event.target as Element).closest<SVGElement>('[data-turn],[data-seq]');
  const { turn, seq, of } = mark?.dataset ?? {};
  if (turn !== undefined) selectTurn(turns.peek().find(({ id }) => id === turn));
  else if (seq !== undefined) selectEvent(Number(seq), of ?? null);
}
