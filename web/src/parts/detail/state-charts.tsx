import { signal } from '@preact/signals';
import type { Chart } from '../../../../src/library/projection/chart.ts';
import { Icon } from '../../shared/icon.tsx';
import { later } from '../../shared/later.tsx';
import { api } from '../../state/api.ts';
import { useFetched } from '../../state/fetched.ts';
import { Loaded } from './loaded.tsx';
import { legalAt, isAway, type Moment } from './moment.ts';

const StateChart = later(async () => (await import('./state-chart.tsx')).StateChart);

/** Stays set while the reader goes from agent to agent. */
const isOpen = signal(false);

/** The statecharts. They are fetched and drawn only on request. */
export function StateCharts({ moment }: { moment: Moment }) {
  return (
    <section class="state-charts" aria-label="Statechart">
      <button
        type="button"
        class="state-more"
        aria-expanded={isOpen.value}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        <Icon name={isOpen.value ? 'down' : 'right'} /> Statechart
      </button>
      {isOpen.value && <Drawn moment={moment} />}
    </section>
  );
}

function Drawn({ moment }: { moment: Moment }) {
  const charts = useFetched('charts', null, api.charts);
  const away = isAway(moment);
  return (
    <Loaded of={charts}>
      {({ charts: { agent, availability } }) => {
        const chart = away ? availability : agent;
        return (
          <>
            {chart && <StateChart chart={chart} moment={moment} />}
            {chart && <Elsewhere chart={chart} moment={moment} />}
            {!away && availability && (
              <StateChart chart={availability} moment={{ ...moment, state: 'available' }} />
            )}
          </>
        );
      }}
    </Loaded>
  );
}

/** Events that the chart does not draw, because many states accept them. */
function Elsewhere({ chart, moment }: { chart: Chart; moment: Moment }) {
  const legal = legalAt(chart, moment);
  const elsewhere = Map.groupBy(
    chart.anywhere.filter(({ event }) => legal.every((each) => each.event !== event)),
    ({ event, target }) => `${event} → ${target}`,
  );
  if (elsewhere.size === 0) return null;
  return (
    <p class="state-anywhere">
      <span>In other states:</span>
      {[...elsewhere].map(([event, each]) => (
        <code
          key={event}
          title={each.map(({ in: from }) => `${from || 'any state'} → ${each[0]?.target}`).join(', ')}
        >
          {each[0]?.event}
        </code>
      ))}
    </p>
  );
}
