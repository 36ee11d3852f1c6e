import { clock, duration } from '../shared/format.ts';
import { memo } from '../shared/memo.ts';
import type { LiveState } from '../state/live.ts';
import { type Bar, type Dot, LANE_PX, type Layout } from '../state/timeline-layout.ts';

interface DrawingProps {
  layout: Layout;
  width: number;
  height: number;
  axis: number;
  turn: string | null;
  event: number | null;
  /** Seq of the moment shown; null when live. */
  at: number | null;
  states: ReadonlyMap<string, LiveState>;
}

/** A lane from top to bottom: missed messages, the bar, then marks of single events. */
const BAR_TOP_PX = 10;
const BAR_PX = 13;
const MARK_PX = 26;
const TEXT_FROM_PX = 44;
const MISSED_PX = 58;
const SIGN_PX = 8;
const CHAR_PX = 6.5;

/** Paths relative to the position of the event. */
const MARKS: Record<Dot['kind'], string> = {
  talk: 'M-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0',
  problem: 'M-3-3l6 6m0-6l-6 6',
  task: 'M-3-3h6v6h-6z',
  compaction: 'M-4-2.5h8l-4 5z',
};

const middle = (lane: number) => lane * LANE_PX + BAR_TOP_PX + BAR_PX / 2;

/** The drawing for sighted users and the mouse. `TimelineText` gives the same as text. */
export function TimelineDrawing({ layout, width, height, axis, turn, event, at, states }: DrawingProps) {
  const lanes = Array.from({ length: Math.round(height / LANE_PX) }, (_, index) => index);
  return (
    <svg class="timeline-svg" width={width} height={height + axis} aria-hidden="true">
      {lanes.map((lane) => (
        <line key={lane} class="timeline-line" x1="0" x2={width} y1={middle(lane)} y2={middle(lane)} />
      ))}
      {layout.times.map(({ x, at: time, gap, isEnd }) => (
        <g key={`t${x}`} class={gap === null ? 'timeline-time' : 'timeline-time timeline-gap'}>
          <line x1={x} x2={x} y1="0" y2={height} />
          <text x={isEnd ? x - 4 : x + 4} y={height + 16} text-anchor={isEnd ? 'end' : 'start'}>
            {clock(time)}
            {gap !== null && <title>{`after ${duration(gap)} of silence`}</title>}
          </text>
        </g>
      ))}
      {layout.arrows.map(({ seq, x, from, to, kind, title }) => {
        const [start, end] = [middle(from), middle(to) + (to > from ? -BAR_PX / 2 : BAR_PX / 2)];
        const head = to > from ? -5 : 5;
        return (
          <g key={`${seq}-${to}`} class={`timeline-arrow timeline-${kind}`} data-seq={seq}>
            <title>{title}</title>
            <path d={`M${x} ${start}V${end}`} />
            <path d={`M${x - 3} ${end + head}L${x} ${end}L${x + 3} ${end + head}`} />
          </g>
        );
      })}
      {layout.bars.map((bar) => (
        <TurnBar
          key={bar.turn.id}
          turn={bar.turn}
          x={bar.x}
          width={bar.width}
          lane={bar.lane}
          isChosen={bar.turn.id === turn}
          space={bar.room}
          doing={bar.turn.status === 'running' ? stateOf(bar, states) : null}
        />
      ))}
      {layout.dots.map(({ seq, x, lane, kind, title, turn: of, isOnBar }) => (
        <g
          key={`${kind}${seq}`}
          class={`timeline-dot timeline-dot-${kind} ${seq === event ? 'timeline-chosen' : ''}`}
          data-seq={seq}
          data-of={of ?? undefined}
          transform={`translate(${x} ${isOnBar ? lane * LANE_PX + MARK_PX : middle(lane)})`}
        >
          <title>{title}</title>
          <path d={MARKS[kind]} />
        </g>
      ))}
      {at !== null && <line class="timeline-now" x1={at} x2={at} y1="0" y2={height} />}
    </svg>
  );
}

function stateOf({ turn }: Bar, states: ReadonlyMap<string, LiveState>): string {
  const state = states.get(turn.agent);
  if (state?.turn !== turn.id) return 'running';
  return state.doing.join(', ') || (state.state.split('.').at(-1) ?? 'running');
}

interface TurnBarProps extends Omit<Bar, 'room'> {
  /** Space until the next bar begins. */
  space: number;
  isChosen: boolean;
  doing: string | null;
}

const TurnBar = memo(function TurnBar({ turn, x, width, lane, space, isChosen, doing }: TurnBarProps) {
  const y = lane * LANE_PX + BAR_TOP_PX;
  // A label that starts out of view moves to the visible edge.
  const start = Math.max(0, x);
  const room = width - (start - x);
  const word = doing ?? (turn.status === 'done' ? turn.said : turn.status);
  const label = `turn ${turn.number} ${turn.agent}, ${doing ?? turn.status}`;
  const missed =
    turn.missed &&
    x >= 0 &&
    (space >= MISSED_PX ? `! missed ${turn.missed.count}` : space >= SIGN_PX ? '!' : null);
  return (
    <g
      class={`timeline-bar timeline-${turn.status} ${isChosen ? 'timeline-chosen' : ''}`}
      data-turn={turn.id}
    >
      <title>{turn.missed ? `${label}, had missed ${turn.missed.count}` : label}</title>
      <rect x={x} y={y} width={width} height={BAR_PX} rx="2" />
      {room >= TEXT_FROM_PX && (
        <text x={start + 6} y={y + 10}>
          {fitted(`${turn.number} ${word}`, room - 10)}
        </text>
      )}
      {missed && (
        <text class="timeline-missed" x={x} y={y - 2}>
          {missed}
        </text>
      )}
    </g>
  );
});

function fitted(text: string, width: number): string {
  const room = Math.floor(width / CHAR_PX);
  return text.length <= room ? text : `${text.slice(0, Math.max(0, room - 1))}…`;
}
