import '../../style/detail-chart.css';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Chart } from '../../../../src/library/projection/chart.ts';
import { chartPaths, isWithin, lastEdge } from './chart-paths.ts';
import type { Moment } from './moment.ts';

/** Enlargement factor. By default the chart is as wide as the column. */
const LARGER = 1.6;

/** The statechart as the server laid it out. The active states, and the transition that led to them, are highlighted. */
export function StateChart({ chart, moment }: { chart: Chart; moment: Moment }) {
  const [isLarge, setLarge] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const { width, height, states, edges } = chart;
  const last = lastEdge(edges, moment);
  const active = states.findLast(({ path }) => isWithin(moment.state, path));
  // Centres the active state when the chart is larger than its frame.
  useLayoutEffect(() => {
    const box = frame.current;
    if (!box || !active) return;
    const scale = (box.firstElementChild?.clientWidth ?? width) / width;
    box.scrollLeft = (active.x + active.width / 2) * scale - box.clientWidth / 2;
    box.scrollTop = (active.y + active.height / 2) * scale - box.clientHeight / 2;
  }, [active?.path, isLarge]);
  return (
    <figure class="chart">
      <div
        class={`chart-frame ${isLarge ? 'chart-large' : ''}`}
        ref={frame}
        tabIndex={0}
        role="group"
        aria-label="Statechart"
      >
        <svg
          viewBox={`0 0 ${width} ${height}`}
          width={isLarge ? width * LARGER : width}
          height={isLarge ? height * LARGER : height}
          aria-hidden="true"
        >
          <defs>
            {['plain', 'last'].map((kind) => (
              <marker
                key={kind}
                id={`chart-arrow-${kind}`}
                class={`chart-arrow-${kind}`}
                viewBox="0 0 8 8"
                refX="7"
                refY="4"
                markerUnits="userSpaceOnUse"
                markerWidth="7"
                markerHeight="7"
                orient="auto-start-reverse"
              >
                <path d="M0 0.5L8 4L0 7.5z" />
              </marker>
            ))}
          </defs>
          {states.map((state) => (
            <ChartState key={state.path} state={state} states={states} now={moment.state} />
          ))}
          {edges.map((edge, index) => (
            <ChartEdge key={index} edge={edge} isLast={edge === last} />
          ))}
        </svg>
      </div>
      <button type="button" class="chart-zoom" aria-pressed={isLarge} onClick={() => setLarge(!isLarge)}>
        enlarge
      </button>
    </figure>
  );
}

interface ChartStateProps {
  state: Chart['states'][number];
  states: Chart['states'];
  now: string;
}

function ChartState({ state, states, now }: ChartStateProps) {
  const { path, label, x, y, width, height, initial } = state;
  const isParent = states.some(({ parent }) => parent === path);
  const isActive = isWithin(now, path);
  const kind = `${isParent ? 'chart-parent' : 'chart-leaf'} ${isActive ? 'chart-active' : ''}`;
  return (
    <g class={kind}>
      <rect x={x} y={y} width={width} height={height} rx={isParent ? 8 : 6} />
      {initial && <circle class="chart-initial" cx={x + 9} cy={isParent ? y + 13 : y + height / 2} r="3" />}
      <text
        x={isParent ? x + (initial ? 18 : 10) : x + width / 2 + (initial ? 4 : 0)}
        y={isParent ? y + 16 : y + height / 2 + 4}
        text-anchor={isParent ? 'start' : 'middle'}
      >
        {label}
      </text>
    </g>
  );
}

/** Line height of the layout, px. */
const LINE = 12;

function ChartEdge({ edge, isLast }: { edge: Chart['edges'][number]; isLast: boolean }) {
  const { points, label, lines } = edge;
  const middle = label.x + label.width / 2;
  return (
    <g class={isLast ? 'chart-edge chart-last' : 'chart-edge'}>
      <path d={chartPaths(points)} marker-end={`url(#chart-arrow-${isLast ? 'last' : 'plain'})`} />
      <rect x={label.x} y={label.y} width={label.width} height={label.height} rx="2" />
      <text text-anchor="middle">
        {lines.map((line, index) => (
          <tspan key={index} x={middle} y={label.y + 9.5 + index * LINE}>
            {line}
          </tspan>
        ))}
      </text>
    </g>
  );
}
