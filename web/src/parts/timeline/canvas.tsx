import { useEffect, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { shown } from '../../state/live.ts';
import { route } from '../../state/route.ts';
import { cursor, fitTurn, selectTarget } from '../../state/timeline/cursor.ts';
import { type Layout, layoutTimeline, type Target } from '../../state/timeline/layout.ts';
import { targetAt } from '../../state/timeline/target-at.ts';
import { needThread } from '../../state/timeline/loaded-times.ts';
import { panBy, placed, view } from '../../state/timeline/view.ts';
import { theme } from '../../state/theme.ts';
import { type Colours, coloursOf } from './colours.ts';
import { AXIS_PX, drawTimeline } from './draw.ts';
import { wordsOf } from './words.ts';

interface CanvasProps {
  width: number;
  height: number;
  /** Scroll position of the lanes. */
  top: number;
}

const DRAG_PX = 4;
const TOOLTIP_PX = 300;

/** The drawing for sighted users, with mouse and touch. `TimelineText` and the keyboard give the same as text. */
export function TimelineCanvas(size: CanvasProps) {
  const { width, height } = size;
  const canvas = useRef<HTMLCanvasElement>(null);
  const hot = useSignal<{ target: Target; x: number; y: number } | null>(null);
  const drag = useRef<{ x: number; isMoved: boolean } | null>(null);
  const under = hot.value?.target ?? null;
  const drawn = useDrawing(canvas, size, under);

  const find = ({ offsetX, offsetY }: PointerEvent | MouseEvent) =>
    drawn.current && offsetY > AXIS_PX ? targetAt(drawn.current, offsetX, offsetY - AXIS_PX) : null;
  return (
    <>
      <canvas
        ref={canvas}
        class="timeline-canvas"
        style={{ width: `${width}px`, height: `${height}px`, cursor: under ? 'pointer' : 'default' }}
        aria-hidden="true"
        onPointerDown={(down) => {
          if (down.button === 0) drag.current = { x: down.offsetX, isMoved: false };
        }}
        onPointerMove={(move) => {
          const from = drag.current;
          if (from && (from.isMoved || Math.abs(move.offsetX - from.x) > DRAG_PX)) {
            if (!from.isMoved) move.currentTarget.setPointerCapture(move.pointerId);
            panBy(from.x - move.offsetX);
            drag.current = { x: move.offsetX, isMoved: true };
            hot.value = null;
            return;
          }
          const target = find(move);
          if (target || hot.peek()) hot.value = target && { target, x: move.offsetX, y: move.offsetY };
        }}
        onPointerLeave={() => (hot.value = null)}
        onPointerCancel={() => (drag.current = null)}
        onClick={(click) => {
          const wasMoved = drag.current?.isMoved;
          drag.current = null;
          const target = wasMoved ? null : find(click);
          if (target) selectTarget(target);
        }}
        onDblClick={(click) => {
          const target = find(click);
          if (target && 'turn' in target && target.thread === null) fitTurn(target.turn);
        }}
      />
      {hot.value && <Tooltip {...hot.value} width={width} height={height} />}
    </>
  );
}

/** Redraws whenever something in view changes. Returns what is drawn. */
function useDrawing(
  canvas: { current: HTMLCanvasElement | null },
  { width, height, top }: CanvasProps,
  under: Target | null,
) {
  const drawn = useRef<Layout | null>(null);
  const colours = useColours(canvas);
  const seen = view.value;
  const lanes = placed.value;
  const { turn, event, at } = route.value;
  const chosen = new Set([turn, cursor.value?.id]);
  const projection = shown.value;
  useEffect(() => {
    const to = canvas.current && sized(canvas.current, width, height);
    const paint = colours.current(theme.value);
    if (!to || !seen || !lanes || !projection || !paint) return;
    const layout = layoutTimeline(lanes, projection.arrows, { ...seen, top, height: height - AXIS_PX });
    drawn.current = layout;
    const moment = at === null ? null : seen.scale.xOf(projection.at) - seen.left;
    const isChosen = (target: Target) => target.kind === 'turn' && chosen.has(target.turn.id);
    const isHot = (target: Target) => under !== null && isSame(target, under);
    drawTimeline(to, { layout, width, height, top, moment, event, isChosen, isHot }, paint);
    askForThreads(layout);
  });
  return drawn;
}

function askForThreads({ boxes }: Layout): void {
  for (const { target, width } of boxes) {
    if (target?.kind !== 'thread' || width < THREAD_PX) continue;
    const { thread, endedAt } = target.span.task;
    if (thread !== null) needThread(thread, endedAt === null);
  }
}

/** A thread is loaded once it is wide enough to show its turns, px. */
const THREAD_PX = 12;

function isSame(a: Target, b: Target): boolean {
  if (a.kind !== b.kind) return false;
  if (a.kind === 'turn' && b.kind === 'turn') return a.turn.id === b.turn.id;
  if (a.kind === 'thread' && b.kind === 'thread')
    return a.span.task.thread === b.span.task.thread && a.span.task.id === b.span.task.id;
  return false;
}

/** The context of a canvas in the resolution of the screen. */
function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  const to = canvas.getContext('2d');
  to?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return to;
}

/** The colours. They are read again when the theme changes. */
function useColours(canvas: { current: HTMLElement | null }) {
  const known = useRef<{ of: string; colours: Colours } | null>(null);
  const system = useSignal(matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const change = () => (system.value = query.matches);
    query.addEventListener('change', change);
    return () => query.removeEventListener('change', change);
  }, []);
  const of = `${theme.value} ${system.value}`;
  const read = useRef<(theme: unknown) => Colours | null>(() => null);
  read.current = () => {
    const parent = canvas.current?.parentElement;
    if (!parent) return null;
    if (known.current?.of !== of) known.current = { of, colours: coloursOf(parent) };
    return known.current.colours;
  };
  return read;
}

interface TooltipProps {
  target: Target;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Names and durations, beside the pointer. */
function Tooltip({ target, x, y, width, height }: TooltipProps) {
  const { title, lines } = wordsOf(target);
  const isBelow = y < height / 2;
  return (
    <div
      class="timeline-tooltip"
      aria-hidden="true"
      style={{
        left: `${Math.max(4, Math.min(x + 12, width - TOOLTIP_PX - 4))}px`,
        ...(isBelow ? { top: `${y + 16}px` } : { bottom: `${height - y + 12}px` }),
      }}
    >
      <b>{title}</b>
      {lines.map((line) => (
        <span key={line}>{line}</span>
      ))}
    </div>
  );
}
